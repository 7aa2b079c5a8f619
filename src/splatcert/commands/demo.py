# SPDX-License-Identifier: Apache-2.0
"""`splatcert demo`: from photographs to a certificate, with no data but our own."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from splatcert.commands import CaptureOptions, CertificateOptions, EngineOptions
from splatcert.commands.certify import Certify, facts
from splatcert.commands.report import Report
from splatcert.commands.train import Train, run_facts
from splatcert.config import TrainConfig
from splatcert.console import say, silent
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

PHOTOGRAPHS = Path(__file__).parents[1] / "demo_data" / "still_life"
"""Path-traced by `tools/demo_scene`: COLMAP poses, points and 96 photographs."""
HOLDOUT = "5"
"""Every 5th photograph: at alpha = 1/10 the threshold is then not the worst score."""
STEPS, GAUSSIANS, RESOLUTION = 3_000, 40_000, None
"""Enough for pictures of this size, in little more than a minute on two cores."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Train splats on photographs that come with splatcert, certify them, and look.

    Takes about three minutes on two cores. Stopped, it goes on where it was when the same
    command is given again.
    """

    interrupted: ClassVar[str] = "What is finished is kept: the same command goes on from there."

    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")] = Path(
        "splatcert-demo"
    )
    """Folder for photographs, model, certificate and pictures."""
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = field(default_factory=EngineOptions)
    json: bool = False
    """Print one JSON object instead of words."""

    def run(self) -> None:
        """Copy, train, certify, look; each step says what it leaves."""
        with silent(self.json):
            left = self._perform(output_folder(self.output))
        if self.json:
            print(json.dumps(left, indent=2))

    def _perform(self, folder: Path) -> dict[str, Any]:
        """All four steps; what they leave, for scripts."""
        photos, run, certified = (folder / name for name in ("still-life", "run", "certificate"))
        say("1 of 4", "photographs of a still life, path-traced by us; some are blurred or noisy")
        copy_photographs(photos)
        say("photos", f"{photos}/images")

        say("2 of 4", "splats, fitted to four photographs in five; the rest is held out")
        Train(
            data=photos,
            output=run,
            config=TrainConfig(iterations=STEPS, max_gaussians=GAUSSIANS),
            capture=CaptureOptions(holdout=HOLDOUT, resolution=RESOLUTION),
            threads=self.engine.threads,
        ).run()

        say("3 of 4", "error bars, calibrated on the held-out photographs")
        Certify(data=photos, model=run, output=certified, engine=self.engine).run()

        say("4 of 4", "what has come of it")
        return {
            "kind": "demo",
            "path": str(folder),
            "photographs": str(photos),
            "run": run_facts(run),
            **self._show(photos, run, certified),
        }

    def _show(self, photos: Path, run: Path, certified: Path) -> dict[str, Any]:
        from splatcert.certificate.store import load_certificate
        from splatcert.report.sheet import save_sheet
        from splatcert.splats.files import load_splats

        certificate = load_certificate(certified, load_splats(run))
        sheet = self.output / "certified.png"
        save_sheet(sheet, certificate)
        for label, text in meaning(certificate).items():
            say(label, text)
        say("look at", f"{sheet}: renders beside their error bars")
        inputs = CertificateOptions(model=run, data=photos, threads=self.engine.threads)
        Report(certificate=certified, inputs=inputs).run()
        say("splats", f"{run}/splats.ply opens in any splat viewer")
        say("certificate", f"{certified}: splatcert verify, splatcert view")
        say("next", "the same with photographs of your own: splatcert train, splatcert certify")
        return {
            "certificate": facts(certificate, certified),
            "picture": str(sheet),
            "report": str(certified / "report.html"),
        }


def copy_photographs(target: Path) -> None:
    """The capture in the package, copied to where its user can see and keep it."""
    if target.exists():
        return
    aside = target.with_name(f".{target.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(PHOTOGRAPHS, aside)
    aside.rename(target)


def meaning(certificate: Certificate) -> dict[str, str]:
    """The guarantee once more, as one would tell it to somebody else."""
    from splatcert.conformal.levels import in_percent

    factors = [view.factor for view in certificate.record.calibration]
    views, width = len(factors), 255 * certificate.threshold * sum(factors) / len(factors)
    told = {
        "in words": (
            f"take a new photograph from a place like those of the {views} held-out ones: with "
            f"probability {in_percent(1 - certificate.alpha)} or more, at least "
            f"{in_percent(1 - certificate.beta)} of its pixels differ from the render by no more "
            f"than their error bar, on average {width:.0f} of 255 steps of a colour"
        )
    }
    if certificate.rule.predictor is None:
        told["view factor"] = (
            "a = 1 in every view: this package carries no view predictor yet, so bars are as "
            "wide in easy views as in hard ones"
        )
    return told
