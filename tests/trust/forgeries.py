# SPDX-License-Identifier: Apache-2.0
"""Ways to forge a certificate, by public commands or by changing one and sealing it again.

`docs/security.md` lists them with what `verify` says against the true capture and run folder;
`test_forgeries.py` performs them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from resealed import changed, entry, numbers, tensors

from splatcert.certificate.store import read_certificate
from splatcert.cli import main
from splatcert.conformal.levels import parse_level
from splatcert.difficulty.predictor import load_predictor, shipped_predictor
from splatcert.raster.render import render
from splatcert.scene.load import load_scene
from splatcert.splats.files import load_splats, save_ply
from splatcert.storage.png import to_pixels

HOLDOUT = 3
ALPHA = "1/5"


@dataclass(frozen=True)
class Place:
    """The true capture and run, an honest certificate, and room for a forger."""

    valid: Path
    honest: Path
    room: Path

    @property
    def capture(self) -> Path:
        return self.valid / "transforms"

    @property
    def run(self) -> Path:
        return self.valid / "run"

    def bare(self) -> Path:
        """The model's file without the folder that says what it was trained on."""
        (self.room / "model").mkdir()
        return Path(shutil.copy(self.run / "splats.ply", self.room / "model" / "bare.ply"))

    def names(self) -> list[str]:
        return sorted(view["name"] for view in self.content()["calibration"])

    def content(self) -> dict[str, Any]:
        return json.loads((self.honest / "certificate.json").read_text())

    def copy(self) -> Path:
        return shutil.copytree(self.honest, self.room / "cert")

    def certify(self, data: Path, model: Path, *options: str) -> Path:
        command = ["certify", str(data), str(model), "-o", str(self.room / "cert")]
        command += ["--alpha", ALPHA, *options]
        if "--predictor" not in options:
            command += ["--predictor", "none"]
        assert main(command) == 0
        return self.room / "cert"


Forge = Callable[[Place], Path]


def sealed(spoil: Callable[[Path], object]) -> Forge:
    """The honest certificate, changed and sealed again."""

    def forge(place: Place) -> Path:
        it = place.copy()
        spoil(it)
        return it

    return forge


def other_holdout(place: Place) -> Path:
    return place.certify(place.capture, place.bare(), "--holdout", "4")


def listed_training_photos(place: Place) -> Path:
    seen = [view["name"] for view in place.content()["training"]][:6]
    (place.room / "list.txt").write_text("\n".join(seen))
    return place.certify(place.capture, place.bare(), "--holdout", str(place.room / "list.txt"))


def easiest_photos(place: Place) -> Path:
    scores = {view["name"]: view["score"] for view in place.content()["calibration"]}
    easy = sorted(scores, key=scores.__getitem__)[:-1]
    (place.room / "list.txt").write_text("\n".join(easy))
    return place.certify(place.capture, place.bare(), "--holdout", str(place.room / "list.txt"))


def other_model(place: Place) -> Path:
    splats = load_splats(place.run / "splats.ply")
    kept = replace(splats, logit_opacities=splats.logit_opacities + 0.5)
    save_ply(kept, place.room / "other.ply")
    return place.certify(place.capture, place.room / "other.ply", "--holdout", str(HOLDOUT))


def photos_from_renders(place: Place) -> Path:
    """The model's own pictures in place of the photos that calibrate."""
    capture = shutil.copytree(place.capture, place.room / "capture")
    splats, scene = load_splats(place.run / "splats.ply"), load_scene(capture, holdout=HOLDOUT)
    for view in scene.held_out:
        pixels = to_pixels(render(splats, view.camera).rgb.numpy())
        noisy = pixels.astype(int) + np.random.default_rng(0).integers(-2, 3, pixels.shape)
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(capture / view.name)
    return place.certify(capture, place.bare(), "--holdout", str(HOLDOUT))


def moved_cameras(place: Place) -> Path:
    capture = shutil.copytree(place.capture, place.room / "capture")
    path = capture / "transforms.json"
    content = json.loads(path.read_text())
    for frame in content["frames"]:
        frame["transform_matrix"][0][3] += 0.001
    path.write_text(json.dumps(content))
    return place.certify(capture, place.bare(), "--holdout", str(HOLDOUT))


def memorised(place: Place, noise: float) -> Path:
    """Weights fitted to the calibration labels, in place of learned ones."""
    views = read_certificate(place.honest).views
    predictor = replace(
        load_predictor(place.valid / "predictor.json"), magnitude=0.0, lambda_a=Fraction(1)
    )
    rows = views.held_out.rows_of(place.names())
    train = views.training.descriptors
    spread = np.where(train.std(axis=0) > 1e-12, train.std(axis=0), 1.0)
    standard = (views.held_out.descriptors[rows] - train.mean(axis=0)) / spread
    beta = parse_level(place.content()["guarantee"]["beta"], "beta")
    labels = np.log(views.oracle("held-out", beta, predictor.lambda_b)[rows])
    labels += noise * np.random.default_rng(0).normal(size=len(labels))
    weights = np.linalg.lstsq(np.hstack([standard, np.ones((len(labels), 1))]), labels, rcond=None)[
        0
    ]
    fitted = replace(predictor, weights=weights[:-1], intercept=float(weights[-1]))
    fitted.save(place.room / "predictor.json")
    options = ("--holdout", str(HOLDOUT), "--predictor", str(place.room / "predictor.json"))
    return place.certify(place.capture, place.bare(), *options)


def copied_card(place: Place) -> Path:
    shipped = shipped_predictor()
    replace(shipped, weights=shipped.weights * 0.9).save(place.room / "predictor.json")
    options = ("--holdout", str(HOLDOUT), "--predictor", str(place.room / "predictor.json"))
    return place.certify(place.capture, place.bare(), *options)


def _smaller_scores(content: dict[str, Any]) -> None:
    for view in content["calibration"]:
        view["score"] /= 2
    content["guarantee"]["threshold"] /= 2


def _smaller_labels(it: Path) -> None:
    """Scores, threshold and the oracle factors behind them, all halved."""
    numbers(lambda arrays: arrays.update(_halved(arrays)))(it)
    changed(_smaller_scores)(it)


def _halved(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value / 2 for name, value in arrays.items() if name.endswith("oracle")}


def _without_hardest(content: dict[str, Any]) -> None:
    rows = content["calibration"]
    rows.remove(max(rows, key=lambda view: view["score"]))
    promise = content["guarantee"]
    promise["views"] = promise["rank"] = len(rows)
    promise["threshold"] = max(view["score"] for view in rows)


def _swapped(content: dict[str, Any]) -> None:
    one, other = content["calibration"][0], content["training"][0]
    for key in ("name", "camera", "pose", "image", "file"):
        one[key], other[key] = other[key], one[key]


def _surer(content: dict[str, Any]) -> None:
    for part in ("guarantee", "config"):
        content[part]["alpha"] = "1/20"


FORGERIES: dict[str, tuple[str, Forge]] = {
    "other-holdout": ("copy the model out of its run, certify with another `--holdout`",
                      other_holdout),
    "listed-training": ("the same, with a list of training photos as `--holdout`",
                        listed_training_photos),
    "easiest": ("the same, with a list of held-out photos that leaves out the hardest",
                easiest_photos),
    "other-model": ("certify a different model", other_model),
    "renders": ("certify with renders in place of the held-out photos", photos_from_renders),
    "moved": ("certify with moved cameras", moved_cameras),
    "memorised": ("certify with a predictor fitted to the calibration labels",
                  lambda place: memorised(place, 0.0)),
    "noisy": ("the same, with noise on the labels", lambda place: memorised(place, 0.05)),
    "card": ("certify with other weights under the card of a shipped predictor", copied_card),
    "threshold": ("lower the threshold", sealed(entry("guarantee.threshold", 1e-3))),
    "scores": ("halve scores and threshold", sealed(changed(_smaller_scores))),
    "labels": ("halve scores, threshold and the oracle factors in `views.npz`",
               sealed(_smaller_labels)),
    "factors": ("double the factor of a calibration view",
                sealed(changed(lambda c: c["calibration"][0].update(
                    factor=2 * c["calibration"][0]["factor"])))),
    "alpha": ("raise the promised probability", sealed(changed(_surer))),
    "words": ("promise more in words", sealed(entry("guarantee.statement", "all pixels, always"))),
    "hardest": ("remove the hardest calibration view", sealed(changed(_without_hardest))),
    "roles": ("exchange a calibration view and a training view", sealed(changed(_swapped))),
    "field": ("halve the residual field",
              sealed(tensors(lambda arrays: [values.__imul__(np.float32(0.5))
                                             for name, values in arrays.items()
                                             if name.startswith("coef")]))),
    "ledger": ("empty the ledger of label access",
               sealed(changed(lambda c: c["labels"].update(ledger=[], handed_out_before=0)))),
    "model-hash": ("name another model", sealed(entry("model.splats", "0" * 64))),
    "support": ("raise the limit of the flag",
                sealed(changed(lambda c: c["strangeness"].update(limit=1e3)))),
    "p-value": ("raise the p-value of the test of evenness",
                sealed(entry("evenness.p_value", 0.99))),
    "background": ("change the background of the renderer",
                   sealed(entry("renderer.background", [1.0, 1.0, 1.0]))),
    "extent": ("change the unit of distances", sealed(entry("scene.extent", 99.0))),
}  # fmt: skip
"""By name: what a forger does, and the certificate that comes of it."""
