# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 (alg:vscp), phase by phase as in the paper, with the same access to labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from splatcert.capture import Capture, as_capture
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.content.record import LabelRecord
from splatcert.certificate.hashes import photo_file_hash
from splatcert.certificate.history import enter_calibration, scales_identity
from splatcert.certificate.issue import Calibration
from splatcert.config import CertifyConfig, FieldConfig, LearnConfig, PathPromise
from splatcert.conformal.calibrate import CalibrationTooSmall, shortfall
from splatcert.conformal.levels import parse_level
from splatcert.difficulty.card import field_card
from splatcert.difficulty.learn import choose, fit_predictor, try_all
from splatcert.difficulty.predictor import ViewPredictor
from splatcert.difficulty.sources import distinct, source_scene
from splatcert.difficulty.views_file import SceneViews
from splatcert.progress import Progress, quiet
from splatcert.raster.render import Backend
from splatcert.refusals import (
    refuse_early,
    refuse_known_photos,
    refuse_other_field,
    refuse_promise,
)
from splatcert.scales.named import scale_by_name
from splatcert.scales.scale import Scale, issued
from splatcert.scales.scoring import BETAS, score_views, with_tenths
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats


def learn(
    scenes: Sequence[SceneViews],
    config: LearnConfig | None = None,
    field: FieldConfig | None = None,
) -> ViewPredictor:
    """Phase 1, on source scenes: theta, lambda_a and lambda_b, all that transfers to others.

    `scenes` are the views of certificates of the paper's scale, not of the guided one.
    `field` says how the sources' residual fields were fitted, for the card.
    """
    config = config or LearnConfig()
    sources = [source_scene(views, config) for views in distinct(scenes)]
    tried = try_all(sources)  # each scene predicted without itself
    found = fit_predictor(sources, tried, choose(tried, config.penalty), config)
    known = {} if field is None else {"field": field_card(field)}
    return replace(found, card={**found.card, **known})  # frozen from here


def certify(
    capture: Capture | Scene,
    splats: Splats | None = None,
    *,
    unseen: Sequence[str] | None = None,
    scale: Scale | str = "guided",
    promise: PathPromise | None = None,
    config: CertifyConfig | None = None,
    backend: Backend = "cpu",
    folder: Path | None = None,
    remember: bool = True,
    on: Progress = quiet,
) -> Certificate:
    """Certify one capture; every held-out view with a photo calibrates.

    For pictures in memory, pass scene and splats, and name in `unseen` the held-out views,
    which the model must not have seen. `scale` is a name or a `Scale`: "guided" predicts from the
    training photographs, "paper" without them. With a `promise`, the certificate is about
    stretches of a path instead of views. With a `folder`, the fitted field is stored there, so an
    interrupted run resumes from it, with the same result. Photo files that calibrate are entered
    in the user's ledger, unless `remember` is False.
    """
    config = config or CertifyConfig()
    capture = as_capture(capture, splats, unseen, config.background)
    alpha, beta = parse_level(config.alpha, "alpha"), parse_level(config.beta, "beta")
    betas = tuple(sorted({*BETAS, beta}))
    chosen = scale_by_name(scale, capture.scene, config.unit) if isinstance(scale, str) else scale
    refuse_early(capture, chosen, backend)
    refuse_other_field(chosen, config.field)
    promised = refuse_promise(promise, capture.scene, (alpha, beta), chosen)
    side, held_out = capture.training_side(config.field, backend, betas), capture.scene.held_out

    # Phase 2: training views, labels allowed.
    fitted = chosen.fit(side, folder=folder, on=on)

    # Phase 3: the whole query batch, without labels. The next line fixes every scale.
    frozen = fitted.freeze(tuple(held_out), on=on)
    proof, used_before = frozen.hash, len(held_out.ledger.entries)
    names = promised.calibrating(held_out.with_photo)

    # Phase 4: the next line opens the calibration labels, once.
    labelled = held_out.reveal("calibration", names, by="certify")
    refuse_known_photos(chosen, capture.scene, labelled)
    files = map(photo_file_hash, labelled if remember else ())
    scales = scales_identity(side.model, side.renderer, proof, promised)
    history = enter_calibration(scales, (alpha, beta), files)
    scored = score_views(frozen, labelled, betas, beta, on)
    q = promised.threshold({v.name: v.score for v in scored}, alpha)  # eq:outer-quantile
    if message := shortfall(len(scored), alpha):
        warnings.warn(message, CalibrationTooSmall, stacklevel=2)
    else:
        scored = with_tenths(frozen, labelled, scored, q, on)
    uses = LabelRecord(frozen=proof, handed_out_before=used_before, ledger=held_out.ledger.entries)
    found = Calibration(
        levels=(alpha, beta), promise=promised, q=q, views=scored, labels=uses, history=history
    )
    return issued(found, config, capture.record(), side, fitted, frozen)
