# SPDX-License-Identifier: Apache-2.0
"""`splatcert verify`: does a certificate hold, by itself and against its data?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.console import say, stages
from splatcert.errors import InputError, OptionError


class VerifyError(InputError):
    """A certificate that does not hold."""


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Check a certificate, one line a check; exit code 0 if all hold, 2 if not.

    By itself: seal, hashes, levels, and the threshold by two independent roads. With its
    photos and its model, everything is computed again from scratch, which finds what a
    careful forger could hide.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder that splatcert certify wrote."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """The capture, to compute everything again; needs --model."""
    model: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """The model, to compute everything again; needs --data."""
    images: Annotated[str | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of photographs, such as images_4; unless told, the one that was certified."""
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Results do not depend on it."""
    json: bool = False
    """Print one JSON object instead of lines."""

    def __post_init__(self) -> None:
        if (self.data is None) != (self.model is None):
            raise OptionError("--data and --model go together: scores need photos and splats.")
        if self.threads < 0:
            raise OptionError(f"--threads must be 0 or more, got {self.threads}.")

    def run(self) -> None:
        """Check, tell, and refuse if something does not hold."""
        from splatcert.certificate.store import folder_of, read_content
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.deploy import load_certified_scene, load_certified_splats
        from splatcert.pipeline import verify
        from splatcert.raster import native

        native.set_threads(self.threads)
        folder = folder_of(self.certificate)
        scene, splats = None, None
        if self.data is not None and self.model is not None:
            record = read_content(folder)[1]
            scene = load_certified_scene(record, self.data, self.images)
            splats = load_certified_splats(record, self.model, scene)
        with stages() as report, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # its boxes say so
            found = verify(folder, scene, splats, report=report)
        if self.json:
            content = {"passed": found.passed, "checks": [asdict(one) for one in found.checks]}
            print(json.dumps(content, indent=2))
        else:
            for check in found.checks:
                say(check.name, check.detail if check.passed else f"FAILED: {check.detail}")
        if not found.passed:
            names = ", ".join(check.name for check in found.failures)
            raise VerifyError(
                f"{folder} does not hold: {len(found.failures)} of {len(found.checks)} checks "
                f"failed ({names}).\n  Do not rely on its boxes. Restore it, or certify again."
            )
        if not self.json and scene is None:
            say("holds", "by itself; give --data and --model to compute it again from scratch")
        elif not self.json:
            say("holds", "and follows from these photos and this model")
