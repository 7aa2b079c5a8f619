# SPDX-License-Identifier: Apache-2.0
"""Native kernels for fields of harmonics: what `field.operator` says, in one sweep a view.

The field of Gaussian i towards the camera is c_i . phi(d_i), with d_i from the Gaussian to
the camera. Sums over views go to float64 arrays of the caller, view after view, so their
bits do not depend on the number of threads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert import _native
from splatcert.raster.native import NativeView, plain_floats


def field_values(view: NativeView, coefficients: Tensor) -> Tensor:
    """The field c . phi(d) of each drawn Gaussian, [N, K] to [N]; zero where it is not drawn."""
    values = _native.empty([len(coefficients)])
    _native.field_values(view._prepared, _means(view), plain_floats(coefficients), values)
    return values


def add_field_normal(
    view: NativeView, coefficients: Tensor, mask: Tensor | None, result: Tensor
) -> None:
    """Add the normal operator's image of the coefficients to `result`, both [N, K]."""
    _native.field_normal(
        view._prepared, _means(view), plain_floats(coefficients), _bytes(mask), result
    )


def add_survey(
    view: NativeView,
    photo: Tensor,
    mask: Tensor | None,
    background: tuple[float, float, float],
    *,
    support: Tensor,
    moments: Tensor,
    blocks: Tensor,
    squares: Tensor,
    energy: Tensor,
    histogram: Tensor,
) -> None:
    """Render, compare with the photo [H, W, 3], and add this view's share to six arrays.

    `field.survey.Sums` describes them. All of it shares one evaluation of the weights.
    """
    _native.survey(
        view._prepared,
        _means(view),
        view.colours(),
        plain_floats(photo),
        background,
        _bytes(mask),
        support,
        moments,
        blocks,
        squares,
        energy,
        histogram,
    )


def _means(view: NativeView) -> Tensor:
    return plain_floats(view._splats.means)


def _bytes(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.to(torch.uint8).contiguous()
