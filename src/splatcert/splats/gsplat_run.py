# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of gsplat's example trainer: `ckpt_{step}_rank{r}.pt` and the run around them.

Each process of a distributed run saves its share of the Gaussians, so all ranks of
a step belong together. The frame is the trainer's own; see `gsplat_frame`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from splatcert.splats.gaussians import Splats
from splatcert.splats.untrusted import ForeignFileError, check_stored, load_checkpoint, load_config

CHECKPOINT = re.compile(r"ckpt_(\d{1,12})_rank(\d{1,6})\.pt")
TENSORS = ("means", "scales", "quats", "opacities", "sh0", "shN")
HOLDOUT = 8


@dataclass(frozen=True)
class GsplatRun:
    """All ranks of one step, and what cfg.yml says about the run."""

    files: tuple[Path, ...]
    step: int | None
    config: dict[str, Any]
    """Plain values of cfg.yml; empty if it is missing."""

    @property
    def is_antialiased(self) -> bool:
        """Trained with opacity compensation."""
        return self.config.get("antialiased") is True

    @property
    def is_normalized(self) -> bool | None:
        """The world was normalised before training; None if the run does not say."""
        value = self.config.get("normalize_world_space")
        return value if isinstance(value, bool) else None

    @property
    def test_every(self) -> int | None:
        """Every n-th image by name was held out."""
        value = self.config.get("test_every")
        return value if isinstance(value, int) and value > 0 else None

    def notes(self, entries: Iterable[str] = ()) -> tuple[str, ...]:
        """What a user must know before trusting renders, given the checkpoint's entries."""
        parts = set(entries)
        notes = []
        if not self.config:
            notes.append("no cfg.yml: antialiasing and world normalisation are unknown")
        elif self.is_normalized is not False:
            notes.append("trained in gsplat's normalised world, which checkpoints do not store")
        if "post_processing" in parts or self.config.get("post_processing"):
            name = self.config.get("post_processing") or "of unknown kind"
            notes.append(f"renders are without the post_processing of training ({name})")
        if "pose_adjust" in parts or self.config.get("pose_opt") is True:
            notes.append("training moved its cameras (pose_adjust); poses here are as captured")
        if self.config.get("with_ut") is True or self.config.get("with_eval3d") is True:
            notes.append("trained with 3DGUT projection; this renderer projects as classic 3DGS")
        return tuple(notes)


def open_gsplat(path: Path, step: int | None = None) -> GsplatRun:
    """The newest step of a run folder, its ckpts folder, or one checkpoint with its ranks."""
    if path.is_file():
        match = CHECKPOINT.fullmatch(path.name)
        if match is None:
            return GsplatRun((path,), None, _config(path.parent))
        folder, step = path.parent, int(match[1])
    else:
        folder = path / "ckpts" if (path / "ckpts").is_dir() else path
    found = gsplat_steps(folder)
    if not found:
        raise ForeignFileError(f"{path}: no ckpt_*_rank*.pt inside")
    chosen = max(found) if step is None else step
    if chosen not in found:
        listed = ", ".join(str(n) for n in sorted(found))
        raise ForeignFileError(f"{folder}: no checkpoint of step {chosen}; it has {listed}")
    ranks = found[chosen]
    present = set(ranks)
    # The trainer also writes one statistics file per rank, which reveals a missing one.
    for stats in folder.parent.glob(f"stats/train_step{chosen:04d}_rank*.json"):
        if match := re.search(r"_rank(\d{1,6})\.json$", stats.name):
            present.add(int(match[1]))
    missing = [rank for rank in range(max(present) + 1) if rank not in ranks]
    if missing:
        raise ForeignFileError(
            f"{folder}: step {chosen} lacks the checkpoint of rank "
            f"{', '.join(str(rank) for rank in missing[:20])}.\n"
            "  Each rank holds its own share of the Gaussians; copy all of them."
        )
    return GsplatRun(tuple(ranks[rank] for rank in sorted(ranks)), chosen, _config(folder))


def gsplat_steps(folder: Path) -> dict[int, dict[int, Path]]:
    """Checkpoint files of a folder by step and rank."""
    steps: dict[int, dict[int, Path]] = {}
    for path in sorted(folder.glob("ckpt_*_rank*.pt")):
        if match := CHECKPOINT.fullmatch(path.name):
            steps.setdefault(int(match[1]), {})[int(match[2])] = path
    return steps


def _config(folder: Path) -> dict[str, Any]:
    for candidate in (folder.parent / "cfg.yml", folder / "cfg.yml"):
        if candidate.is_file():
            return load_config(candidate)
    return {}


def read_gsplat(run: GsplatRun, *, check: bool = True) -> Splats:
    """The Gaussians of all ranks, in the trainer's frame."""
    parts, _ = gsplat_parts(run)
    raw = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    count = len(raw["means"])
    extra = {name: raw[name].reshape(count) for name in raw if name not in TENSORS}
    splats = Splats.from_gsplat(raw, activated=False, antialiased=run.is_antialiased)
    splats = replace(splats, extra=extra)
    if check:
        splats.check_finite()
    return splats


def gsplat_parts(run: GsplatRun) -> tuple[list[dict[str, Tensor]], tuple[str, ...]]:
    """Tensors of each rank after checks, mapped and not copied, and the checkpoint's entries."""
    model = run.config.get("model_type")
    if isinstance(model, str) and model.startswith("2dgs"):
        raise ForeignFileError(
            f"{run.files[0]}: trained as {model}, flat discs with their own renderer.\n"
            "  Train a 3DGS model of the scene instead (examples/simple_trainer.py)."
        )
    checkpoints = [load_checkpoint(path) for path in run.files]
    parts = [_checked(*pair) for pair in zip(run.files, checkpoints, strict=True)]
    shapes = {name: parts[0][name].shape[1:] for name in parts[0]}
    for path, part in zip(run.files, parts, strict=True):
        if {name: part[name].shape[1:] for name in part} != shapes:
            raise ForeignFileError(
                f"{path}: its tensors differ in kind from those of {run.files[0].name}.\n"
                "  The ranks come from different runs; copy all of one run."
            )
    return parts, tuple(str(name) for name in checkpoints[0])


def _checked(path: Path, checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    splats = checkpoint.get("splats")
    if not isinstance(splats, Mapping):
        raise ForeignFileError(
            f"{path}: no entry 'splats'; found {', '.join(map(str, checkpoint))[:200]}.\n"
            "  Pass a checkpoint of gsplat's simple_trainer, or a PLY file."
        )
    if "app_module" in checkpoint or "features" in splats:
        raise ForeignFileError(
            f"{path}: trained with app_opt, so colours come from a network per image "
            "(app_module, features), not from harmonics.\n"
            "  Train without --app_opt to get a model with colours of its own."
        )
    missing = [name for name in TENSORS if not isinstance(splats.get(name), Tensor)]
    if missing:
        found = ", ".join(str(name) for name in splats)[:200]
        raise ForeignFileError(f"{path}: 'splats' lacks {', '.join(missing)}; it has {found}")
    count = len(splats["means"]) if splats["means"].ndim else -1
    tensors = {name: splats[name].detach() for name in TENSORS}
    for name, tensor in tensors.items():
        check_stored(path, name, tensor)
    for name, value in splats.items():
        if isinstance(value, Tensor) and value.shape in ((count,), (count, 1)):
            check_stored(path, str(name), value, whole=True)
            tensors.setdefault(str(name), value.detach())
    expected = {
        "means": (count, 3),
        "scales": (count, 3),
        "quats": (count, 4),
        "sh0": (count, 1, 3),
        "shN": (count, splats["shN"].shape[1] if splats["shN"].ndim == 3 else 0, 3),
    }
    for name, shape in expected.items():
        if tuple(tensors[name].shape) != shape:
            raise ForeignFileError(
                f"{path}: {name} has shape {list(tensors[name].shape)}, expected {list(shape)}"
            )
    if tensors["opacities"].numel() != count:
        raise ForeignFileError(
            f"{path}: {tensors['opacities'].numel()} opacities for {count} Gaussians"
        )
    return tensors
