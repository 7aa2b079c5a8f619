# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify`: from a capture and a model to a certificate."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as setting
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands import CaptureOptions, unset
from splatcert.commands.certificates.scales import check_scales, chosen_scales
from splatcert.commands.engines import Engine, EngineOptions
from splatcert.config import Backend, CertifyConfig, FieldConfig, PathPromise
from splatcert.console import say, say_all, stages
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.capture import Capture
    from splatcert.certificate.certificate import Certificate

Colour = tuple[float, float, float]

MODELS = (
    "Model: run of splatcert train; PLY, SPZ, SPLAT, SOG or GLB file; Inria folder; gsplat .pt or "
    "nerfstudio .ckpt. Several models get one promise, so that any may be chosen afterwards."
)
MODELS_OPTION: Any = tyro.conf.arg(metavar="MODEL...", help=MODELS, help_behavior_hint="(required)")
SCALE = (
    "Scale of the boxes before calibration: guided by the training photos, which prediction then "
    "requires; paper, which requires no photos; constant (the same width everywhere); or several "
    "separated by commas, so that any of them may be chosen afterwards. Default: guided, or paper "
    "with --predictor, --holes paper or --unit batch."
)
PREDICTOR = (
    "View predictor of the paper's scale: a file written by splatcert learn; default, strict "
    "(learned without Mip-NeRF 360) or reverse (without Tanks & Temples, Deep Blending); or none."
)


@dataclass(frozen=True, kw_only=True)
class Certify:
    """Calibrate error bars for a model on the held-out photos of its capture.

    Safe to interrupt: run the same command again to resume.
    """

    interrupted: ClassVar[str] = (
        "A residual field, once fitted, is kept. Run the same command again to resume."
    )

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Capture: COLMAP, transforms.json or Blender folder."""
    models: Annotated[tuple[Path, ...], tyro.conf.Positional, MODELS_OPTION]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="CERT")]
    """Folder to write the certificate to."""
    alpha: Annotated[str, tyro.conf.arg(metavar="LEVEL")] = "1/10"
    """Largest probability that a new view falls short of its pixel coverage: 1/10, 0.1 or 10%."""
    beta: Annotated[str, tyro.conf.arg(metavar="LEVEL")] = "1/10"
    """Largest share of a view's pixels that may lie outside their boxes."""
    promise: Literal["view", "path"] = "view"
    """What to promise: about a new view, or about a new stretch of consecutive views."""
    stretch: Annotated[int | None, unset("L")] = None
    """Length of a stretch, in consecutive views. Required with --promise path."""
    gamma: Annotated[str | None, unset("LEVEL")] = None
    """Largest share of a stretch's views that may fall short; 0 for none. Default: 1/5."""
    predictor: Annotated[str, tyro.conf.arg(metavar="FILE|NAME|none", help=PREDICTOR)] = "default"
    scale: Annotated[str | None, unset("NAME[,NAME]", text=SCALE)] = None
    holes: Literal["wide", "paper"] = "wide"
    """Boxes of the paper's scale where the model shows nothing: wide, or the narrowest (paper)."""
    center: Literal["render", "corrected"] = "render"
    """Centre of the boxes: the render, or the render corrected by training photos."""
    guide: Annotated[Path | None, unset("FILE")] = None
    """Weights of the guided scale, written by splatcert learn --guide. Default: the package's."""
    unit: Literal["deployed", "batch"] = "deployed"
    """Unit of the paper's view factor. batch, as in the paper, covers only the held-out views."""
    background: Annotated[Colour | None, unset("R G B")] = None
    """Colour behind the splats, 0 to 1. Default: the model's, else the capture's, else black."""
    splits: int = 200
    """Number of random splits for the diagnostic estimate. Does not affect the guarantee."""
    seed: int = 0
    """Random seed for the diagnostic splits and the permutation test."""
    diagnose: bool = False
    """Also print what each factor saves and which pixels are covered, from calibration labels."""
    field: FieldConfig = setting(default_factory=FieldConfig)
    capture: tyro.conf.OmitArgPrefixes[CaptureOptions] = setting(default_factory=CaptureOptions)
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = setting(default_factory=EngineOptions)
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if not self.models:
            raise OptionError("certify requires a model.\n  splatcert certify DATA MODEL -o CERT")
        check_scales(self)

    def run(self) -> None:
        """Open the capture, certify, write, and state the guarantee."""
        self.engine.attempt(self._run)

    def _run(self, engine: Engine) -> None:
        from splatcert.certificate.history import HistoryUnavailable
        from splatcert.certificate.store import remember_places, remembered
        from splatcert.commands.certificates.family import certify_several, model_names
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.pipeline import certify
        from splatcert.refusals import refuse_early, refuse_other_field, refuse_promise
        from splatcert.report.words.diagnosis import diagnosis_lines
        from splatcert.report.words.summary import closing_lines
        from splatcert.storage.whole import owned_folder

        levels, promise = self.levels(), self._promise()
        places = model_names(self.models)
        captures = self._open(places, engine.backend)
        capture, model = next(iter(captures.values())), self.models[0]
        scales = chosen_scales(self, capture.scene)
        if len(captures) * len(scales) > 1:
            certify_several(self, captures, places, scales, promise, engine)
            return
        ((scale, instead),) = scales
        refuse_early(capture, scale, engine.backend)  # before a word or a folder
        refuse_other_field(scale, self.config().field)
        refuse_promise(promise, capture.scene, levels, scale)
        if not self.json:
            say_all(opened_words(capture, model))
            say("Back end", engine.words)
            say_all(instead)
        with owned_folder(self.output, "certifying"), stages() as on, catch_warnings():
            for told in (CalibrationTooSmall, HistoryUnavailable):
                simplefilter("ignore", told)  # the closing lines say so
            certificate = certify(
                capture,
                scale=scale,
                promise=promise,
                config=self.config(),
                backend=engine.backend,
                folder=self.output,
                on=on,
            )
            certificate.save(self.output)
            remember_places(self.output, self.data, model)
        if self.json:
            print(json.dumps(facts(certificate, self.output, diagnose=self.diagnose), indent=2))
            return
        lines = closing_lines(certificate, self.output)
        needed = {"model": model} | ({"data": self.data} if scale.needs_photos else {})
        for name, place in needed.items():
            if remembered(self.output, name) is None:
                lines["Next"] += f" --{name} {shlex.quote(str(place))}"
        say_all(lines)
        if self.diagnose:
            say_all(diagnosis_lines(certificate))

    def levels(self) -> tuple[Fraction, Fraction]:
        """Alpha and beta, exact."""
        from splatcert.conformal.levels import parse_level

        return parse_level(self.alpha, "alpha"), parse_level(self.beta, "beta")

    def _open(self, places: Mapping[str, Path], backend: Backend) -> dict[str, Capture]:
        """The capture with each model; those after the first as the first was opened."""
        from splatcert.capture import open_capture

        opened: dict[str, Capture] = {}
        for name, model in places.items():
            asked: dict[str, Any] = {
                **self.capture.reading,
                "holdout": self.capture.split,
                "background": self.background,
            }
            if opened:
                first = next(iter(opened.values()))
                asked["holdout"] = first.scene.held_out.names
                asked["resolution"] = asked["resolution"] or first.account.long_side
                asked["background"] = first.background
            opened[name] = open_capture(self.data, model, backend=backend, **asked)
        return opened

    def _promise(self) -> PathPromise | None:
        if self.promise == "view":
            if self.stretch is not None or self.gamma is not None:
                raise OptionError("--stretch and --gamma go with --promise path.")
            return None
        if self.stretch is None:
            raise OptionError(
                "--promise path requires --stretch L, the length of a stretch in consecutive\n"
                "  views, such as --stretch 5."
            )
        return PathPromise(self.stretch, self.gamma or PathPromise.gamma)

    def config(self) -> CertifyConfig:
        """The settings that a certificate stores."""
        return CertifyConfig(
            alpha=self.alpha,
            beta=self.beta,
            unit=self.unit,
            splits=self.splits,
            seed=self.seed,
            field=self.field,
        )


def opened_words(capture: Capture, model: Path) -> dict[str, str]:
    """What was opened, for people."""
    scene = capture.scene
    photos = f"{len(scene.training)} training, {len(scene.held_out)} held-out photos"
    colour = " ".join(f"{c:g}" for c in capture.background)
    told = {
        "Capture": f"{photos}; {capture.split}",
        "Model": f"{model}, {len(capture.splats):,} Gaussians",
    }
    if scene.registered is not None and scene.registered.is_notable:
        told["Registered"] = scene.registered.words()
    if capture.placement is not None:
        told["Frame"] = capture.placement.words()
    return {**told, "Background": f"{colour}, {capture.background_from}"}


def facts(certificate: Certificate, folder: Path, *, diagnose: bool = False) -> dict[str, Any]:
    """The same for scripts; estimates for each factor only on demand."""
    from splatcert.certificate.diagnostics import CERTIFIED, CONSTANT
    from splatcert.storage.schema import to_plain

    record = certificate.record
    chosen = ("guarantee", "promise", "field", "model", "scene")
    chosen += ("history", "evenness", "strangeness")
    views = {"training": len(record.training), "calibration": len(record.calibration)}
    rule = certificate.rule
    predictor = None if rule is None else rule.predictor
    check, trained_on = certificate.holdout_check, certificate.trained_on_check
    splits, tenths = to_plain(record.splits), certificate.coverage_by_tenth
    if splits is not None and not diagnose:
        splits["scales"] = {name: splits["scales"][name] for name in (CERTIFIED, CONSTANT)}
    found = (
        {} if tenths is None or not diagnose else {"coverage_by_tenth": to_plain(tenths.tolist())}
    )
    return {
        "kind": "certificate",
        "path": str(folder),
        **{name: to_plain(getattr(record, name)) for name in chosen},
        "splits": splits,
        **found,
        "views": {**views, "unlabelled": len(record.unlabelled)},
        "scale": record.scale.name,
        "needs_photos": record.scale.needs_photos,
        "predictor": None if predictor is None else predictor.sha256,
        "holdout_check": None if check is None else check.facts(),
        "trained_on_check": None if trained_on is None else trained_on.facts(),
    }
