# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 of the paper, phases 2 to 4: from a capture and its splats to a certificate.

Phase 1, learning the view predictor on source scenes, is `view/learn.py`; what it learned
is frozen before it comes here. Each phase reads what the algorithm lets it read: held-out
labels are handed out once, after every scale has been fixed and hashed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from splatcert.certificate.certificate import Certificate, observe
from splatcert.certificate.checks import UNUSABLE, Check, Verification
from splatcert.certificate.freeze import FrozenScales
from splatcert.certificate.issue import Findings, issue, training_record
from splatcert.certificate.measure import Description, Measurement, ViewGroup, measure
from splatcert.certificate.recompute import compare
from splatcert.certificate.request import Request
from splatcert.certificate.resume import fitted_field
from splatcert.certificate.rule import ScaleRule
from splatcert.certificate.store import folder_of, read_content, read_parts
from splatcert.certificate.verify import verify_folder
from splatcert.config import CertifyConfig
from splatcert.conformal.calibrate import CalibrationTooSmall, shortfall
from splatcert.difficulty.predictor import Shipped, ViewPredictor
from splatcert.field.fit import FieldFit, Report
from splatcert.field.fitted_scene import Observed
from splatcert.field.support import folds_of
from splatcert.raster.render import Backend
from splatcert.refusals import (
    chosen_predictor,
    refuse_informed_predictor,
    refuse_unfit_views,
    refuse_unlike_model,
)
from splatcert.scene.roles import CalibrationView
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats


def certify(
    scene: Scene,
    splats: Splats,
    config: CertifyConfig | None = None,
    predictor: ViewPredictor | Shipped | None = "default",
    *,
    backend: Backend = "cpu",
    folder: Path | None = None,
    report: Report | None = None,
) -> Certificate:
    """Boxes with a guarantee for one scene; every held-out view with a photo calibrates.

    `predictor` was frozen on other scenes: "default" is one in the package that has seen no
    held-out view of this scene, or name one of `splatcert.shipped`; None is a = 1.
    With a `folder`, the fitted field is kept there, and a run that was stopped goes on from
    it to the same result.
    """
    request = Request(scene, splats, config or CertifyConfig(), backend, report)
    frozen = chosen_predictor(predictor, scene)[1] if isinstance(predictor, str) else predictor
    refuse_early(request, frozen)
    return run_phases(request, frozen, folder)


def run_phases(
    request: Request, frozen: ViewPredictor | None, folder: Path | None = None
) -> Certificate:
    """Phases 2 to 4 of a request that `refuse_early` has let pass."""
    scene, splats = request.scene, request.splats

    # Phase 2: the scene's training views, labels allowed.
    seen = tuple(training_record(view) for view in scene.training)
    fit = fitted_field(request, seen, folder)
    observed = observe(splats, fit, scene.training.cameras, scene.extent, request.config.background)
    training = study_training(request, observed, fit)

    # Phase 3: the whole query batch, no labels.
    batch = describe_batch(request, observed)
    rule = ScaleRule.freeze(frozen, training.descriptors, batch.descriptors, request.config.unit)
    scales = FrozenScales.of(rule, batch.described, scene.held_out.ledger)

    # Phase 4: calibration labels, handed out once.
    calibration = scene.held_out.reveal("calibration", scene.held_out.with_photo, by="certify")
    refuse_informed_predictor(frozen, scene, calibration)
    held_out = replace(batch, measured=score_views(request, observed, scales, calibration))
    found = Findings(
        seen=seen,
        fit=fit,
        training=training,
        held_out=held_out,
        scales=scales,
        calibration=calibration,
    )
    if message := shortfall(len(calibration), request.alpha):
        warnings.warn(message, CalibrationTooSmall, stacklevel=3)
    return issue(request, found)


def refuse_early(request: Request, predictor: ViewPredictor | None) -> None:
    """Everything that can be refused before any work is done or any label read."""
    scene, config = request.scene, request.config
    refuse_unfit_views(scene)
    refuse_informed_predictor(predictor, scene)
    refuse_unlike_model(scene, request.splats, config.background, request.backend)


def study_training(request: Request, observed: Observed, fit: FieldFit) -> ViewGroup:
    """Training views, each described by the cameras and the support of the other folds.

    The field is the scene's own, fitted to all of them. Their oracle factors are what other
    scenes may learn from (`splatcert learn`); nothing here uses them.
    """
    views = request.scene.training
    folds = np.array(folds_of(views.names, len(fit.support)))
    described, measured = {}, {}
    for fold in range(len(fit.support)):
        elsewhere = observed.out_of_fold(fit.support.without(fold), folds == fold)
        for view in (views[int(k)] for k in np.flatnonzero(folds == fold)):
            request.tell("describing training views", len(described), len(views))
            query = elsewhere.query(view.camera, backend=request.backend)
            described[view.name] = Description.of(view.name, view.camera, query)
            if not view.has_mask or bool(view.mask().any()):
                measured[view.name] = measure(view, query, request.betas)
    return ViewGroup(tuple(described[name] for name in views.names), measured)


def describe_batch(request: Request, observed: Observed) -> ViewGroup:
    """Every held-out view as a query: a camera, and no way to its photo."""
    described = []
    for done, view in enumerate(request.scene.held_out):
        request.tell("describing held-out views", done, len(request.scene.held_out))
        query = observed.query(view.camera, backend=request.backend)
        described.append(Description.of(view.name, view.camera, query))
    return ViewGroup(tuple(described))


def score_views(
    request: Request,
    observed: Observed,
    scales: FrozenScales,
    calibration: Sequence[CalibrationView],
) -> dict[str, Measurement]:
    """R_v of each calibration view under its frozen scale: the only use of its label."""
    measured = {}
    for done, view in enumerate(calibration):
        request.tell("scoring calibration views", done, len(calibration))
        query = observed.query(view.camera, backend=request.backend)
        scales.require(view.name, query)
        measured[view.name] = measure(view, query, request.betas, (scales.rule, request.beta))
    return measured


def verify(
    path: str | Path,
    scene: Scene | None = None,
    splats: Splats | None = None,
    *,
    report: Report | None = None,
) -> Verification:
    """Check a certificate: by itself, or with its scene and splats from scratch.

    The scene must be loaded at the certified resolution, with the certified views held out.
    """
    checks = verify_folder(folder := folder_of(Path(path))).checks
    if scene is None or splats is None or not checks[0].passed:
        return Verification(checks)
    record = read_content(folder)[1]
    try:
        stored = Certificate(record, *read_parts(folder, record))
        again = certify(
            scene,
            splats,
            record.config,
            stored.rule.predictor,
            backend=record.renderer.backend,
            report=report,
        )
    except UNUSABLE as error:
        refused = Check("from scratch", False, " ".join(str(error).split()))
        return Verification((*checks, refused))
    return Verification((*checks, *compare(stored, again)))
