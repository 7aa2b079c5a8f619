# SPDX-License-Identifier: Apache-2.0
"""`splatcert verify`: check a certificate by itself, or against its photos and model."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands import require_threads, unset
from splatcert.console import columns, say, show_table, stages
from splatcert.errors import InputError, OptionError

if TYPE_CHECKING:
    from splatcert.verification.checks import Check, Verification

NEEDS_BOTH = "requires --data and --model"
STATES = {True: "ok", False: "failed", None: "not checkable"}
WARNING = "warning"


class VerifyError(InputError):
    """A certificate that fails a check."""


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Check a certificate, one line per check. Exit code 0 if all checks pass, 2 if not.

    By itself: seal, hashes, levels, and the threshold, computed in two independent ways. With
    --data and --model, recompute everything from scratch and compare.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    data: Annotated[Path | None, unset("PATH")] = None
    """Capture to recompute the certificate from; requires --model."""
    model: Annotated[Path | None, unset("PATH")] = None
    """Model to recompute the certificate from; requires --data."""
    images: Annotated[str | None, unset("FOLDER")] = None
    """Folder of photographs, such as images_4. Default: the certified one."""
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Does not affect the results."""
    verbose: bool = False
    """Print the details of every check in full."""
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if (self.data is None) != (self.model is None):
            raise OptionError("--data and --model go together: scores need photos and splats.")
        require_threads(self.threads)

    def run(self) -> None:
        """Check, print the results, and fail if a check does."""
        from splatcert.certificate.store import folder_of

        folder = folder_of(self.certificate)
        found = self._verify(folder)
        if self.json:
            content = {"passed": found.passed, "checks": [asdict(one) for one in found.checks]}
            print(json.dumps(content, indent=2))
        else:
            show_checks(found.checks, recomputed=self.data is not None, verbose=self.verbose)
        if not found.passed:
            names = ", ".join(check.name for check in found.failures)
            raise VerifyError(
                f"{folder} is not valid: {len(found.failures)} of {len(found.checks)} checks "
                f"failed ({names}).\n"
                "  Do not rely on its boxes. Restore the original, or certify again."
            )
        if not self.json:
            say("Verdict", self._verdict(found))

    def _verify(self, folder: Path) -> Verification:
        from splatcert.certificate.store import read_content
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.deploy import certified_capture, verify

        if self.data is None or self.model is None:
            return verify(folder)
        from splatcert.raster import native

        native.set_threads(self.threads)
        capture = certified_capture(read_content(folder)[1], self.data, self.model, self.images)
        with stages() as on, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # its boxes say so
            return verify(folder, capture, on=on)

    def _verdict(self, found: Verification) -> str:
        count = len(found.checks) - len(found.unchecked)
        looks = "the calibration photos look trained on (see unseen photos)" * bool(found.warnings)
        if self.data is None:
            return ", but ".join(
                filter(None, (f"valid by itself: all {count} checks passed", looks))
            )
        unchecked = {one.name for one in found.unchecked}
        passed, buts = f"all {count} checks passed", [looks] if looks else []
        if "training photos" in unchecked:
            buts.append(
                "nobody can check that the model has not seen the calibration photos: its file "
                "does not say what it was trained on"
            )
        elif "predictor" in unchecked:
            buts.append(
                "nobody can check what its predictor was trained on: it does not come with "
                "splatcert"
            )
        if buts:
            return f"{passed}, but {'; '.join(buts)}"
        return f"valid: {passed}, and it follows from these photos and this model"


def show_checks(checks: tuple[Check, ...], *, recomputed: bool, verbose: bool) -> None:
    """Print a table of checks; the detail of a failure or warning is never shortened."""
    rows = [
        (one.name, WARNING if one.warning else STATES[one.passed], one.detail) for one in checks
    ]
    if not recomputed:
        rows.append(("recomputation", "not checkable", NEEDS_BOTH))
    if not verbose:
        taken = sum(max(len(row[column]) + 2 for row in rows) for column in (0, 1))
        room = max(columns() - taken, 20)
        rows = [
            (name, state, detail if state in ("failed", WARNING) else shortened(detail, room))
            for name, state, detail in rows
        ]
    show_table(("check", "result", "detail"), rows)


def shortened(detail: str, room: int) -> str:
    """The first part of a detail that fits on a line."""
    if len(detail) <= room:
        return detail
    return textwrap.shorten(detail.split("; ", maxsplit=1)[0], room, placeholder=" ...")
