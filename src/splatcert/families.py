# SPDX-License-Identifier: Apache-2.0
"""Several candidates, one promise: Algorithm 1 for a family of models and scales.

The phases are those of `pipeline.py`. All scales and units are fixed before the labels are
opened, once for all candidates, so any of them may be chosen afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from splatcert.camera import camera_hash
from splatcert.capture import Capture
from splatcert.certificate.family import (
    MOST_MEMBERS,
    Family,
    family_records,
    frozen_family,
    is_name,
    read_family,
)
from splatcert.certificate.hashes import photo_file_hash, splats_hash
from splatcert.certificate.history import enter_calibration
from splatcert.certificate.promise import PromiseRecord
from splatcert.certificate.record import LabelRecord
from splatcert.config import CertifyConfig
from splatcert.conformal.calibrate import shortfall
from splatcert.conformal.family_conformal import FamilyError, units_from
from splatcert.conformal.levels import parse_level
from splatcert.errors import listed
from splatcert.pipeline import issue_certificate, score_views
from splatcert.progress import Progress, quiet
from splatcert.raster.render import Backend
from splatcert.refusals import refuse_early, refuse_known_photos
from splatcert.scales.named import scale_by_name, stored_scale
from splatcert.scales.scale import FittedScale, FrozenScale, Scale
from splatcert.scales.scoring import BETAS
from splatcert.scales.training_views import TrainingSide
from splatcert.verification.checks import UNUSABLE, Check, Verification
from splatcert.verification.family_checks import named, verify_family_folder
from splatcert.verification.recompute import compare
from splatcert.verification.training_photos import check_left_out, check_training_photos


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model under one scale."""

    capture: Capture
    scale: Scale


def certify_family(
    captures: Mapping[str, Capture],
    *,
    scales: Sequence[Scale | str] = ("paper",),
    config: CertifyConfig | None = None,
    backend: Backend = "cpu",
    folder: Path | None = None,
    remember: bool = True,
    on: Progress = quiet,
) -> Family:
    """Certify every model under every scale, with one promise for all of them.

    `captures` has the same photographs with several models, by name. A certificate for one
    model is void once somebody tries several and keeps the narrowest; here any member may be
    chosen afterwards. A member's name is that of its model, its scale, or `model-scale`.
    `remember` is as for `certify`: the family is one entry of the user's ledger.
    """
    config = config or CertifyConfig()
    candidates = candidates_of(captures, scales, config)
    return certify_candidates(candidates, config, backend, folder=folder, remember=remember, on=on)


def candidates_of(
    captures: Mapping[str, Capture], scales: Sequence[Scale | str], config: CertifyConfig
) -> dict[str, Candidate]:
    """Every model under every scale, by name."""
    candidates: dict[str, Candidate] = {}
    for model, capture in captures.items():
        for scale in scales:
            known = scale
            if isinstance(known, str):
                known = scale_by_name(known, capture.scene, config.unit)
            parts = (model * (len(captures) > 1), known.name * (len(scales) > 1))
            name = member_name("-".join(filter(None, parts)) or known.name)
            if name in candidates:
                raise FamilyError(f"two candidates are called {name}.\n  Name them differently.")
            candidates[name] = Candidate(capture, known)
    return candidates


def certify_candidates(
    candidates: Mapping[str, Candidate],
    config: CertifyConfig,
    backend: Backend = "cpu",
    *,
    folder: Path | None = None,
    remember: bool = True,
    on: Progress = quiet,
) -> Family:
    """Algorithm 1, phases 2 to 4, for several candidates at once."""
    alpha, beta = parse_level(config.alpha, "alpha"), parse_level(config.beta, "beta")
    betas = tuple(sorted({*BETAS, beta}))
    candidates = refuse_candidates(candidates, alpha, backend)
    held_out = next(iter(candidates.values())).capture.scene.held_out
    sides = {
        name: one.capture.training_side(config.field, backend, betas)
        for name, one in candidates.items()
    }

    # Phase 2: training views, labels allowed.
    fitted = _fit(candidates, sides, folder, on)

    # Phase 3: the whole query batch, without labels. These lines fix every scale and unit.
    frozen = {name: one.freeze(tuple(held_out), on=on) for name, one in fitted.items()}
    units = {name: _unit(fitted[name], frozen[name], betas.index(beta)) for name in fitted}
    proofs, used_before = {n: f.hash for n, f in frozen.items()}, len(held_out.ledger.entries)
    proof = frozen_family(proofs, units)

    # Phase 4: the next line opens the calibration labels, once for all candidates.
    labelled = held_out.reveal("calibration", held_out.with_photo, by="certify")
    for one in candidates.values():
        refuse_known_photos(one.scale, one.capture.scene, labelled)
    files = map(photo_file_hash, labelled if remember else ())
    history = enter_calibration(proof, (alpha, beta), files)
    scored = {name: score_views(one, labelled, betas, beta, on) for name, one in frozen.items()}
    families = family_records(
        {name: {view.name: view.score for view in views} for name, views in scored.items()},
        units,
        {
            name: {"scale": one.scale.name, "gaussians": sides[name].model.gaussians}
            for name, one in candidates.items()
        },
        {name: float(np.mean([v.factor for v in views])) for name, views in scored.items()},
        proof,
        alpha,
    )
    entries = held_out.ledger.entries
    members = {}
    for name, one in candidates.items():
        labels = LabelRecord(frozen=proofs[name], handed_out_before=used_before, ledger=entries)
        promise = PromiseRecord(kind="family", path=None, family=families[name])
        members[name] = issue_certificate(
            one.capture,
            config,
            sides[name],
            fitted[name],
            frozen[name],
            (labels, history),
            scored[name],
            promise,
            families[name].own.threshold,
        )
    return Family(members)


def refuse_candidates(
    candidates: Mapping[str, Candidate], alpha: Fraction, backend: Backend
) -> dict[str, Candidate]:
    """Candidates of one scene, with one ledger; those that cannot share a promise are refused."""
    if not 2 <= len(candidates) <= MOST_MEMBERS:
        raise FamilyError(
            f"a family has 2 to {MOST_MEMBERS} candidates, got {len(candidates)}.\n"
            "  Name several models, or several scales such as --scale paper,constant."
        )
    first = next(iter(candidates.values())).capture
    if message := shortfall(len(first.scene.held_out.with_photo), alpha):
        raise FamilyError(message)
    for name, one in candidates.items():
        if getattr(one.scale, "unit", "deployed") == "batch":
            raise FamilyError("unit batch cannot be used in a family.\n  Use unit deployed.")
        if wrong := _differing_views(first, one.capture):
            raise FamilyError(
                f"candidate {name} was opened with different views or cameras: {listed(wrong)}.\n"
                "  All candidates must have the same photos, resolution and hold-out."
            )
        refuse_early(one.capture, one.scale, backend)
    return {
        name: Candidate(replace(one.capture, scene=first.scene), one.scale)
        for name, one in candidates.items()
    }


def member_name(text: str) -> str:
    """A name for a member, which is also a folder's, from that of a model or scale."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", text).lstrip("._-")[:80]
    if not is_name(name):
        raise FamilyError(f"{text!r:.80} cannot be the name of a member.\n  Rename the model.")
    return name


def _differing_views(first: Capture, other: Capture) -> list[str]:
    """Names of views that differ in role or camera."""
    one, two = _roles(first), _roles(other)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


def _roles(capture: Capture) -> dict[str, tuple[str, bool]]:
    held_out = set(capture.scene.held_out.names)
    cameras = capture.scene.cameras
    return {name: (camera_hash(camera), name in held_out) for name, camera in cameras.items()}


def _fit(
    candidates: Mapping[str, Candidate],
    sides: Mapping[str, TrainingSide],
    folder: Path | None,
    on: Progress,
) -> dict[str, FittedScale]:
    """Every candidate fitted; candidates of one model share its residual field."""
    fitted, of_model = {}, dict[str, str]()
    for name, one in candidates.items():
        first = of_model.setdefault(sides[name].model.splats, name)
        place = None if folder is None else folder / first
        known = None if first == name else fitted[first].under(one.scale)
        fitted[name] = known or one.scale.fit(sides[name], folder=place, on=on)
    return fitted


def _unit(fitted: FittedScale, frozen: FrozenScale, beta: int) -> float:
    """c_k: the median of a candidate's scores on training photographs."""
    scores = fitted.training_scores(frozen.rule, beta)
    return float(units_from([[score] for score in scores])[0])


def verify_family(path: Path, captures: Sequence[Capture], on: Progress = quiet) -> Verification:
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
        candidates[name] = Candidate(capture, stored_scale(one.record.scale))
    record = stored.first.record
    try:
        again = certify_candidates(
            candidates, record.config, record.renderer.backend, remember=False, on=on
        )
    except UNUSABLE as error:
        refused = Check("from scratch", False, " ".join(str(error).split()))
        return Verification((*told, refused))
    for name in stored:
        told.extend(named(one, name) for one in compare(stored[name], again[name]))
    return Verification(tuple(told))
