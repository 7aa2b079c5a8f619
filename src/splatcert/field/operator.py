# SPDX-License-Identifier: Apache-2.0
"""The field as a linear operator: harmonics towards the camera, then the renderer's weights.

eq:uncertainty-render   (A_t C)_p = sum_i w_tpi c_i . phi(d_ti)

Each Gaussian carries K coefficients c_i, and d_ti is the unit vector from it to camera t.
For one view this is a contraction with phi followed by `View.composite`; its transpose is
`View.scatter` followed by a multiplication with phi.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.render import Backend, open_view
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats


class PreparedViews:
    """Training views opened once and kept while they fit into memory.

    The first ones stay and the rest are opened again each time. Every pass takes all views in
    the same order, so evicting the least recently used would evict all of them.
    """

    def __init__(
        self, splats: Splats, cameras: Sequence[Camera], *, backend: Backend, limit: int
    ) -> None:
        self.splats, self.cameras = splats, tuple(cameras)
        self.used = 0
        """Bytes kept now, at most the limit."""
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
        if self.used + view.nbytes <= self._limit:
            self._kept[index] = view
            self.used += view.nbytes
        return view

    def kept(self) -> dict[Camera, View]:
        """The views in memory."""
        return {self.cameras[index]: view for index, view in self._kept.items()}


class NormalOperator:
    """sum_t A_t^T M_t A_t over all training views, with M_t the pixels that count."""

    def __init__(self, views: PreparedViews, mask_of: Callable[[int], Tensor | None]) -> None:
        self.views = views
        self.mask_of = mask_of
        """[H, W] bool by the view's position, read when needed; None if every pixel counts."""

    def __call__(self, coefficients: Tensor) -> Tensor:
        """[N, K] to [N, K] in float64; views are added in their order."""
        result = torch.zeros(coefficients.shape, dtype=torch.float64)
        coefficients = coefficients.float()  # once, not by every view
        for index, view in enumerate(self.views):
            view.field_normal(coefficients, self.mask_of(index), result)
        return result
