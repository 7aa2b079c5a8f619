# SPDX-License-Identifier: Apache-2.0
"""A training run on disk: its request, its state and its result.

    RUN/train.json               the request and, at the end, the result
    RUN/checkpoint.safetensors   the whole state, until the run is finished
    RUN/splats.ply               the splats
    RUN/metrics.json             held-out PSNR and SSIM, and which labels were used for them

A killed run resumes from its last checkpoint and ends with the same bits.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from splatcert import __version__
from splatcert.config import TrainConfig
from splatcert.errors import InputError
from splatcert.raster.abreast import one_torch_thread
from splatcert.scene.scene import Scene
from splatcert.splats.files import save_ply
from splatcert.splats.gaussians import Splats
from splatcert.storage.arrays import write_tensors
from splatcert.storage.schema import read_json
from splatcert.storage.whole import file_hash, owned_folder, require_regular_file, write_text_whole
from splatcert.training.density import DensityStats
from splatcert.training.optimise import StepReport, Trainer
from splatcert.training.table import GaussianTable

SCHEMA = 1
EARLIER = {"recipe": "published"}
"""Settings that the records of earlier versions do not name."""
STATISTICS = tuple(field.name for field in dataclasses.fields(DensityStats))


class RunError(InputError):
    """A run folder that cannot be used as requested."""


def peak_memory_mib() -> int | None:
    """Largest resident memory of this process so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":  # macOS counts in bytes
        kibibytes //= 1024
    return kibibytes // 1024


def request_of(scene: Scene, config: TrainConfig) -> dict[str, object]:
    """The request of a run; two runs with the same request give the same splats."""
    sizes = sorted({(c.width, c.height) for c in scene.training.cameras})
    return {
        "scene": scene.path.name,
        "training_views": list(scene.training.names),
        "held_out_views": list(scene.held_out.names),
        "sizes": [list(size) for size in sizes],
        "config": dataclasses.asdict(config) | {"background": list(config.background)},
    }


class TrainingRun:
    """One run folder, owned by this process while it is open."""

    def __init__(self, folder: Path, scene: Scene, config: TrainConfig) -> None:
        self.folder, self.scene, self.config = folder, scene, config
        self.request = request_of(scene, config)

    @property
    def splats_path(self) -> Path:
        """The result, a standard PLY file."""
        return self.folder / "splats.ply"

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    @property
    def _record(self) -> Path:
        return self.folder / "train.json"

    def record(self) -> dict | None:
        """The stored request and result, or None in a fresh folder."""
        if not self._record.exists():
            return None
        record = read_json(self._record, "training record", raises=RunError)
        request = record.get("request") if isinstance(record, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("config"), dict):
            raise RunError(
                f"{self._record} is not the record of a training run.\n"
                "  Remove it, or choose another folder."
            )
        return record

    @property
    def finished(self) -> bool:
        """Whether the result exists and is unchanged."""
        record = self.record()
        result = record.get("result") if record else None
        if not isinstance(result, dict) or not self.splats_path.is_file():
            return False
        return file_hash(self.splats_path) == result.get("splats")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Create the folder, check that it belongs to this request, and lock it."""
        with owned_folder(self.folder, "training"):
            self._compare()
            yield

    def _compare(self) -> None:
        record = self.record()
        if record is None:
            self._write_record(None)
            return
        stored = record["request"]
        settings = EARLIER | stored["config"]
        differing = sorted(
            [
                key
                for key in self.request
                if key != "config" and self.request[key] != stored.get(key)
            ]
            + [
                key
                for key, value in self.request["config"].items()  # type: ignore[attr-defined]
                if value != settings.get(key)
            ]
        )
        if differing:
            raise RunError(
                f"{self.folder} contains a run with different settings: "
                f"{', '.join(differing[:6])}.\n"
                "  Choose another folder with --output, or remove this one."
            )

    def _write_record(self, result: dict | None) -> None:
        content = {
            "schema": SCHEMA,
            "splatcert": __version__,
            "request": self.request,
            "split": self.scene.details.get("split"),
            "sparse": self.scene.details.get("sparse"),
            "skip_missing": bool(self.scene.details.get("skip missing")),
            "result": result,
        }
        write_text_whole(self._record, json.dumps(content, indent=1) + "\n")

    def resume(self) -> Trainer:
        """A trainer at the last checkpoint, or at the start."""
        trainer = Trainer(self.scene, self.config)
        if not self._checkpoint.exists():
            return trainer
        try:
            with safe_open(require_regular_file(self._checkpoint), framework="pt") as file:
                step = int((file.metadata() or {})["step"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}
            if not 0 < step < self.config.iterations:
                raise ValueError(f"it was saved at step {step} of {self.config.iterations}")
            table = GaussianTable.from_tensors(tensors, self.config.antialiased)
            stats = [tensors[f"stats.{name}"].clone() for name in STATISTICS]
            if any(one.shape != (len(table),) or one.dtype != torch.float32 for one in stats):
                raise ValueError("its statistics do not match its Gaussians")
            table.splats().check_finite()
        except (SafetensorError, KeyError, ValueError, OSError) as error:
            raise RunError(
                f"{self._checkpoint} cannot be resumed from: {str(error).splitlines()[0]}.\n"
                "  Remove it to restart this run from the beginning."
            ) from error
        trainer.table, trainer.stats, trainer.steps_done = table, DensityStats(*stats), step
        return trainer

    def save_checkpoint(self, trainer: Trainer) -> None:
        """Store the whole state under a temporary name, then rename the file."""
        tensors = trainer.table.tensors()
        tensors |= {f"stats.{name}": getattr(trainer.stats, name) for name in STATISTICS}
        facts = {"step": str(trainer.steps_done), "schema": str(SCHEMA)}
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        write_tensors(self._checkpoint, arrays, facts)

    def train(
        self,
        *,
        report: Callable[[StepReport], None] | None = None,
        checkpoint_every: int = 1_000,
        preview: Callable[[Trainer], None] | None = None,
        preview_every: int = 0,
    ) -> Splats:
        """Train to the end, with checkpoints; returns the splats and stores them."""
        # Kernels use all cores themselves; torch's own threads would only compete with them.
        with one_torch_thread():
            trainer = self.resume()
            started, first = time.perf_counter(), trainer.steps_done
            while trainer.steps_done < self.config.iterations:
                progress = trainer.step()
                if report is not None:
                    report(progress)
                if preview is not None and preview_every and progress.step % preview_every == 0:
                    preview(trainer)
                if progress.step % checkpoint_every == 0 and progress.step < self.config.iterations:
                    self.save_checkpoint(trainer)
            splats = trainer.splats()
            splats.check_finite()
            save_ply(splats, self.splats_path)
        self._write_record(
            {
                "splats": file_hash(self.splats_path),
                "gaussians": len(splats),
                "steps_timed": trainer.steps_done - first,
                "seconds": round(time.perf_counter() - started, 2),
                "peak_memory_mib": peak_memory_mib(),
            }
        )
        self._checkpoint.unlink(missing_ok=True)
        return splats
