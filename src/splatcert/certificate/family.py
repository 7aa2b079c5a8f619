# SPDX-License-Identifier: Apache-2.0
"""A family of certificates with one promise, and its folder.

    FAMILY/family.json         the members, and the hash of each member's certificate
    FAMILY/NAME/               one certificate per member, complete in itself

`family.json` is put in place last, so a folder holds a complete family or none that is accepted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from splatcert import __version__
from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.content.promise import FamilyRecord, MemberRecord, PathRecord
from splatcert.certificate.field_file import FIELD
from splatcert.certificate.hashes import canonical, joint_hash, seal_of
from splatcert.certificate.store import (
    FAMILY,
    MAIN,
    is_certificate,
    read_certificate,
    save_certificate,
)
from splatcert.conformal.calibrate import threshold_of
from splatcert.conformal.family_conformal import family_scores, member_threshold
from splatcert.storage.schema import PlainError, from_plain, read_json, to_plain
from splatcert.storage.whole import file_hash, output_folder, write_text_whole

FORMAT, SCHEMA = "splatcert family", 1
MAX_BYTES, MOST_MEMBERS = 1 << 20, 100
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
"""Names of members, which are folders."""


@dataclass(frozen=True, kw_only=True)
class FamilyFile:
    """The content of family.json."""

    format: Literal["splatcert family"] = FORMAT
    schema: int = SCHEMA
    splatcert: str
    members: dict[str, str]
    """SHA-256 of each member's certificate.json, by name."""
    seal: str
    """Hash of everything above."""

    def __post_init__(self) -> None:
        if not 2 <= len(self.members) <= MOST_MEMBERS or not all(map(is_name, self.members)):
            raise PlainError(f"members must be 2 to {MOST_MEMBERS} names of folders")
        if self.schema != SCHEMA:
            raise PlainError(f"schema {self.schema}, but this program reads schema {SCHEMA}")


def is_name(name: str) -> bool:
    """Whether a member may have this name."""
    return NAME.fullmatch(name) is not None


@dataclass(frozen=True, eq=False)
class Family(Mapping[str, Certificate]):
    """Certificates that hold all at once: any member may be chosen afterwards."""

    members: Mapping[str, Certificate]

    def __getitem__(self, name: str) -> Certificate:
        """The certificate of one member."""
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def first(self) -> Certificate:
        """The first member."""
        return next(iter(self.members.values()))

    @property
    def record(self) -> FamilyRecord:
        """Units, thresholds, widths and prices of all members."""
        family = self.first.record.promise.family
        if family is None:
            raise CertificateError("these certificates are not members of a family")
        return family

    @property
    def guarantee(self) -> str:
        """The guarantee in words."""
        return self.first.guarantee

    def save(self, folder: str | Path) -> Path:
        """Write the family's folder; returns it."""
        folder = Path(folder)
        if is_certificate(folder):
            raise CertificateError(
                f"{folder} holds a certificate of a single model.\n"
                "  Choose another folder for the family: --output FAMILY."
            )
        output_folder(folder)
        (folder / FAMILY).unlink(missing_ok=True)
        for name, certificate in self.members.items():
            save_certificate(certificate, folder / name)
        self._share_fields(folder)
        hashes = {name: file_hash(folder / name / MAIN) for name in self.members}
        content = to_plain(FamilyFile(splatcert=__version__, members=hashes, seal=""))
        content["seal"] = seal_of(content)
        write_text_whole(folder / FAMILY, json.dumps(content, indent=1) + "\n")
        return folder

    def _share_fields(self, folder: Path) -> None:
        """Store the field of a model once: equal files become links to one, where links exist."""
        known: dict[str, Path] = {}
        for file in (folder / name / FIELD for name in self.members):
            first = known.setdefault(file_hash(file), file)
            spare = file.with_suffix(".shared")
            with suppress(OSError):  # a file system without hard links keeps the copies
                if first is not file:
                    spare.unlink(missing_ok=True)
                    os.link(first, spare)
                    os.replace(spare, file)


def family_records(
    scores: Mapping[str, Mapping[str, float]],
    units: Mapping[str, float],
    about: Mapping[str, Mapping[str, Any]],
    widths: Mapping[str, float],
    frozen: str,
    alpha: Fraction,
) -> dict[str, FamilyRecord]:
    """The family as each member stores it, from all members' scores and their units.

    R_v = max over k of R_v^(k) / c_k; q is its order statistic, and member k uses q c_k. For a
    family about paths the scores are those of stretches, under the names of their middle views.
    `widths` are the mean factors of the calibration views, `about` has scale and model.
    """
    names, views = list(units), list(next(iter(scores.values())))
    table = np.array([[scores[name][view] for name in names] for view in views])
    together = family_scores(table, [units[name] for name in names])
    q = threshold_of(together, alpha)
    members = []
    for k, name in enumerate(names):
        threshold = member_threshold(q, units[name])
        members.append(
            MemberRecord(
                name=name,
                unit=units[name],
                threshold=threshold,
                alone=threshold_of(table[:, k], alpha),
                width=threshold * widths[name],
                **about[name],
            )
        )
    family = FamilyRecord(
        member=names[0],
        frozen=frozen,
        threshold=q,
        scores=dict(zip(views, together.tolist(), strict=True)),
        members=tuple(members),
    )
    return {name: replace(family, member=name) for name in names}


def frozen_family(
    proofs: Mapping[str, str], units: Mapping[str, float], path: PathRecord | None
) -> str:
    """One hash over the frozen scales and the unit of every member, and the stretches, if any."""
    stretches = {} if path is None else {"stretches of a path": canonical(to_plain(path))}
    return joint_hash({name: f"{proofs[name]} {units[name]!r}" for name in units} | stretches)


def is_family(path: Path) -> bool:
    """Whether a path is a family's folder, or its main file."""
    return (path / FAMILY).is_file() or (path.name == FAMILY and path.is_file())


def read_family_file(path: Path) -> tuple[Path, dict[str, Any], FamilyFile]:
    """A family's folder, its main file as plain values, and as a checked record."""
    folder = path.parent if path.name == FAMILY else path
    content = read_json(folder / FAMILY, "family", MAX_BYTES, raises=CertificateError)
    try:
        return folder, content, from_plain(FamilyFile, content)
    except PlainError as error:
        raise CertificateError(
            f"{folder / FAMILY} is not a valid family: {error}.\n"
            "  It was edited or damaged: restore it, or certify again."
        ) from None


def member_folder(path: Path, member: str | None) -> Path:
    """The folder of one certificate: of the member named, else a family's first, else itself.

    A member whose certificate is not the one that the family names is refused.
    """
    if not is_family(path):
        if member is not None:
            raise CertificateError(
                f"{path} is not a family of certificates, so it has no member {member!r}.\n"
                "  Leave --member out."
            )
        return path
    folder, content, known = read_family_file(path)
    chosen = next(iter(known.members)) if member is None else member
    if chosen not in known.members:
        raise CertificateError(
            f"{path} has no member {chosen!r}.\n  Its members: {', '.join(known.members)}."
        )
    file = folder / chosen / MAIN
    intact = file.is_file() and file_hash(file) == known.members[chosen]
    if seal_of(content) != known.seal or not intact:
        raise CertificateError(
            f"{folder} has been edited: member {chosen} is not the one that {FAMILY} names.\n"
            f"  Run splatcert verify {folder} for details. Certify again, or restore it."
        )
    return folder / chosen


def read_family(path: str | Path) -> Family:
    """All members of a family, without their models."""
    _, _, known = read_family_file(Path(path))
    folders = {name: member_folder(Path(path), name) for name in known.members}
    return Family({name: read_certificate(folder) for name, folder in folders.items()})
