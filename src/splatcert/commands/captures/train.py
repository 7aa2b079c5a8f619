# SPDX-License-Identifier: Apache-2.0
"""`splatcert train`: splats from photographs, on the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from splatcert.commands import CaptureToTrain, unset
from splatcert.config import TrainConfig
from splatcert.console import say, stages
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.scene.scene import Scene
    from splatcert.training.optimise import StepReport, Trainer


SECONDS_BETWEEN_LINES = 10.0
SMOOTHING = 0.02
"""Weight of the newest photograph in the reported loss and PSNR."""


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train splats on the training photographs of a capture.

    Held-out photographs are only used to report PSNR and SSIM. Safe to interrupt: run the same
    command again to resume from the last checkpoint, with a bit-identical result.
    """

    interrupted: ClassVar[str] = (
        "The last checkpoint is kept. Run the same command again to resume."
    )

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Capture: COLMAP, transforms.json or Blender folder."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="RUN")]
    """Folder to write the run to."""
    config: tyro.conf.OmitArgPrefixes[TrainConfig] = field(default_factory=TrainConfig)
    capture: tyro.conf.OmitArgPrefixes[CaptureToTrain] = field(default_factory=CaptureToTrain)
    members: int = 1
    """Number of models to train with consecutive seeds, each in its own folder member_NN."""
    workers: int = 1
    """Number of processes for the members; they share the cores."""
    ray: Annotated[str | None, unset("ADDRESS")] = None
    """Address of a Ray cluster to run the members on."""
    checkpoint_every: int = 1_000
    """Steps between checkpoints."""
    preview_every: int = 0
    """Steps between updates of preview.png, a held-out camera; 0 for no preview."""
    threads: int = 0
    """Threads; 0 means all cores. Does not affect the result."""
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        for name in ("members", "workers", "checkpoint_every"):
            if getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise OptionError(f"--{option} must be at least 1, got {getattr(self, name)}.")
        if self.preview_every < 0 or self.threads < 0:
            raise OptionError("--preview-every and --threads must be 0 or more.")

    def run(self) -> None:
        """Train, measure, and print where the results are."""
        from splatcert.raster import native

        native.set_threads(self.threads)
        if self.members == 1:
            train_one(self, self.output, self.config, True)
            folders = [self.output]
        else:
            folders = self._train_members()
        if self.json:
            print(
                json.dumps({"kind": "runs", "runs": [run_facts(one) for one in folders]}, indent=2)
            )

    def _train_members(self) -> list[Path]:
        from splatcert.training.jobs import Job, run_jobs

        jobs = []
        for member in range(self.members):
            config = replace(self.config, seed=self.config.seed + member)
            folder = self.output / f"member_{member:02d}"
            jobs.append(Job(folder.name, train_one, (self, folder, config, self.workers == 1)))
        failed = []
        for outcome in run_jobs(jobs, workers=self.workers, ray_address=self.ray):
            if outcome.error is not None:
                failed.append(outcome)
            if not self.json:
                failure = f"failed: {outcome.error}"
                say(outcome.job.name, outcome.result if outcome.error is None else failure)
        if failed:
            raise failed[0].error  # type: ignore[misc]
        return [self.output / job.name for job in jobs]


def run_facts(folder: Path) -> dict[str, Any]:
    """The results of a finished run, for scripts."""
    metrics = json.loads((folder / "metrics.json").read_text())
    return {"path": str(folder), **metrics}


def train_one(options: Train, folder: Path, config: TrainConfig, talk: bool) -> str:
    """Start or resume one run, up to its metrics; returns a sentence about the result."""
    speak = talk and not options.json
    from splatcert.raster import native
    from splatcert.splats.files import load_splats
    from splatcert.training.run import TrainingRun

    scene = options.capture.load(options.data)
    run = TrainingRun(folder, scene, config)
    with run.opened():
        if run.finished:
            splats = load_splats(run.splats_path)
            note = "already finished"
        else:
            if speak:
                threads = native.threads()
                photos = f"{len(scene.training)} training, {len(scene.held_out)} held-out photos"
                say("Capture", f"{photos}; {scene.details['split']}")
                if scene.registered is not None and scene.registered.is_notable:
                    say("Registered", scene.registered.words())
                if (check := scene.holdout_check) is not None:
                    say("Hold-out", check.words)
                say("Back end", f"cpu ({native.isa()}, {threads} thread{'s' * (threads > 1)})")
            with progress_bar(config.iterations, folder.name, talk) as report:
                splats = run.train(
                    report=report,
                    checkpoint_every=options.checkpoint_every,
                    preview=lambda trainer: save_preview(scene, trainer, folder),
                    preview_every=options.preview_every,
                )
            record = run.record() or {}
            note = f"{record['result']['seconds']:.0f} s"
        summary = save_metrics(scene, splats, config, folder)
    words = f"{len(splats):,} Gaussians, {note}"
    if "psnr" in summary:
        words += f"; held-out views: PSNR {summary['psnr']:.2f} dB, SSIM {summary['ssim']:.3f}"
    if speak:
        say("Trained", words)
        say("Wrote", f"{run.splats_path}")
    return words


def save_metrics(scene: Scene, splats: Any, config: TrainConfig, folder: Path) -> dict[str, Any]:
    """Measure quality on the held-out views that have a photograph, and store the metrics.

    The use of these photographs is recorded as well, so that a certificate can state it.
    """
    from splatcert.storage.whole import write_text_whole
    from splatcert.training.losses import measure, summarise

    names = scene.held_out.with_photo
    views = scene.held_out.reveal("evaluation", names, by="splatcert train") if names else []
    summary = summarise(measure(splats, views, background=config.background))
    summary["gaussians"] = len(splats)
    check = scene.holdout_check
    summary["split"] = scene.details["split"]
    summary["holdout_check"] = None if check is None else check.facts()
    summary["labels"] = [asdict(entry) for entry in scene.held_out.ledger.entries]
    write_text_whole(folder / "metrics.json", json.dumps(summary, indent=1) + "\n")
    return summary


def save_preview(scene: Scene, trainer: Trainer, folder: Path) -> None:
    """Save a render from the first held-out camera, or a training one; reads no photograph."""
    from splatcert.raster.render import render
    from splatcert.storage.png import save_png, to_pixels

    cameras = scene.held_out.cameras or scene.training.cameras
    picture = render(trainer.splats(), cameras[0], background=trainer.config.background)
    save_png(folder / "preview.png", to_pixels(picture.rgb.numpy()))


class _Smooth:
    """Loss and PSNR averaged over recent photographs; single ones vary too much."""

    def __init__(self) -> None:
        self.loss = self.psnr = None

    def add(self, step: StepReport) -> str:
        if self.loss is None or self.psnr is None:
            self.loss, self.psnr = step.loss, step.psnr
        self.loss += SMOOTHING * (step.loss - self.loss)
        self.psnr += SMOOTHING * (step.psnr - self.psnr)
        return f"loss {self.loss:.4f}  {self.psnr:.2f} dB  {step.gaussians:,} Gaussians"


@contextmanager
def progress_bar(
    iterations: int, name: str, talk: bool
) -> Iterator[Callable[[StepReport], None] | None]:
    """A function to call after each step; None if nothing is to be shown."""
    if not talk:
        yield None
        return
    smooth = _Smooth()
    with stages() as on:
        yield lambda step: on(name, step.step, iterations, smooth.add(step))
