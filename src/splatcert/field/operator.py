# SPDX-License-Identifier: Apache-2.0
"""The field as a linear operator: harmonics towards the camera, then the renderer's weights.

eq:uncertainty-render   (A_t C)_p = sum_i w_tpi c_i . phi(d_ti)

Each Gaussian carries K coefficients c_i, and d_ti is the unit vector from it to camera t.
For one view this is a contraction with phi followed by `View.composite`; its transpose is
`View.scatter` followed by a multiplication with phi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt

import torch
from torch import Tensor
from torch.nn.functional import normalize

from splatcert.camera import Camera
from splatcert.raster.native import NativeView, add_field_normal, field_values
from splatcert.raster.render import Backend, open_view
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import basis


def directions(means: Tensor, camera: Camera) -> Tensor:
    """Unit vectors from Gaussians to the camera, [N, 3]."""
    return normalize(means.new_tensor(camera.centre) - means, dim=1)


def towards(view: View, means: Tensor, coefficients: Tensor) -> Tensor:
    """What each Gaussian shows of the field to this camera, c . phi(d), [N, K] to [N]."""
    if isinstance(view, NativeView):
        return field_values(view, coefficients)
    phi = harmonics(means, view.camera, coefficients.shape[1])
    return (coefficients.to(phi) * phi).sum(1)


def field_image(view: View, means: Tensor, coefficients: Tensor) -> Tensor:
    """A_v C: the field as this camera sees it, [N, K] to [H, W]."""
    return view.composite(towards(view, means, coefficients)[:, None])[..., 0]


def harmonics(means: Tensor, camera: Camera, count: int) -> Tensor:
    """phi(d) of every Gaussian towards the camera, [N, K]."""
    return basis(directions(means, camera), isqrt(count) - 1)


class PreparedViews:
    """Training views opened once and kept while they fit into memory.

    The first ones stay and the rest are opened again each time: every pass takes all views
    in the same order, and giving up the least recently used would then give up all.
    """

    def __init__(
        self, splats: Splats, cameras: Sequence[Camera], *, backend: Backend, limit: int
    ) -> None:
        self.splats, self.cameras = splats, tuple(cameras)
        self.used = 0
        """Bytes kept now; never more than the limit."""
        self._backend: Backend = backend
        self._limit = limit
        self._kept: dict[int, View] = {}

    def __len__(self) -> int:
        return len(self.cameras)

    def __iter__(self) -> Iterator[View]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> View:
        if index in self._kept:
            return self._kept[index]
        view = open_view(self.splats, self.cameras[index], self._backend)
        # Back ends that do not tell keep about one cache line per Gaussian.
        size = getattr(view, "nbytes", 64 * len(self.splats))
        if self.used + size <= self._limit:
            self._kept[index] = view
            self.used += size
        return view


class NormalOperator:
    """sum_t A_t^T M_t A_t over all training views, with M_t the pixels that count."""

    def __init__(self, views: PreparedViews, masks: Mapping[int, Tensor]) -> None:
        self.views = views
        self.masks = masks
        """[H, W] bool by the view's position; views without one count every pixel."""

    def __call__(self, coefficients: Tensor) -> Tensor:
        """[N, K] to [N, K] in float64; views are added in their order."""
        result = torch.zeros(coefficients.shape, dtype=torch.float64)
        for index, view in enumerate(self.views):
            add_normal(view, self.views.splats.means, coefficients, self.masks.get(index), result)
        return result


def add_normal(
    view: View, means: Tensor, coefficients: Tensor, mask: Tensor | None, result: Tensor
) -> None:
    """Add one view's A^T M A C to `result`, float64 [N, K] on the CPU."""
    if isinstance(view, NativeView):
        add_field_normal(view, coefficients, mask, result)
        return
    phi = harmonics(means, view.camera, coefficients.shape[1])
    values = (coefficients.to(phi) * phi).sum(1, keepdim=True)
    if mask is None:
        back = view.normal(values)
    else:
        back = view.scatter(view.composite(values) * mask[..., None].to(values))
    result += (back.to(phi) * phi).to(result)
