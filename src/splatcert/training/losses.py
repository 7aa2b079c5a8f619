# SPDX-License-Identifier: Apache-2.0
"""The losses that training minimises and the metrics that evaluation reports: L1, SSIM, PSNR.

SSIM uses the window of the original paper (11 x 11 Gaussian, sigma 1.5, population
variances). Training averages it over the whole image with zeros outside, as all 3DGS
trainers do; evaluation averages over pixels whose window lies inside, as scikit-image does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from splatcert import _native
from splatcert.errors import InputError
from splatcert.raster.abreast import one_torch_thread
from splatcert.raster.render import Backend, render
from splatcert.scene.roles import LabelledView
from splatcert.splats.gaussians import Splats

BORDER = 5
"""Pixels at each side whose window reaches outside the image."""


def _floats(image: Tensor) -> Tensor:
    return image.detach().to(device="cpu", dtype=torch.float32).contiguous()


def _bytes(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.to(device="cpu", dtype=torch.uint8).contiguous()


class TooSmallError(InputError):
    """A picture without a single complete SSIM window."""


def ssim(
    image: Tensor, target: Tensor, *, mask: Tensor | None = None, inside_only: bool = True
) -> float:
    """Mean structural similarity of images [H, W, C] with values in [0, 1].

    `inside_only` leaves out the border of five pixels whose windows reach outside.
    """
    counted = torch.ones(image.shape[:2], dtype=torch.bool) if mask is None else mask
    if inside_only:
        counted = counted[BORDER:-BORDER, BORDER:-BORDER]
    if not counted.any():
        raise TooSmallError(
            f"no pixel of a {image.shape[1]} x {image.shape[0]} image counts: SSIM requires a "
            f"window of {2 * BORDER + 1} pixels inside the image and the mask.\n"
            "  Use larger photos, or do not hold out photos whose masks exclude almost everything."
        )
    _, value = _native.loss(
        _floats(image), _floats(target), 0.0, 1.0, _bytes(mask), inside_only, None
    )
    return value


def psnr(image: Tensor, target: Tensor, *, mask: Tensor | None = None) -> float:
    """Peak signal-to-noise ratio in decibels of images with values in [0, 1]."""
    squared = (image.double() - target.double()) ** 2
    mean = float((squared if mask is None else squared[mask]).mean())
    return math.inf if mean == 0 else -10 * math.log10(mean)


@dataclass(frozen=True)
class ViewMetrics:
    """Metrics of one view."""

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
        # Several threads of torch would spend far longer waiting for each other than working.
        with one_torch_thread(), torch.no_grad():
            picture = render(splats, view.camera, background=background, backend=backend)
            image, target = picture.rgb.clamp(0, 1).cpu(), view.image()
            mask = view.mask() if view.has_mask else None
            near = psnr(image, target, mask=mask), ssim(image, target, mask=mask)
        far = None if distance is None else distance(image, target)
        result.append(ViewMetrics(view.name, *near, far))
    return result


def summarise(metrics: Sequence[ViewMetrics]) -> dict[str, object]:
    """Means over views, and every view by name."""
    names = ["psnr", "ssim"] + (["lpips"] if metrics and metrics[0].lpips is not None else [])
    means = {n: float(np.mean([getattr(m, n) for m in metrics])) for n in names} if metrics else {}
    per_view = {m.name: {n: getattr(m, n) for n in names} for m in metrics}
    return {"views": len(metrics), **means, "per_view": per_view}
