# SPDX-License-Identifier: Apache-2.0
"""From a certificate to its report: numbers, words and pictures, handed to the page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from splatcert import __version__
from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT, too_few_to_split
from splatcert.certificate.store import FIELD, VIEWS, folder_of, load_certificate
from splatcert.certificate.verify import verify_folder
from splatcert.config import ReportConfig
from splatcert.field.fit import Report as Tell
from splatcert.report.conditions import conditions_of
from splatcert.report.content import (
    Calibration,
    Estimate,
    Facts,
    NextPhoto,
    Promise,
    Report,
    ScaleRow,
    Verified,
    next_photos,
)
from splatcert.report.page import write_page
from splatcert.report.views import Look, look_at_views
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats

SCALE_WORDS = {
    CONSTANT: "the same half-width for every pixel of every view",
    "a only": "one half-width a view, by the view factor",
    "b~ only": "the shape within views, every view alike",
    CERTIFIED: "this certificate's scale",
    "oracle a": "a view factor that knows the answer: what is left to gain",
}


def write_report(
    certificate: str | Path,
    output: str | Path,
    scene: Scene | None = None,
    splats: Splats | None = None,
    config: ReportConfig | None = None,
    *,
    model_path: Path | None = None,
    suggestions: Sequence[NextPhoto] | None = None,
    report: Tell | None = None,
) -> Path:
    """Write one HTML file about the certificate in a folder; returns its path.

    With its splats the report has renders and boxes, with its scene as well it has misses and
    exact coverage; without either it has numbers and charts. The scene must be loaded at the
    certified resolution, with the certified views held out. `model_path` is for the commands
    that the report names; `suggestions` are places worth another photograph, unless told those
    of the calibration views that needed the widest boxes.
    """
    if scene is not None and splats is None:
        raise CertificateError("misses need renders: give the splats together with the scene.")
    folder = folder_of(Path(certificate))
    commands = _commands(folder, scene, model_path)
    loaded = load_certificate(folder, splats)
    content = report_of(loaded, scene, config or ReportConfig(), report)
    checks = tuple(Verified(c.name, c.passed, c.detail) for c in verify_folder(folder).checks)
    content = replace(content, checks=checks, commands=commands)
    if suggestions is not None:
        content = replace(content, next_photos=tuple(suggestions))
    return write_page(content, Path(output))


def report_of(
    certificate: Certificate, scene: Scene | None, config: ReportConfig, tell: Tell | None = None
) -> Report:
    """Everything a report tells of a certificate, wherever it is stored."""
    record = certificate.record
    calibration = _calibration(certificate)
    look = Look()
    if certificate.splats is not None:
        order = calibration.by_difficulty(certificate.beta)
        places = np.unique(np.linspace(0, len(order) - 1, config.views).round().astype(int))
        shown = [calibration.names[order[place]] for place in places]
        look = look_at_views(certificate, scene, shown, photos=config.photos, tell=tell)
    factor, shape = _scale_words(certificate)
    return Report(
        scene=record.scene.name,
        created=record.created,
        promise=_promise(certificate),
        conditions=conditions_of(certificate),
        calibration=replace(calibration, inside=look.inside),
        training_places=np.array([view.camera.camera().centre for view in record.training]),
        pictures=look.pictures,
        factor_words=factor,
        shape_words=shape,
        shape_test=look.shape_test,
        estimate=_estimate(certificate),
        next_photos=next_photos(certificate),
        provenance=_provenance(certificate),
        missing=_missing(certificate, scene),
    )


def _promise(certificate: Certificate) -> Promise:
    promise = certificate.record.guarantee
    return Promise(
        alpha=promise.alpha,
        beta=promise.beta,
        views=promise.views,
        rank=promise.rank,
        threshold=promise.threshold,
        masked=promise.counted.masked_views > 0,
        batch_only=certificate.record.scale.batch_only,
        statement=promise.statement,
    )


def _calibration(certificate: Certificate) -> Calibration:
    record, views = certificate.record, certificate.views
    rows = [views.held_out.names.index(view.name) for view in record.calibration]
    reach = [views.oracle("held-out", beta, record.scale.lambda_b)[rows] for beta in views.betas]
    return Calibration(
        names=tuple(view.name for view in record.calibration),
        factors=np.array([view.factor for view in record.calibration]),
        levels=views.betas,
        reach=np.stack(reach, axis=1),
        psnr=views.held_out.psnr[rows],
        places=np.array([view.camera.camera().centre for view in record.calibration]),
        inside=None,
    )


def _scale_words(certificate: Certificate) -> tuple[str, str]:
    """Where the view factor and the shape come from."""
    rule = certificate.rule
    shape = (
        "The shape b̃ says where within a view errors are large. It comes from a field of "
        f"residuals fitted to the training views, and counts by λ_b = {rule.lambda_b}."
    )
    if rule.predictor is None:
        return "There is no view predictor: every view has the factor a = 1.", shape
    count = len(rule.predictor.card.get("scenes", ()))
    other = (
        ""
        if rule.predictor.beta == certificate.beta
        else f" It was learned for β = {rule.predictor.beta}, which costs width, not validity."
    )
    return (
        "The view factor a says how hard a view is as a whole. It is predicted from 24 numbers "
        f"that need no photo, as learned on {count} scenes, and counts by "
        f"λ_a = {rule.lambda_a}.{other}",
        shape,
    )


def _estimate(certificate: Certificate) -> Estimate:
    found = certificate.record.splits
    if found is None:
        why = too_few_to_split(certificate.record.guarantee.views, certificate.alpha)
        return Estimate(rows=(), words=f"There is no estimate: {why}.")
    rows = tuple(
        ScaleRow(name.replace("b~", "b̃"), words, one.coverage, one.width, one.saving)
        for name, words in SCALE_WORDS.items()
        for one in [found.scales[name]]
    )
    return Estimate(
        rows=rows,
        words=f"Means over {found.splits} random splits of the calibration views, "
        f"{found.calibration_views} to calibrate on and the rest to test.",
    )


def _commands(folder: Path, scene: Scene | None, model_path: Path | None) -> tuple[str, ...]:
    place = shlex.quote(str(folder))
    data = "DATA" if scene is None else shlex.quote(str(scene.path))
    model = "MODEL" if model_path is None else shlex.quote(str(model_path))
    files = " ".join(shlex.quote(str(folder / name)) for name in (FIELD, VIEWS))
    return (
        f"splatcert verify {place}",
        f"splatcert verify {place} --data {data} --model {model}",
        f"sha256sum {files}",
    )


def _missing(certificate: Certificate, scene: Scene | None) -> tuple[str, ...]:
    missing = []
    if certificate.splats is None:
        missing.append("Renders, half-widths and box edges: write the report with --model.")
    if scene is None:
        missing.append("Misses and exact pixel coverage: write it with --model and --data.")
    return tuple(missing)


def _provenance(certificate: Certificate) -> tuple[Facts, ...]:
    record = certificate.record
    model, renderer, scene, field = record.model, record.renderer, record.scene, record.field
    predictor = certificate.rule.predictor
    mode = "antialiased" if model.antialiased else "classic"
    sizes = ", ".join(f"{count} at {size}" for size, count in scene.sizes.items())
    return (
        Facts(
            "Model",
            (
                ("Gaussians", f"{model.gaussians:,}, degree {model.sh_degree}, {mode}"),
                ("SHA-256 of what is rendered", model.splats),
            ),
        ),
        Facts(
            "Renderer",
            (
                ("name", f"{renderer.name} {renderer.version}, back end {renderer.backend}"),
                ("background", " ".join(f"{c:g}" for c in renderer.background)),
                ("constants", ", ".join(f"{k} {v:.6g}" for k, v in renderer.constants.items())),
            ),
        ),
        Facts(
            "Capture",
            (
                ("name", f"{scene.name} ({scene.format})"),
                ("views", _view_counts(certificate)),
                ("sizes", sizes),
            ),
        ),
        Facts(
            "Scale",
            (
                ("predictor", "none" if predictor is None else f"SHA-256 {predictor.sha256}"),
                ("shrinkage", f"λ_a = {record.scale.lambda_a}, λ_b = {record.scale.lambda_b}"),
                ("unit of a", record.scale.unit),
                (
                    "residual field",
                    f"{field.ending}; training views re-rendered at {field.training_psnr:.1f} dB",
                ),
                ("SHA-256 of all scales", record.labels.frozen),
            ),
        ),
        Facts(
            "Certificate",
            (
                ("made", f"{record.created} by splatcert {record.splatcert}"),
                ("threshold q", repr(record.guarantee.threshold)),
                *((f"SHA-256 of {name}", digest) for name, digest in record.files.items()),
                ("seal", record.seal),
                ("this report", f"by splatcert {__version__}"),
            ),
        ),
    )


def _view_counts(certificate: Certificate) -> str:
    record = certificate.record
    return (
        f"{len(record.training)} training, {len(record.calibration)} calibration, "
        f"{len(record.unlabelled)} held out without a photo"
    )
