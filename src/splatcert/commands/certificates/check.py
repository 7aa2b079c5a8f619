# SPDX-License-Identifier: Apache-2.0
"""`splatcert check`: rules that a certificate must meet, for build pipelines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from splatcert.commands import CertificateOptions, unset
from splatcert.console import progress, say, show_table
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.camera import Camera
    from splatcert.certificate.certificate import Certificate

NOT_MET = 3
"""Exit code if a rule is not met; 2 is for input that cannot be used."""


@dataclass(frozen=True)
class Rule:
    """One rule and its result."""

    name: str
    limit: str
    found: str
    met: bool


@dataclass(frozen=True, kw_only=True)
class Check:
    """Check a certificate against your own limits. Exit code 0 if all rules are met, 3 if not.

    The certificate itself must be valid. Half-widths are those of the calibration views, and
    flags those of the training cameras, unless --cameras names the cameras you care about;
    these are rendered, which requires the model.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    max_half_width: Annotated[str | None, unset("WIDTH")] = None
    """Largest mean half-width over the views, where colours run from 0 to 1: 30/255 or 0.12."""
    max_flagged: Annotated[str | None, unset("SHARE")] = None
    """Largest share of cameras that are flagged as unlike the calibration views: 5% or 1/20."""
    max_alpha: Annotated[str | None, unset("LEVEL")] = None
    """Largest alpha that the certificate may have."""
    max_beta: Annotated[str | None, unset("LEVEL")] = None
    """Largest beta that the certificate may have."""
    cameras: Annotated[str | None, unset("WHICH|FILE")] = None
    """Cameras to check: orbit, spline, training, held-out, or a file or COLMAP folder."""
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = field(
        default_factory=CertificateOptions
    )
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        self._limits()

    def _limits(self) -> dict[str, Fraction]:
        """The limits that were given, as exact numbers."""
        from splatcert.conformal.levels import LevelError, parse_level

        limits = {}
        for option in ("max_half_width", "max_flagged", "max_alpha", "max_beta"):
            if (written := getattr(self, option)) is None:
                continue
            name = f"--{option.replace('_', '-')}"
            if option == "max_flagged" and written.strip() in ("0", "0%"):
                limits[option] = Fraction(0)
                continue
            try:
                limits[option] = parse_level(written, name)
            except LevelError as error:
                if option != "max_half_width":
                    raise OptionError(str(error)) from None
                raise OptionError(
                    f"{name} must lie between 0 and 1, got {written}.\n"
                    "  Write it as 30/255 or 0.12: colours run from 0 to 1."
                ) from None
        return limits

    def run(self) -> int:
        """Print one line per rule; returns the exit code."""
        from splatcert.certificate.store import folder_of

        self.inputs.start()
        rules = list(self._rules(folder_of(self.certificate)))
        met = all(rule.met for rule in rules)
        if self.json:
            content = {"kind": "check", "passed": met, "rules": [asdict(rule) for rule in rules]}
            print(json.dumps(content, indent=2))
        else:
            rows = [(r.name, r.limit, r.found, "met" if r.met else "not met") for r in rules]
            show_table(("rule", "limit", "found", "result"), rows)
            count = sum(rule.met for rule in rules)
            say("Verdict", f"{count} of {len(rules)} rules met")
        return 0 if met else NOT_MET

    def _rules(self, folder: Path) -> Iterator[Rule]:
        from splatcert.certificate.store import read_certificate
        from splatcert.conformal.levels import in_percent
        from splatcert.deploy import verify

        found = verify(folder)
        failed = ", ".join(one.name for one in found.failures)
        count = len(found.checks)
        told = f"failed: {failed}" if failed else f"{count - len(found.unchecked)} checks passed"
        yield Rule("valid by itself", "no check fails", told, not failed)
        if failed:
            return
        certificate, limits = read_certificate(folder), self._limits()
        for name in ("alpha", "beta"):
            if (limit := limits.get(f"max_{name}")) is not None:
                level = getattr(certificate, name)
                yield Rule(name, f"at most {in_percent(limit)}", in_percent(level), level <= limit)
        width, share = limits.get("max_half_width"), limits.get("max_flagged")
        if width is None and share is None:
            return
        widths, flagged, about = self._views(certificate)
        if width is not None:
            mean = sum(widths) / len(widths)
            words = f"{255 * mean:.1f} of 255, mean of {len(widths)} {about['widths']}"
            yield Rule(
                "half-width", f"at most {255 * float(width):.1f} of 255", words, mean <= width
            )
        if share is not None:
            words = f"{sum(flagged)} of {len(flagged)} {about['flags']}"
            limit = f"at most {in_percent(share)}"
            yield Rule("flagged", limit, words, Fraction(sum(flagged), len(flagged)) <= share)

    def _views(self, certificate: Certificate) -> tuple[list[float], list[bool], dict[str, str]]:
        """Mean half-width and flag of every view, and which views these are."""
        if self.cameras is None:
            widths = [certificate.threshold * v.factor for v in certificate.record.calibration]
            flags = [not flag.inside for flag in certificate.training_flags]
            return widths, flags, {"widths": "calibration views", "flags": "training cameras"}
        from splatcert.deploy import open_certificate

        ready = open_certificate(self.certificate, self.inputs.model, self.inputs.data)
        widths, flags = [], []
        for camera in progress(list(self._chosen(ready).values()), "checking cameras"):
            boxes = ready.predict(camera)
            widths.append(float(boxes.half_width.mean()))
            flags.append(boxes.flag is None or not boxes.flag.inside)
        return widths, flags, dict.fromkeys(("widths", "flags"), f"cameras ({self.cameras})")

    def _chosen(self, certificate: Certificate) -> dict[str, Camera]:
        from splatcert.frames.choose_cameras import FILM_FPS, Pool, choose, resized

        pool = Pool.of(certificate.record)
        chosen = choose(str(self.cameras), pool, fps=FILM_FPS, seconds=None)
        return resized(chosen.cameras, pool.longest_side)
