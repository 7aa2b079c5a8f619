# SPDX-License-Identifier: Apache-2.0
"""`splatcert demo`: the whole pipeline on bundled photographs."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from splatcert.commands import CaptureToTrain, CertificateOptions
from splatcert.commands.captures.train import Train, run_facts
from splatcert.commands.certificates.certify import Certify, facts
from splatcert.commands.certificates.report import Report
from splatcert.commands.engines import EngineOptions
from splatcert.config import TrainConfig
from splatcert.console import progress, say, silent
from splatcert.storage.whole import ArtefactError, output_folder

if TYPE_CHECKING:
    from splatcert.camera import Camera
    from splatcert.certificate.certificate import Certificate
    from splatcert.storage.png import Pixels

PHOTOGRAPHS = Path(__file__).parents[1] / "demo_data" / "still_life"
"""COLMAP poses, points and 96 photographs, path-traced by `tools/demo_scene`."""
HOLDOUT = "5"
"""Every 5th photograph: at alpha = 1/10 the threshold is then not the worst score."""
STEPS, GAUSSIANS, RESOLUTION = 3_000, 40_000, None
"""Enough for pictures of this size, in little more than a minute on two cores."""
QUICK = 500, 5_000, "160"
"""The same three for a run that only has to show that everything works."""
GAP, CAPTION_HEIGHT, FONT_SIZE = 12, 24, 14
"""Sizes in the picture of certified views, in pixels."""
STEP_BACK = 0.4
"""In scene extents: just beyond what the calibration views showed."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Run the whole pipeline on bundled photographs: train, certify, report.

    Takes about three minutes on two cores. Safe to interrupt: run the same command again to
    resume.
    """

    interrupted: ClassVar[str] = "Finished steps are kept. Run the same command again to resume."

    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")] = Path(
        "splatcert-demo"
    )
    """Folder to write photographs, model, certificate and pictures to."""
    quick: bool = False
    """Train briefly on small pictures: everything runs in under a minute, with wider boxes."""
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        """Copy, train, certify, report; each step prints what it wrote."""
        with silent(self.json):
            left = self._perform(output_folder(self.output))
        if self.json:
            print(json.dumps(left, indent=2))

    def _perform(self, folder: Path) -> dict[str, Any]:
        """Run all four steps; returns what they wrote, for scripts."""
        photos, run, certified = (folder / name for name in ("still-life", "run", "certificate"))
        say("Step 1 of 4", "copy 96 path-traced photographs of a still life, some blurred or noisy")
        copy_photographs(photos)
        say("Photos", f"{photos}/images")

        steps, gaussians, resolution = QUICK if self.quick else (STEPS, GAUSSIANS, RESOLUTION)
        say("Step 2 of 4", "train splats on four photographs in five; hold out the rest")
        Train(
            data=photos,
            output=run,
            config=TrainConfig(iterations=steps, recipe="published", max_gaussians=gaussians),
            capture=CaptureToTrain(holdout=HOLDOUT, resolution=resolution),
            threads=self.engine.threads,
        ).run()

        say("Step 3 of 4", "certify: calibrate error bars on the held-out photographs")
        Certify(data=photos, models=(run,), output=certified, engine=self.engine).run()

        say("Step 4 of 4", "report")
        return {
            "kind": "demo",
            "path": str(folder),
            "photographs": str(photos),
            "run": run_facts(run),
            **self._show(photos, run, certified),
        }

    def _show(self, photos: Path, run: Path, certified: Path) -> dict[str, Any]:
        from splatcert.deploy import open_certificate

        certificate = open_certificate(certified, run, photos)
        sheet = self.output / "certified.png"
        save_sheet(sheet, certificate)
        say("In words", meaning(certificate))
        say("Picture", f"{sheet}: renders beside their half-widths")
        inputs = CertificateOptions(model=run, data=photos, threads=self.engine.threads)
        page = certified / "report.html"
        Report(certificate=certified, output=page, inputs=inputs).run()
        say("Splats", f"{run}/splats.ply, which opens in any splat viewer")
        say("Certificate", f"{certified}: try splatcert verify and splatcert view")
        say("Next", "use your own photographs: splatcert train, splatcert certify")
        return {
            "certificate": facts(certificate, certified),
            "picture": str(sheet),
            "report": str(page),
        }


def copy_photographs(target: Path) -> None:
    """Copy the bundled capture to where the user can see and keep it."""
    if target.exists():
        return
    aside = target.with_name(f".{target.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        shutil.copytree(PHOTOGRAPHS, aside)
        aside.rename(target)
    except OSError:  # one for each of 100 files, if the disk is full
        shutil.rmtree(aside, ignore_errors=True)
        raise ArtefactError(
            f"cannot write the demo's photographs to {target}.\n"
            "  Free some space, or choose another folder with --output."
        ) from None


def meaning(certificate: Certificate) -> str:
    """The guarantee as one would explain it to somebody else."""
    from splatcert.conformal.levels import in_percent

    factors = [view.factor for view in certificate.record.calibration]
    views, width = len(factors), 255 * certificate.threshold * sum(factors) / len(factors)
    return (
        f"Take a new photograph from a place like those of the {views} held-out ones. With "
        f"probability {in_percent(1 - certificate.alpha)} or more, at least "
        f"{in_percent(1 - certificate.beta)} of its pixels differ from the render by no more than "
        f"their error bar, which is {width:.0f} of 255 colour levels on average."
    )


def save_sheet(path: Path, certificate: Certificate) -> None:
    """Save four views, each as render and half-width, in one colour scale."""
    import numpy as np

    from splatcert.report.colours import WidthScale
    from splatcert.storage.png import save_png, to_pixels

    scale, rows = WidthScale.of(certificate), []
    for caption, camera in progress(list(chosen_views(certificate).items()), "rendering"):
        boxes = certificate.predict(camera)
        state = "" if boxes.flag is None else boxes.flag.word
        widths = scale.colours(boxes.half_width.numpy())
        rows.append(
            pair(f"{caption} · {state}", to_pixels(boxes.center.numpy()), widths, scale.top)
        )
    save_png(path, np.vstack([np.hstack(rows[:2]), np.hstack(rows[2:])]))


def chosen_views(certificate: Certificate) -> dict[str, Camera]:
    """The easiest, the median and the hardest calibration view, and one outside the capture.

    Hard views are those that needed wide boxes, predicted or not: a score would not tell.
    """
    views = certificate.views
    needed = views.oracle("held-out", certificate.beta, certificate.record.scale.shape)
    width = dict(zip(views.held_out.names, needed, strict=True))
    ranked = sorted(certificate.record.calibration, key=lambda view: width[view.name])
    hardest = ranked[-1].camera
    return {
        "easiest held-out view": ranked[0].camera,
        "median held-out view": ranked[len(ranked) // 2].camera,
        "hardest held-out view": hardest,
        "outside the capture": stepped_back(hardest, STEP_BACK * certificate.record.scene.extent),
    }


def stepped_back(camera: Camera, distance: float) -> Camera:
    """The same camera, moved backwards along its viewing axis."""
    pose = camera.world_to_camera.copy()
    pose[2, 3] += distance
    return replace(camera, world_to_camera=pose)


def pair(caption: str, picture: Pixels, widths: Pixels, top: int) -> Pixels:
    """Two pictures side by side under their captions."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    from splatcert.storage.png import INK, PAPER

    height, width = picture.shape[:2]
    sheet = Image.new("RGB", (2 * width + GAP, height + CAPTION_HEIGHT + GAP), PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=FONT_SIZE)
    captions = (caption, f"half-width: 0 (dark) to {top} of 255 or more (light)")
    for column, (words, pixels) in enumerate(zip(captions, (picture, widths), strict=True)):
        draw.text((column * width + 6, 4), words, fill=INK, font=font)
        sheet.paste(Image.fromarray(pixels), (column * width, CAPTION_HEIGHT))
    return np.asarray(sheet)
