# SPDX-License-Identifier: Apache-2.0
"""A stored family compared with one computed from scratch from its photographs and models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from splatcert.capture import Capture
from splatcert.certificate.family import read_family
from splatcert.certificate.hashes import splats_hash
from splatcert.errors import listed
from splatcert.families.candidates import Candidate
from splatcert.families.certify import certify_candidates
from splatcert.progress import Progress, quiet
from splatcert.raster.render import Backend
from splatcert.scales.named import stored_scale
from splatcert.scales.thaw import half_widths
from splatcert.verification.checks import UNUSABLE, Check, Verification
from splatcert.verification.family_checks import named, verify_family_folder
from splatcert.verification.recompute import compare
from splatcert.verification.training_photos import check_left_out, check_training_photos


def verify_family(
    path: Path,
    captures: Sequence[Capture],
    backend: Backend | None = None,
    on: Progress = quiet,
) -> Verification:
    """Every check of a family, and all its members recomputed together from their models."""
    offline = verify_family_folder(path)
    if not offline.passed:
        return offline
    stored = read_family(path)
    by_model = {splats_hash(one.splats): one for one in captures}
    if missing := [n for n, one in stored.items() if one.record.model.splats not in by_model]:
        told = f"none of the given models is that of {listed(missing)}"
        return Verification((*offline.checks, Check("models", False, told)))
    candidates, told = {}, list(offline.checks)
    for name, one in stored.items():
        capture = by_model[one.record.model.splats]
        told.append(named(check_training_photos(one.record, capture), name))
        told.extend(named(found, name) for found in check_left_out(one.record, capture))
        candidates[name] = Candidate(capture, stored_scale(one.record.scale, one.record.center))
    record = stored.first.record
    try:
        again = certify_candidates(
            candidates,
            record.promise.asked(),
            record.config,
            backend or record.renderer.backend,
            remember=False,
            on=on,
        )
    except UNUSABLE as error:
        refused = Check("from scratch", False, " ".join(str(error).split()))
        return Verification((*told, refused))
    for name, candidate in candidates.items():
        splats, photos = candidate.capture.splats, candidate.capture.scene.training
        maps = half_widths(stored[name], again[name], splats, candidate.scale, photos)
        told.extend(named(one, name) for one in compare(stored[name], again[name], maps))
    return Verification(tuple(told))
