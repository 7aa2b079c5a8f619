# SPDX-License-Identifier: Apache-2.0
"""Which photographs have calibrated before: a ledger of the user's own that outlives every run.

The guarantee is about one certification. Certifying the same photographs again, after a look at
the first result, is a choice made by their labels, which no certificate can see by itself. So
every calibration is entered here by the hashes of its photographs, before their scores are
computed, and each certificate stores how many came before it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction
from pathlib import Path

from splatcert.certificate.content.promise import PromiseRecord
from splatcert.certificate.content.record import ModelRecord, PhotoHistory, Record, RendererRecord
from splatcert.certificate.hashes import canonical, joint_hash, photo_mark
from splatcert.conformal.calibrate import ordinal
from splatcert.storage.schema import to_plain
from splatcert.storage.whole import append_line, locked, require_regular_file

STATE = "SPLATCERT_STATE"
"""Environment variable with the folder of the ledger."""
FILE = "calibrations.jsonl"
UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)


class HistoryUnavailable(UserWarning):
    """The ledger cannot be kept, so certificates do not know of each other."""


@dataclass(frozen=True)
class LedgerLine:
    """One line of the ledger."""

    identity: str
    """Hash of everything that determines the boxes; the same in an identical run."""
    photos: frozenset[str]
    """Marks of the photographs' files."""


def scales_identity(
    model: ModelRecord, renderer: RendererRecord, frozen: str, promise: PromiseRecord
) -> str:
    """Hash of what determines the boxes before labels are used; of a family, all its members."""
    if promise.family is not None:
        return promise.family.frozen
    return joint_hash(
        [model.splats, canonical(to_plain(renderer)), frozen, canonical(to_plain(promise))]
    )


def _identity(scales: str, levels: tuple[Fraction, Fraction], photos: frozenset[str]) -> str:
    """Hash of what determines the boxes: scales, levels, photographs."""
    return joint_hash([scales, *map(str, levels), *sorted(photos)])


def history_file() -> Path:
    """The ledger: in $SPLATCERT_STATE, else in the user's state folder (XDG)."""
    if folder := os.environ.get(STATE):
        return Path(folder) / FILE
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local/state") / "splatcert" / FILE


def enter_calibration(
    scales: str, levels: tuple[Fraction, Fraction], files: Iterable[str | None]
) -> PhotoHistory | None:
    """Enter a calibration unless it is listed; returns what the ledger knew before it.

    `scales` is their `scales_identity`, `files` are hashes of its photographs. Pictures without
    files are not entered: None. A ledger that cannot be
    written never stops a certification: a warning, and None.
    """
    photos = _marks(files)
    if not photos:
        return None
    identity = _identity(scales, levels, photos)
    try:
        path = history_file()
        with locked(path.with_suffix(".lock")):
            listed = list(_read(path))
            if identity not in (one.identity for one in listed):
                when = datetime.now(timezone.utc).isoformat(timespec="seconds")
                entry = {"when": when, "identity": identity, "photos": sorted(photos)}
                append_line(path, json.dumps(entry))
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        warnings.warn(
            f"the ledger of calibrated photos cannot be kept: {error}.\n"
            "  Later certificates will not know that these photos calibrated this one.\n"
            f"  Set {STATE} to a folder that is writable.",
            HistoryUnavailable,
            stacklevel=3,
        )
        return None
    before = []
    for one in listed:
        if one.identity == identity:
            break
        before.append(one)
    return _shared(photos, before)


def _read(path: Path) -> Iterator[LedgerLine]:
    """The lines of the ledger that can be read."""
    if not path.exists():
        return
    for line in require_regular_file(path).read_bytes().splitlines():
        with suppress(*UNREADABLE):
            entry = json.loads(line)
            yield LedgerLine(str(entry["identity"]), frozenset(map(str, entry["photos"])))


def _marks(files: Iterable[str | None]) -> frozenset[str]:
    """Marks of the photographs that have a file."""
    return frozenset(photo_mark("", file) for file in files if file is not None)


def _shared(photos: frozenset[str], others: list[LedgerLine]) -> PhotoHistory:
    """How many of these calibrations used some of these photographs, and how many of these."""
    used = {one.identity: one.photos & photos for one in others}
    return PhotoHistory(
        certificates=sum(bool(some) for some in used.values()),
        photos=len(frozenset().union(*used.values())),
    )


def other_certificates(record: Record) -> PhotoHistory | None:
    """What this computer's ledger lists beside this certificate; None if it cannot be read."""
    identity, photos = _entry_of(record)
    try:
        listed = [one for one in _read(history_file()) if one.identity != identity]
    except (OSError, RuntimeError):
        return None
    return _shared(photos, listed)


def was_made_here(record: Record) -> bool:
    """Whether this computer's ledger lists the certificate; False if it cannot be read."""
    identity, _ = _entry_of(record)
    try:
        return any(one.identity == identity for one in _read(history_file()))
    except (OSError, RuntimeError):
        return False


def _entry_of(record: Record) -> tuple[str, frozenset[str]]:
    """Identity and photographs under which the ledger lists a certificate."""
    photos = _marks(view.file for view in record.calibration)
    levels = record.guarantee.alpha, record.guarantee.beta
    scales = scales_identity(record.model, record.renderer, record.labels.frozen, record.promise)
    return _identity(scales, levels, photos), photos


def history_words(record: Record) -> str:
    """Other certificates that the same photographs calibrated, and what follows; or nothing."""
    views, told = len(record.calibration), []
    before, here = record.history, other_certificates(record)
    if before is not None and before.certificates:
        count, all_of_them = before.certificates, before.photos == views
        which = f"These {views}" if all_of_them else f"{before.photos} of these {views}"
        told.append(
            f"{which} photos calibrated {count} earlier certificate{'s' * (count > 1)}; this is "
            f"the {ordinal(count + 1)}."
        )
    known = before.certificates if before is not None else 0
    if here is not None and here.certificates > known:
        more = here.certificates - known
        which = "" if here.photos == views else f"{here.photos} of "
        told.append(
            f"The ledger on this computer lists {more} {'other' if not known else 'further'} "
            f"certificate{'s' * (more > 1)} calibrated on {which}these {views} photos."
        )
    if not told:
        return ""
    return (
        f"{' '.join(told)} The guarantee holds for one certification: it does not cover a choice "
        "between several by their results."
    )
