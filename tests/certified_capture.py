# SPDX-License-Identifier: Apache-2.0
"""A small made capture with a model that is not quite right, to be certified in a second."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.capture import Capture
from splatcert.certificate.certificate import Certificate
from splatcert.config import CertifyConfig, FieldConfig
from splatcert.deploy import verify
from splatcert.difficulty.descriptor import FEATURE_NAMES
from splatcert.difficulty.predictor import Shipped, ViewPredictor
from splatcert.field.fit import fit_field
from splatcert.pipeline import certify
from splatcert.raster.render import render
from splatcert.scales.named import chosen_predictor
from splatcert.scales.paper import PaperScale
from splatcert.scales.training_views import fitted_scene
from splatcert.scene.scene import Scene, scene_from_tensors
from splatcert.splats.gaussians import Splats
from splatcert.verification.checks import Verification
from splatcert_bench.baselines.baseline import Fitted, Members
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

VIEWS, EVERY = 36, 3
NAMES = [f"{k:03d}.png" for k in range(VIEWS)]
HELD_OUT = NAMES[::EVERY]


def made_truth() -> Splats:
    return made_splats(400, sh_degree=1)


def made_model(truth: Splats, seed: int = 0) -> Splats:
    """The truth with some noise, as training would leave it."""
    random = torch.Generator().manual_seed(seed)

    def noise(tensor: Tensor, size: float) -> Tensor:
        return tensor + size * torch.randn(tensor.shape, generator=random)

    return replace(truth, sh=noise(truth.sh, 0.05), means=noise(truth.means, 0.01))


def made_photos() -> tuple[dict[str, Camera], dict[str, Tensor]]:
    truth = made_truth()
    cameras = dict(zip(NAMES, made_cameras(VIEWS, 60, 40), strict=True))
    return cameras, {name: render(truth, c).rgb.clamp(0, 1) for name, c in cameras.items()}


def made_capture(
    photos: tuple[dict[str, Camera], dict[str, Tensor]], held_out: list[str] | None = None
) -> Scene:
    """A fresh scene, whose ledger is empty."""
    cameras, pictures = photos
    return scene_from_tensors(
        cameras, pictures, held_out=HELD_OUT if held_out is None else held_out
    )


def made_predictor(
    lambda_a: Fraction = Fraction(1, 2),
    lambda_b: Fraction = Fraction(3, 4),
    card: dict | None = None,
) -> ViewPredictor:
    """Weights of no particular meaning."""
    weights = 0.05 * np.random.default_rng(0).standard_normal(len(FEATURE_NAMES))
    return ViewPredictor(weights, 0.3, lambda_a, lambda_b, 1.0, Fraction(1, 10), card=card or {})


def made_fitted(photos, *, steps: int, long_side: int | None = None) -> Fitted:
    """What baselines may look at: the model, its field after so many steps, three members."""
    scene, model = made_capture(photos), made_model(made_truth())
    fit = fit_field(model, scene.training, FieldConfig(max_steps=steps))
    observed = fitted_scene(model, fit, scene.training.cameras, scene.extent, (0.0, 0.0, 0.0))
    members = [made_model(made_truth(), seed) for seed in range(3)]
    small, full = Members(members, long_side=long_side), Members(members)
    return Fitted(observed, scene.training, small, full)


def certify_scene(
    scene: Scene,
    splats: Splats,
    config: CertifyConfig | None = None,
    predictor: ViewPredictor | str | None = "default",
    **options: Any,
) -> Certificate:
    """A certificate for pictures in memory, every held-out view unseen, with this predictor."""
    config = config or CertifyConfig()
    if isinstance(predictor, str):
        predictor = chosen_predictor(cast("Shipped", predictor), scene)[1]
    scale = PaperScale(predictor, config.unit)
    return certify(
        scene, splats, unseen=scene.held_out.names, scale=scale, config=config, **options
    )


def verify_scene(path: Path, scene: Scene, splats: Splats) -> Verification:
    """A certificate against pictures in memory."""
    return verify(path, Capture.in_memory(scene, splats, unseen=scene.held_out.names))
