# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify`: from a capture and a model to a certificate."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from dataclasses import field as setting
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands import CaptureOptions, EngineOptions, unset
from splatcert.config import CertifyConfig, FieldConfig
from splatcert.console import say, say_all, stages
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.capture import Capture
    from splatcert.certificate.certificate import Certificate
    from splatcert.scales.scale import Scale
    from splatcert.scene.scene import Scene

Colour = tuple[float, float, float]

PREDICTOR = (
    "View predictor: a file written by splatcert learn; default, strict (trained without "
    "Mip-NeRF 360) or reverse (trained without Tanks & Temples and Deep Blending); or none."
)


@dataclass(frozen=True, kw_only=True)
class Certify:
    """Calibrate error bars for a model on the held-out photos of its capture.

    Safe to interrupt: run the same command again to resume.
    """

    interrupted: ClassVar[str] = (
        "A fitted residual field is kept. Run the same command again to resume."
    )

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Capture: COLMAP, transforms.json or Blender folder."""
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Model: run of splatcert train, PLY file, Inria folder, gsplat .pt or nerfstudio .ckpt."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="CERT")]
    """Folder to write the certificate to."""
    alpha: Annotated[str, tyro.conf.arg(metavar="LEVEL")] = "1/10"
    """Largest probability that a new view falls short of its pixel coverage: 1/10, 0.1 or 10%."""
    beta: Annotated[str, tyro.conf.arg(metavar="LEVEL")] = "1/10"
    """Largest share of a view's pixels that may lie outside their boxes."""
    predictor: Annotated[str, tyro.conf.arg(metavar="FILE|NAME|none", help=PREDICTOR)] = "default"
    scale: Literal["paper", "guided", "constant"] = "paper"
    """Scale of the boxes before calibration: the paper's; guided by the training photos, which
    prediction then requires; or the same width everywhere."""
    center: Literal["render", "corrected"] = "render"
    """Picture that boxes lie around: the render, or the render corrected by training photos."""
    guide: Annotated[Path | None, unset("FILE")] = None
    """Weights of the guided scale, written by splatcert learn --guide. Default: the package's."""
    unit: Literal["deployed", "batch"] = "deployed"
    """Unit of the view factor. batch, as in the paper, covers only the held-out views."""
    background: Annotated[Colour | None, unset("R G B")] = None
    """Colour behind the splats, 0 to 1. Default: the model's, else the capture's, else black."""
    splits: int = 200
    """Number of random splits for the diagnostic estimate. Does not affect the guarantee."""
    seed: int = 0
    """Random seed for the diagnostic splits and the permutation test."""
    field: FieldConfig = setting(default_factory=FieldConfig)
    capture: tyro.conf.OmitArgPrefixes[CaptureOptions] = setting(default_factory=CaptureOptions)
    engine: tyro.conf.OmitArgPrefixes[EngineOptions] = setting(default_factory=EngineOptions)
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        """Open the capture, certify, write, and state the guarantee."""
        from splatcert.capture import open_capture
        from splatcert.certificate.store import remember_places, remembered
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.conformal.levels import parse_level
        from splatcert.pipeline import certify
        from splatcert.refusals import refuse_early
        from splatcert.report.summary import closing_lines
        from splatcert.storage.whole import owned_folder

        for name in ("alpha", "beta"):
            parse_level(getattr(self, name), name)
        engine = self.engine.start()
        capture = open_capture(
            self.data,
            self.model,
            holdout=self.capture.split,
            images=self.capture.images,
            resolution=self.capture.resolution,
            background=self.background,
            backend=self.engine.backend,
        )
        scale, instead = self._scale(capture.scene)
        refuse_early(capture, scale, self.engine.backend)  # before a word or a folder
        if not self.json:
            say_all(opened_words(capture, self.model))
            say("Back end", engine)
            if instead:
                say("Predictor", instead)
        with owned_folder(self.output, "certifying"), stages() as on, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # the closing lines say so
            certificate = certify(
                capture,
                scale=scale,
                config=self._config(),
                backend=self.engine.backend,
                folder=self.output,
                on=on,
            )
            certificate.save(self.output)
            remember_places(self.output, self.data, self.model)
        if self.json:
            print(json.dumps(facts(certificate, self.output), indent=2))
            return
        lines = closing_lines(certificate, self.output)
        if remembered(self.output, "model") is None:
            lines["Next"] += f" --model {shlex.quote(str(self.model))}"
        say_all(lines)

    def _config(self) -> CertifyConfig:
        return CertifyConfig(
            alpha=self.alpha,
            beta=self.beta,
            unit=self.unit,
            splits=self.splits,
            seed=self.seed,
            field=self.field,
        )

    def _scale(self, scene: Scene) -> tuple[Scale, str]:
        """The scale asked for, and a word on its predictor where it is not the one asked for."""
        from splatcert.difficulty.guide import load_guide
        from splatcert.difficulty.predictor import load_predictor
        from splatcert.scales.guided import GuidedScale
        from splatcert.scales.maps import Constant
        from splatcert.scales.named import chosen_guide, chosen_predictor
        from splatcert.scales.paper import PaperScale

        self._check_options()
        if self.scale == "guided":
            if self.guide is not None:
                return GuidedScale(load_guide(self.guide), self.center), ""
            name, guide = chosen_guide(scene)
            other = f"using {name}: the default guide was trained on photos held out here"
            return GuidedScale(guide, self.center), "" if name == "guide" else other
        if self.scale == "constant":
            return Constant(), ""
        match self.predictor:
            case "none":
                return PaperScale(None, self.unit), ""
            case "default" | "strict" | "reverse" as asked:
                name, predictor = chosen_predictor(asked, scene)
                other = f"using {name}: the {asked} predictor was trained on photos held out here"
                return PaperScale(predictor, self.unit), "" if name == asked else other
            case file:
                return PaperScale(load_predictor(Path(file)), self.unit), ""

    def _check_options(self) -> None:
        """Refuse options of the guided scale with any other."""
        if self.scale != "guided" and (self.center != "render" or self.guide is not None):
            name = "--center corrected" if self.center != "render" else "--guide"
            raise OptionError(f"{name} requires --scale guided.")


def opened_words(capture: Capture, model: Path) -> dict[str, str]:
    """What was opened, for people."""
    scene = capture.scene
    photos = f"{len(scene.training)} training, {len(scene.held_out)} held-out photos"
    colour = " ".join(f"{c:g}" for c in capture.background)
    told = {
        "Capture": f"{photos}; {capture.split}",
        "Model": f"{model}, {len(capture.splats):,} Gaussians",
    }
    if capture.placement is not None:
        told["Frame"] = capture.placement.words()
    return {**told, "Background": f"{colour}, {capture.background_from}"}


def facts(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """The same for scripts."""
    from splatcert.storage.schema import to_plain

    record = certificate.record
    chosen = ("guarantee", "field", "model", "scene", "exchangeability", "splits", "support")
    views = {"training": len(record.training), "calibration": len(record.calibration)}
    rule = certificate.rule
    predictor = None if rule is None else rule.predictor
    check = certificate.holdout_check
    return {
        "kind": "certificate",
        "path": str(folder),
        **{name: to_plain(getattr(record, name)) for name in chosen},
        "views": {**views, "unlabelled": len(record.unlabelled)},
        "predictor": None if predictor is None else predictor.sha256,
        "holdout_check": None if check is None else check.facts(),
    }
