# SPDX-License-Identifier: Apache-2.0
"""Several candidates, one promise: Algorithm 1 for a family of models and scales.

The phases are those of `pipeline.py`. All scales and units are fixed before the labels are
opened, once for all candidates, so any of them may be chosen afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from splatcert.capture import Capture
from splatcert.certificate.content.promise import PromiseRecord
from splatcert.certificate.content.record import LabelRecord
from splatcert.certificate.family import Family, family_records, frozen_family
from splatcert.certificate.hashes import photo_file_hash
from splatcert.certificate.history import enter_calibration
from splatcert.certificate.issue import Calibration
from splatcert.config import CertifyConfig, PathPromise
from splatcert.conformal.family_conformal import units_from
from splatcert.conformal.levels import parse_level
from splatcert.families.candidates import Candidate, candidates_of, refuse_candidates
from splatcert.progress import Progress, part_of, quiet
from splatcert.raster.render import Backend
from splatcert.refusals import refuse_known_photos, refuse_other_field
from splatcert.scales.scale import FittedScale, FrozenScale, Scale, issued
from splatcert.scales.scoring import BETAS, score_views
from splatcert.scales.training_views import TrainingSide


def certify_family(
    captures: Mapping[str, Capture],
    *,
    scales: Sequence[Scale | str] = ("guided",),
    config: CertifyConfig | None = None,
    promise: PathPromise | None = None,
    backend: Backend = "cpu",
    folder: Path | None = None,
    remember: bool = True,
    on: Progress = quiet,
) -> Family:
    """Certify every model under every scale, with one promise for all of them.

    `captures` has the same photographs with several models, by name. A certificate for one
    model is void once somebody tries several and keeps the narrowest; here any member may be
    chosen afterwards. A member's name is that of its model, its scale, or `model-scale`. With a
    `promise`, the family is about stretches of a path, and a member is chosen per stretch.
    """
    config = config or CertifyConfig()
    candidates = candidates_of(captures, scales, config)
    return certify_candidates(
        candidates, promise, config, backend, folder=folder, remember=remember, on=on
    )


def certify_candidates(
    candidates: Mapping[str, Candidate],
    promise: PathPromise | None,
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
    candidates, alone = refuse_candidates(candidates, promise, (alpha, beta), backend)
    for one in candidates.values():
        refuse_other_field(one.scale, config.field)
    held_out = next(iter(candidates.values())).capture.scene.held_out
    sides = {
        name: one.capture.training_side(config.field, backend, betas)
        for name, one in candidates.items()
    }

    # Phase 2: training views, labels allowed.
    fitted = _fit(candidates, sides, folder, on)

    # Phase 3: the whole query batch, without labels. These lines fix every scale and unit.
    frozen = {n: f.freeze(tuple(held_out), on=part_of(on, n)) for n, f in fitted.items()}
    units = {name: _unit(fitted[name], frozen[name], betas.index(beta)) for name in fitted}
    proofs, used_before = {n: f.hash for n, f in frozen.items()}, len(held_out.ledger.entries)
    proof = frozen_family(proofs, units, alone.path)
    names = alone.calibrating(held_out.with_photo)

    # Phase 4: the next line opens the calibration labels, once for all candidates.
    labelled = held_out.reveal("calibration", names, by="certify")
    for one in candidates.values():
        refuse_known_photos(one.scale, one.capture.scene, labelled)
    files = map(photo_file_hash, labelled if remember else ())
    history = enter_calibration(proof, (alpha, beta), files)
    scored = {
        name: score_views(one, labelled, betas, beta, part_of(on, name))
        for name, one in frozen.items()
    }
    families = family_records(
        {n: alone.own_scores({v.name: v.score for v in views}) for n, views in scored.items()},
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
        found = Calibration(
            levels=(alpha, beta),
            promise=PromiseRecord(kind="family", path=alone.path, family=families[name]),
            q=families[name].own.threshold,
            views=scored[name],
            labels=LabelRecord(frozen=proofs[name], handed_out_before=used_before, ledger=entries),
            history=history,
        )
        members[name] = issued(
            found, config, one.capture.record(), sides[name], fitted[name], frozen[name]
        )
    return Family(members)


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
        fitted[name] = known or one.scale.fit(sides[name], folder=place, on=part_of(on, first))
    return fitted


def _unit(fitted: FittedScale, frozen: FrozenScale, beta: int) -> float:
    """c_k: the median of a candidate's scores on training photographs."""
    scores = fitted.training_scores(frozen.rule, beta)
    return float(units_from([[score] for score in scores])[0])
