# SPDX-License-Identifier: Apache-2.0
"""From a certificate to its report: collect numbers, words and pictures, and write the page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from splatcert import __version__
from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT
from splatcert.certificate.signature import is_signed
from splatcert.certificate.store import FIELD, SIGNATURE, VIEWS, folder_of
from splatcert.config import ReportConfig
from splatcert.deploy import load_certificate
from splatcert.difficulty.views_file import Views
from splatcert.progress import Progress, quiet
from splatcert.report.content import (
    CalibrationViews,
    Estimate,
    Facts,
    NextPhotos,
    PhotoError,
    ReportContent,
    ScaleRow,
    plural,
)
from splatcert.report.next_photos import next_photos
from splatcert.report.page import write_page
from splatcert.report.quantities import ShownQuantity
from splatcert.report.views import ReportViews, render_views
from splatcert.report.words.conditions import conditions_of
from splatcert.report.words.diagnosis import why_no_estimate
from splatcert.report.words.promise import (
    MEMBER_COLUMNS,
    applies_words,
    guarantee_words,
    member_rows,
)
from splatcert.report.words.summary import learned_from_others, scale_words
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats
from splatcert.verification.offline import verify_folder

SCALE_WORDS = {
    CONSTANT: "the same half-width for every pixel of every view",
    CERTIFIED: "this certificate's scale",
}


def write_report(
    certificate: str | Path,
    output: str | Path,
    scene: Scene | None = None,
    splats: Splats | None = None,
    config: ReportConfig | None = None,
    *,
    model_path: Path | None = None,
    suggestions: NextPhotos | None = None,
    quantities: Sequence[ShownQuantity] = (),
    on: Progress = quiet,
) -> Path:
    """Write one HTML file about the certificate in a folder; returns its path.

    From the certificate alone the report has numbers and charts; with the splats also renders
    and boxes; with the scene as well also misses and exact coverage. The scene must be loaded at
    the certified resolution, with the certified views held out. `model_path` is shown in the
    commands that the report lists. `suggestions` are places worth another photograph; default:
    those of the calibration views that needed the widest boxes. `quantities` other than colour
    get a section with their own promise.
    """
    if scene is not None and splats is None:
        raise CertificateError(
            "counting misses requires renders: pass splats together with the scene."
        )
    folder = folder_of(Path(certificate))
    commands = _commands(folder, scene, model_path)
    loaded = load_certificate(folder, splats, scene=scene)
    content = report_of(loaded, scene, config or ReportConfig(), on)
    content = replace(
        content,
        checks=verify_folder(folder).checks,
        commands=commands,
        provenance=(*content.provenance, _origin(folder)),
        quantities=tuple(quantities),
    )
    if suggestions is not None:
        content = replace(content, next_photos=suggestions)
    return write_page(content, Path(output))


def report_of(
    certificate: Certificate, scene: Scene | None, config: ReportConfig, on: Progress = quiet
) -> ReportContent:
    """Everything a report says about a certificate, wherever it is stored."""
    record = certificate.record
    calibration = calibration_of(certificate)
    views = ReportViews()
    if certificate.scale is not None:
        order = calibration.by_difficulty(certificate.beta)
        places = np.unique(np.linspace(0, len(order) - 1, config.views).round().astype(int))
        shown = [calibration.names[order[place]] for place in places]
        views = render_views(certificate, scene, shown, photos=config.photos, on=on)
    factor, shape = _scale_words(certificate)
    return ReportContent(
        scene=record.scene.name,
        created=record.created,
        guarantee=record.guarantee,
        promise=record.promise,
        headline=guarantee_words(certificate),
        applies_to=applies_words(certificate),
        member_columns=MEMBER_COLUMNS,
        members=() if record.promise.family is None else tuple(member_rows(record.promise.family)),
        batch_only=record.scale.batch_only,
        conditions=conditions_of(certificate),
        calibration=replace(calibration, inside=views.inside),
        photos=_photos(certificate),
        training_places=np.array([view.camera.centre for view in record.training]),
        pictures=views.pictures,
        factor_words=factor,
        shape_words=shape,
        shape_test=views.shape_test,
        coverage_by_tenth=certificate.coverage_by_tenth,
        estimate=_estimate(certificate),
        next_photos=next_photos(certificate),
        provenance=_provenance(certificate),
        missing=_missing(certificate, scene),
    )


def calibration_of(certificate: Certificate) -> CalibrationViews:
    """The calibration views of a certificate, as rows of numbers."""
    record, views = certificate.record, certificate.views
    rows = views.held_out.rows_of(view.name for view in record.calibration)
    reach = [views.oracle("held-out", beta, record.scale.shape)[rows] for beta in views.betas]
    return CalibrationViews(
        names=tuple(view.name for view in record.calibration),
        factors=np.array([view.factor for view in record.calibration]),
        levels=views.betas,
        reach=np.stack(reach, axis=1),
        psnr=views.held_out.psnr[rows],
        places=np.array([view.camera.centre for view in record.calibration]),
        inside=None,
    )


def _photos(certificate: Certificate) -> tuple[PhotoError, ...]:
    """Every photograph that was compared with its render, the worst first."""
    views, shape = certificate.views, certificate.record.scale.shape
    opened = {view.name for view in certificate.record.calibration}
    groups: dict[Views, str] = {"training": "training", "held-out": "calibration"}
    found = []
    for group, role in groups.items():
        table, needed = views.views(group), views.oracle(group, certificate.beta, shape)
        rows = zip(table.names, table.psnr.tolist(), needed.tolist(), strict=True)
        known = [row for row in rows if group == "training" or row[0] in opened]
        found += [PhotoError(name, role, psnr, width) for name, psnr, width in known]
    return tuple(sorted(found, key=lambda photo: (photo.psnr, photo.name)))


def _scale_words(certificate: Certificate) -> tuple[str, str]:
    """Where the view factor and the shape come from."""
    rule, predictor = certificate.rule, certificate.predictor
    if rule is None:
        return f"The scale is {scale_words(certificate).removeprefix('scale ')}.", ""
    shape = (
        "The shape b̃ says where within a view errors are large. It comes from a residual field "
        f"fitted to the training views, with weight λ_b = {rule.lambda_b}."
    )
    if predictor is None:
        return "Without a view predictor, every view has factor a = 1.", shape
    count = len(predictor.card.get("scenes", ()))
    other = (
        ""
        if predictor.beta == certificate.beta
        else f" It was trained for β = {predictor.beta}: boxes may be wider, but remain valid."
    )
    return (
        "The view factor a says how hard a view is as a whole. A predictor trained on "
        f"{plural(count, 'scene')} computes it from 24 features that require no photo, with "
        f"weight λ_a = {rule.lambda_a}.{other}",
        shape,
    )


def _estimate(certificate: Certificate) -> Estimate:
    found = certificate.record.splits
    if found is None:
        return Estimate(rows=(), words=f"No estimate: {why_no_estimate(certificate)}.")
    rows = tuple(
        ScaleRow(name.replace("b~", "b̃"), words, one.coverage, one.width, one.saving)
        for name, words in SCALE_WORDS.items()
        for one in [found.scales[name]]
    )
    return Estimate(
        rows=rows,
        words=f"Means over {found.splits} random splits of the calibration views: "
        f"{found.calibration_views} calibrate, the rest test.",
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
    if certificate.scale is None:
        needed = "--model and --data" if certificate.record.scale.needs_photos else "--model"
        missing.append(f"Renders, half-widths and box edges: add {needed}.")
    if scene is None:
        missing.append("Misses and exact pixel coverage: add --model and --data.")
    return tuple(missing)


def _provenance(certificate: Certificate) -> tuple[Facts, ...]:
    record = certificate.record
    model, renderer, scene, field = record.model, record.renderer, record.scene, record.field
    card, rule = learned_from_others(certificate), certificate.rule
    mode = "antialiased" if model.antialiased else "classic"
    sizes = ", ".join(f"{count} at {size}" for size, count in scene.sizes.items())
    return (
        Facts(
            "Model",
            (
                ("Gaussians", f"{model.gaussians:,}, degree {model.sh_degree}, {mode}"),
                ("SHA-256 of the splats", model.splats),
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
                ("predictor or guide", "none" if card is None else f"SHA-256 {card.sha256}"),
                ("name", record.scale.name),
                ("shrinkage", f"λ_a = {rule.lambda_a}, λ_b = {rule.lambda_b}" if rule else "none"),
                ("unit of a", rule.unit if rule else "the scale's own"),
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
                ("created", f"{record.created} by splatcert {record.splatcert}"),
                ("threshold q", repr(record.guarantee.threshold)),
                *((f"SHA-256 of {name}", digest) for name, digest in record.files.items()),
                ("seal", record.seal),
                ("report", f"written by splatcert {__version__}"),
            ),
        ),
    )


def _origin(folder: Path) -> Facts:
    """Whether somebody signed the certificate; a page cannot know whom its reader trusts."""
    signed = (
        f"{SIGNATURE} is present but was not checked: run splatcert verify with --signed-by"
        if is_signed(folder)
        else "none: the certificate does not prove who made it"
    )
    return Facts("Origin", (("signature", signed),))


def _view_counts(certificate: Certificate) -> str:
    record = certificate.record
    return (
        f"{len(record.training)} training, {len(record.calibration)} calibration, "
        f"{len(record.unlabelled)} held out but not calibrating"
    )
