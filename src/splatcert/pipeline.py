# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 of the paper, phases 2 to 4: from a capture and its splats to a certificate.

Phase 1, learning the view predictor on source scenes, is `view/learn.py`; what it learned
is frozen before it comes here. Each phase may read what the algorithm lets it read: held-out
labels are handed out once, after every scale has been fixed and hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from splatcert.certificate.certificate import Certificate, observe
from splatcert.certificate.issue import Evidence, issue
from splatcert.certificate.measure import BETAS, describe, measure, tabulate
from splatcert.certificate.freeze import FrozenScales, freeze
from splatcert.certificate.refusals import (
    refuse_informed_predictor,
    refuse_unfit_views,
    refuse_unlike_model,
)
from splatcert.certificate.rule import ScaleRule
from splatcert.certificate.verify import Verification, compare, verify_folder
from splatcert.config import CertifyConfig
from splatcert.conformal.levels import parse_level
from splatcert.evaluate.views import SceneViews, ViewTable
from splatcert.field.fit import FieldFit, fit_field
from splatcert.raster.interface import Backend
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats
from splatcert.view.predictor import ViewPredictor, default_predictor
from splatcert.view.query import Observed

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


def certify(
    scene: Scene,
    splats: Splats,
    config: CertifyConfig | None = None,
    predictor: ViewPredictor | Literal["default"] | None = "default",
    *,
    backend: Backend = "cpu",
    folder: Path | None = None,
    report: Report = lambda doing, done, total: None,
) -> Certificate:
    """Boxes with a guarantee for one scene; all its held-out views with a photo calibrate.

    `predictor` is frozen on other scenes, "default" the one in the package, None for a = 1.
    With a `folder`, the fitted field is kept there, and a run that was stopped goes on from
    it to the same result.
    """
    config = CertifyConfig() if config is None else config
    alpha, beta = parse_level(config.alpha, "alpha"), parse_level(config.beta, "beta")
    betas = tuple(sorted({*BETAS, beta}))
    frozen = default_predictor() if predictor == "default" else predictor
    refuse_unfit_views(scene)
    refuse_unlike_model(scene, splats, config.background, backend)
    refuse_informed_predictor(frozen, scene, labels={})

    # Phase 2: the scene's training views, labels allowed.
    fit = fit_field(splats, scene.training, config.field, ...)
    observed = observe(splats, fit, scene.training.cameras, scene.extent, config.background)
    training = describe_training(observed, fit, scene, betas, backend, report)

    # Phase 3: the whole query batch, no labels.
    batch = describe_batch(observed, scene, backend, report)
    rule = ScaleRule.freeze(frozen, training.descriptors, batch.descriptors, config.unit)
    scales = freeze(rule, batch, scene.held_out.ledger)

    # Phase 4: calibration labels, handed out once, after all scales are fixed.
    calibration = scene.held_out.reveal(
        "calibration", scene.held_out.with_photo, by="splatcert certify"
    )
    ...
