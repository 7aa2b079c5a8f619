# SPDX-License-Identifier: Apache-2.0
"""How good a model is on views it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from splatcert.raster.interface import Backend, render
from splatcert.scene.roles import LabelledView
from splatcert.splats.gaussians import Splats
from splatcert.training.losses import psnr, ssim


@dataclass(frozen=True)
class ViewMetrics:
    """One view's figures."""

    name: str
    psnr: float
    ssim: float
    lpips: float | None


def _lpips() -> Callable[[Tensor, Tensor], float] | None:
    """The learned distance, if its package is installed."""
    try:
        import lpips  # type: ignore[import-not-found]
    except ImportError:
        return None
    network = lpips.LPIPS(net="vgg", verbose=False)

    def distance(a: Tensor, b: Tensor) -> float:
        with torch.no_grad():
            x, y = (2 * t.permute(2, 0, 1)[None] - 1 for t in (a, b))
            return float(network(x, y))

    return distance


def measure(
    splats: Splats,
    views: Iterable[LabelledView],
    *,
    background: tuple[float, float, float] = (0.0, 0.0, 0.0),
    backend: Backend = "cpu",
) -> list[ViewMetrics]:
    """PSNR, SSIM and, if installed, LPIPS of each view; renders clamped to [0, 1]."""
    distance = _lpips()
    result = []
    for view in views:
        picture = render(splats, view.camera, background=background, backend=backend)
        image, target = picture.rgb.clamp(0, 1).cpu(), view.image()
        mask = view.mask() if view.has_mask else None
        far = None if distance is None else distance(image, target)
        result.append(
            ViewMetrics(
                view.name, psnr(image, target, mask=mask), ssim(image, target, mask=mask), far
            )
        )
    return result


def summarise(metrics: Sequence[ViewMetrics]) -> dict[str, object]:
    """Means over views, and every view by name."""
    names = ["psnr", "ssim"] + (["lpips"] if metrics and metrics[0].lpips is not None else [])
    means = {n: float(np.mean([getattr(m, n) for m in metrics])) for n in names} if metrics else {}
    per_view = {m.name: {n: getattr(m, n) for n in names} for m in metrics}
    return {"views": len(metrics), **means, "per_view": per_view}
