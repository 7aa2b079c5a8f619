# SPDX-License-Identifier: Apache-2.0
"""Native kernels for a query: the table that is composited, and the summary of its image.

What they compute is written out in plain torch in `splatcert.view.query`, against which they
are tested. Results have the same bits for any number of threads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert import _native
from splatcert.raster.native import NativeView

CHANNELS = 10


def pack_query(view: NativeView, traits: Tensor) -> Tensor:
    """The table a query composites, [N, 10].

    Rows of Gaussians that are not drawn are undefined; no pass of this view reads them.
    """
    values = _native.empty([len(traits), CHANNELS])
    splats = view._splats
    _native.pack_query(
        view._prepared, _floats(splats.means), _floats(splats.sh), _floats(traits), values
    )
    return values


def summarise_query(
    image: Tensor, background: tuple[float, float, float], field_floor: float
) -> tuple[Tensor, Tensor, list[float]]:
    """Picture [H, W, 3], field [H, W] and the 19 statistics of a composited query [H, W, 10]."""
    height, width, _ = image.shape
    center, field = _native.empty([height, width, 3]), _native.empty([height, width])
    statistics = _native.summarise_query(image, background, field_floor, center, field)
    return center, field, statistics


def _floats(tensor: Tensor) -> Tensor:
    return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()
