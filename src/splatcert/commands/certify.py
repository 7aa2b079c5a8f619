# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify`: from a capture and a model to a certificate."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from dataclasses import field as setting
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands.options import CaptureOptions, EngineOptions
from splatcert.config import CertifyConfig, FieldConfig
from splatcert.console import say, stages
from splatcert.report.words import percent

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.record import HeldOutBy
    from splatcert.scene.scene import Scene
    from splatcert.view.predictor import ViewPredictor

Colour = tuple[float, float, float]
HELD_OUT_BY: dict[HeldOutBy, str] = {
    "model": "what its own run or settings say",
    "user": "the statement of whoever held them out",
    "assumed": "assumed: the file does not say",
}


@dataclass(frozen=True, kw_only=True)
class Certify:
    """Calibrate error bars for a model on the held-out photos of its capture.

    The certificate's folder is the only state. Run the same command again after an
    interruption: it goes on, to the same certificate.
    """

    interrupted: ClassVar[str] = (
        "A residual field that was already fitted is kept: the same command goes on from there."
    )

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Capture: COLMAP, transforms.json or Blender folder."""
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Run of splatcert train, PLY file, Inria folder, gsplat .pt or nerfstudio .ckpt."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="CERT")]
    """Folder of the certificate."""
    alpha: Annotated[str, tyro.conf.arg(metavar="LEVEL")] = "1/10"
    """A new view may fall short with at most this probability: 1/10, 0.1 or 10%."""
    beta: Annotated[str, tyro.conf.arg(metavar="LEVEL")] = "1/10"
    """Share of a view's pixels that may lie outside their boxes."""
    predictor: Annotated[str, tyro.conf.arg(metavar="FILE|NAME|none")] = "default"
    """View predictor: a file of splatcert learn; one in the package (default; strict, without
    Mip-NeRF 360; reverse, without Tanks & Temples and Deep Blending); or none."""
    unit: Literal["deployed", "batch"] = "deployed"
    """Unit of the view factor: a camera's box never depends on what else is asked
    (deployed), or the paper's mean over the query batch, which covers that batch only."""
    background: Annotated[Colour | None, tyro.conf.arg(metavar="R G B")] = None
    """Colour behind the splats, 0 to 1. Unless told: the model's, the capture's, black."""
    splits: int = 200
    """Random splits of the diagnostic estimate; the guarantee does not depend on them."""
    seed: int = 0
    """Of the diagnostic splits and the permutation test."""
    field: FieldConfig = setting(default_factory=FieldConfig)
    capture: tyro.conf.OmitArgPrefixes[CaptureOptions] = setting(default_factory=CaptureOptions)
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = setting(default_factory=EngineOptions)
    json: bool = False
    """Print one JSON object instead of words."""

    def run(self) -> None:
        """Load, certify, write, and state the guarantee."""
        from splatcert.artefacts import owned_folder
        from splatcert.certificate.refusals import refuse_unfit_views
        from splatcert.certificate.request import Request
        from splatcert.commands.certified import remember_places
        from splatcert.commands.frames import chosen_background, load_for_scene
        from splatcert.commands.trained import load_capture, training_of
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.conformal.levels import parse_level
        from splatcert.pipeline import refuse_early, run_phases

        for name in ("alpha", "beta"):
            parse_level(getattr(self, name), name)
        engine = self.engine.start()
        training = training_of(self.model)
        scene = load_capture(self.data, self.capture, training)
        refuse_unfit_views(scene)
        predictor, instead = self._predictor(scene)
        why, background = chosen_background(self.background, training.background, self.model, scene)
        config = self._config(background)
        placed = load_for_scene(
            self.model, scene, background=background, backend=self.engine.backend
        )
        request = Request(scene, placed.splats, config, self.engine.backend)
        refuse_early(request, predictor)
        if not self.json:
            photos = f"{len(scene.training)} training, {len(scene.held_out)} held-out photos"
            say("capture", f"{photos}; {scene.details.get('split')}")
            say("model", f"{self.model}, {len(placed.splats):,} Gaussians")
            say("frame", placed.words())
            say("background", " ".join(f"{c:g}" for c in background) + f", {why}")
            say("back end", engine)
            if instead:
                say("predictor", instead)
        with owned_folder(self.output, "certifying"), stages() as report, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # it is told below, in words
            certificate = run_phases(replace(request, report=report), predictor, self.output)
            certificate.save(self.output)
            remember_places(self.output, self.data, self.model)
        if self.json:
            print(json.dumps(facts(certificate, self.output), indent=2))
            return
        for label, text in words(certificate).items():
            say(label, text)
        say("wrote", f"{self.output}/certificate.json and the files beside it")
        say("check it", f"splatcert verify {self.output} --data {self.data} --model {self.model}")

    def _config(self, background: Colour) -> CertifyConfig:
        return CertifyConfig(
            alpha=self.alpha,
            beta=self.beta,
            unit=self.unit,
            background=background,
            splits=self.splits,
            seed=self.seed,
            field=self.field,
        )

    def _predictor(self, scene: Scene) -> tuple[ViewPredictor | None, str]:
        """The predictor asked for, and a word on it where it is not what was asked for."""
        from splatcert.shipped import chosen_predictor
        from splatcert.view.predictor import load_predictor

        match self.predictor:
            case "none":
                return None, ""
            case "default" | "strict" | "reverse" as asked:
                name, predictor = chosen_predictor(asked, scene)
                other = f"{name}, for the {asked} one has learned from photos held out here"
                return predictor, "" if name == asked else other
            case file:
                return load_predictor(Path(file)), ""


def words(certificate: Certificate) -> dict[str, str]:
    """What a certificate says, for people: the guarantee first, doubts and estimates after."""
    from splatcert.conformal.calibrate import shortfall
    from splatcert.conformal.statement import state_calibration

    record, alpha = certificate.record, certificate.alpha
    promise = record.guarantee
    told = {
        "field": f"{record.field.ending}; training views re-rendered at "
        f"{record.field.training_psnr:.1f} dB",
        "predictor": predictor_words(certificate),
        "calibrated": state_calibration(alpha, promise.views),
        "guarantee": promise.statement,
    }
    if earlier := record.labels.earlier():
        told["labels"] = (
            f"{earlier}; the guarantee needs that nobody chose model or settings by them"
        )
    if promise.counted.masked_views:
        told["masks"] = promise.counted.words(promise.views)
    if missing := shortfall(promise.views, alpha):
        told["missing"] = " ".join(missing.split())
    else:
        told["width"] = width_words(certificate)
    return {
        **told,
        "assumes": assumption_words(certificate),
        "estimate": estimate_words(certificate),
    }


def predictor_words(certificate: Certificate) -> str:
    """Where the view factor comes from."""
    from splatcert.certificate.provenance import has_known_origin

    rule = certificate.rule
    if rule.predictor is None:
        return f"none: every view has factor 1, the shape counts by lambda_b = {rule.lambda_b}"
    scenes = len(rule.predictor.card.get("scenes", ()))
    other = (
        ""
        if rule.predictor.beta == certificate.beta
        else (f"; it was learned for beta = {rule.predictor.beta}, which costs width, not validity")
    )
    if not has_known_origin(rule.predictor.card):
        other += (
            "; origin unknown: its card does not name the photos it learned from, so nobody can "
            "check that they are not these"
        )
    return (
        f"learned on {scenes} scenes, lambda_a = {rule.lambda_a}, lambda_b = {rule.lambda_b}, "
        f"hash {rule.predictor.sha256[:12]}{other}"
    )


def width_words(certificate: Certificate) -> str:
    """How wide the boxes are."""
    widths = [certificate.threshold * view.factor for view in certificate.record.calibration]
    mean, least, most = sum(widths) / len(widths), min(widths), max(widths)
    told = f"mean half-width {mean:.4f} where colours go from 0 to 1, {255 * mean:.1f} of 255"
    if least == most:
        return f"{told}, in every view"
    return f"{told}; calibration views from {least:.4f} to {most:.4f}"


def assumption_words(certificate: Certificate) -> str:
    """What the guarantee rests on, and how it looks."""
    from splatcert.certificate.honesty import DOUBTFUL

    test = certificate.record.exchangeability
    verdict = (
        "the scores speak against it, so be careful with single regions or stretches of the capture"
        if test.p_value < DOUBTFUL
        else "the scores do not speak against it"
    )
    return (
        "a new view is exchangeable with the calibration views; by a permutation test against "
        f"capture order and pose {verdict} ({test.in_words()}); that the model has not seen the "
        f"held-out photos is {HELD_OUT_BY[certificate.record.scene.held_out_by]}"
    )


def estimate_words(certificate: Certificate) -> str:
    """The diagnostic by random splits, kept apart from the guarantee."""
    from splatcert.certificate.honesty import CERTIFIED, CONSTANT, too_few_to_split

    found = certificate.record.splits
    if found is None:
        return f"none: {too_few_to_split(certificate.record.guarantee.views, certificate.alpha)}"
    ours = found.scales[CERTIFIED]
    told = {CERTIFIED, CONSTANT}
    if certificate.rule.predictor is None:
        told |= {"a only", "b~ only"}  # they are the constant and the certified scale again
    rest = ", ".join(
        f"{name} {percent(one.saving)}" for name, one in found.scales.items() if name not in told
    )
    return (
        f"no part of the guarantee: over {found.splits} random splits with "
        f"{found.calibration_views} calibration views, {percent(ours.coverage)} of the test "
        f"views are covered at half-width {ours.width:.4f}, {percent(abs(ours.saving))} "
        f"{'less' if ours.saving >= 0 else 'more'} than a constant scale needs (saved by {rest})"
    )


def facts(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """The same for scripts."""
    from splatcert.certificate.plain import to_plain

    record = certificate.record
    chosen = ("guarantee", "field", "model", "scene", "exchangeability", "splits", "support")
    views = {"training": len(record.training), "calibration": len(record.calibration)}
    predictor = certificate.rule.predictor
    return {
        "kind": "certificate",
        "path": str(folder),
        **{name: to_plain(getattr(record, name)) for name in chosen},
        "views": {**views, "unlabelled": len(record.unlabelled)},
        "predictor": None if predictor is None else predictor.sha256,
    }
