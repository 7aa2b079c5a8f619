# SPDX-License-Identifier: Apache-2.0
"""`splatcert verify`: check a certificate by itself, or against its photos and model."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands import unset
from splatcert.commands.engines import CertifiedEngineOptions, Engine
from splatcert.console import columns, say, show_table, stages
from splatcert.errors import InputError, OptionError

if TYPE_CHECKING:
    from splatcert.verification.checks import Check, Verification

NEEDS_BOTH = "requires --data and --model"
UNSIGNED = ("signature", "none", "nobody has signed this certificate")
UNCHECKED = ("signature", "not checked", "pass --signed-by ALLOWED to check who signed it")
UNKNOWN = {
    "training photos": "that the model has not seen the calibration photos: its file does not say "
    "what it was trained on",
    "held-out photos": "why some held-out photos did not calibrate: the hardest may have been left "
    "out",
    "predictor": "what its predictor was trained on: it does not come with splatcert",
}
"""What the verdict says of checks that were not possible, the gravest first."""
STATES = {True: "ok", False: "failed", None: "not checkable"}
WARNING = "warning"


class VerifyError(InputError):
    """A certificate that fails a check."""


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Check a certificate, one line per check. Exit code 0 if all checks pass, 2 if not.

    Without options, check seal, hashes, levels and threshold from the certificate's folder. The
    threshold is computed in two independent ways. With --data and --model, also recompute
    everything from scratch and compare. With --signed-by, also check who signed it.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    data: Annotated[Path | None, unset("PATH")] = None
    """Capture to recompute the certificate from; requires --model."""
    model: Annotated[tuple[Path, ...], tyro.conf.UseAppendAction, unset("PATH")] = ()
    """Model to recompute the certificate from; requires --data. Repeat it for a family."""
    images: Annotated[str | None, unset("FOLDER")] = None
    """Folder of photographs, such as images_4. Default: the certified one."""
    sparse: Annotated[int | None, unset("N")] = None
    """COLMAP model to read, sparse/N. Default: the certified one."""
    signed_by: Annotated[Path | None, unset("ALLOWED")] = None
    """File of allowed signers (a name and a public SSH key per line); one must have signed."""
    engine: tyro.conf.OmitArgPrefixes[CertifiedEngineOptions] = field(
        default_factory=CertifiedEngineOptions
    )
    verbose: bool = False
    """Print the details of every check in full."""
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if (self.data is None) != (not self.model):
            raise OptionError("--data and --model go together: scores require photos and splats.")
        if self.data is None and self.engine.backend != "certified":
            raise OptionError("--backend goes with --data and --model: nothing else is rendered.")

    def run(self) -> None:
        """Check, print the results, and fail if a check does."""
        from splatcert.certificate.family import is_family
        from splatcert.certificate.signature import is_signed, require_allowed, require_ssh_keygen
        from splatcert.certificate.store import folder_of

        family = is_family(self.certificate)
        folder = self.certificate if family else folder_of(self.certificate)
        if self.signed_by is not None:
            if family:
                raise OptionError(
                    f"{folder} is a family, whose members are signed one by one.\n"
                    f"  Verify a member: splatcert verify {folder}/NAME --signed-by ALLOWED."
                )
            require_allowed(self.signed_by)
            require_ssh_keygen()
        found = self._signature(folder, self._verify(folder))
        if self.json:
            content = {"passed": found.passed, "checks": [asdict(one) for one in found.checks]}
            print(json.dumps({**content, "signed": is_signed(folder)}, indent=2))
        else:
            left_out = [] if self.data else [("recomputation", "not checkable", NEEDS_BOTH)]
            if self.signed_by is None:
                left_out.append(UNCHECKED if is_signed(folder) else UNSIGNED)
            show_checks(found.checks, left_out, verbose=self.verbose)
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
        from splatcert.certificate.family import is_family, member_folder
        from splatcert.certificate.store import read_content
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.deploy import certified_capture, verify

        if self.data is None:
            return verify(folder)
        family = is_family(folder)
        if len(self.model) != 1 and not family:
            raise OptionError(f"{folder} has one model, but --model names {len(self.model)}.")
        record = read_content(member_folder(folder, None))[1]
        data = self.data

        def recompute(engine: Engine) -> Verification:
            opened = [
                certified_capture(record, data, one, self.images, self.sparse, engine.asked)
                for one in self.model
            ]
            with stages() as on, catch_warnings():
                simplefilter("ignore", CalibrationTooSmall)  # its boxes say so
                return verify(folder, opened if family else opened[0], backend=engine.asked, on=on)

        return self.engine.attempt(recompute)

    def _signature(self, folder: Path, found: Verification) -> Verification:
        """With the check of the signature, if one was asked for."""
        from splatcert.certificate.signature import check_signed_by
        from splatcert.verification.checks import Verification, run_check

        allowed = self.signed_by
        if allowed is None:
            return found
        signed = run_check("signature", lambda: f"valid, by {check_signed_by(folder, allowed)}")
        return Verification((*found.checks, signed))

    def _verdict(self, found: Verification) -> str:
        count = len(found.checks) - len(found.unchecked)
        warned = {one.name.rpartition(": ")[2] for one in found.warnings}
        looks = "the calibration photos may have been trained on (see unseen photos)" * (
            "unseen photos" in warned
        )
        if self.data is None:
            return ", but ".join(
                filter(None, (f"valid by itself: all {count} checks passed", looks))
            )
        unchecked = {one.name.rpartition(": ")[2] for one in found.unchecked}  # of any member
        passed, buts = f"all {count} checks passed", [looks] if looks else []
        if unknown := next((words for n, words in UNKNOWN.items() if n in unchecked), ""):
            buts.append(f"nobody can check {unknown}")
        if buts:
            return f"{passed}, but {'; '.join(buts)}"
        return f"valid: {passed}, and it follows from these photos and this model"


def show_checks(
    checks: tuple[Check, ...], left_out: Sequence[tuple[str, str, str]], *, verbose: bool
) -> None:
    """Print a table of checks and of those left out.

    The detail of a failure or a warning is never shortened.
    """
    rows = [
        (one.name, WARNING if one.warning else STATES[one.passed], one.detail) for one in checks
    ]
    rows += left_out
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
