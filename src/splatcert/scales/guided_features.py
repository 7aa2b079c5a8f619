# SPDX-License-Identifier: Apache-2.0
"""The maps behind the guided scale: the residual field, and what witnesses say.

Where no witness sees a point, the residual field stands for what one would say.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from splatcert.difficulty.guided.guide import Guide
from splatcert.witnesses.album import ASKED
from splatcert.witnesses.maps import GuidedMap, WitnessMaps

LEAST = 2e-3
"""Floor of the logarithms, half a colour step."""
FAR = 1.0
"""Distance of a witness where there is none."""
FLATTEST = 0.25
"""Share of the mean scale that every pixel gets."""
LARGEST_LOG = 30.0


def raw_scale(maps: Tensor, guide: Guide) -> Tensor:
    """The scale (eq:guided) of pixels from their features, [..., F]; natively, `ask_scale`."""
    total = maps @ maps.new_tensor(guide.weights) + guide.intercept
    for unit in guide.units:
        total += unit.share * torch.tanh(maps @ maps.new_tensor(unit.weights) + unit.bias)
    return total.clamp_(-LARGEST_LOG, LARGEST_LOG).exp_().add_(guide.floor)


def guided_map(field: Tensor, found: WitnessMaps, guide: Guide) -> GuidedMap:
    """The scale of a query from maps that are stored, as a device brings them down."""
    values = raw_scale(torch.stack([*planes(field, found)], dim=-1), guide)
    mean = float(values.double().mean())
    correction = trust(found, guide) * found.drift
    return GuidedMap(values, mean, correction, int((found.count > 0).sum()))


def trust(found: WitnessMaps, guide: Guide) -> Tensor:
    """The share of their mean residual that witnesses are believed (eq:gate), [H, W]."""
    count, distance, always = guide.gate
    odds = always + count / ASKED * found.count + distance * _log(found.distance)
    return torch.sigmoid(odds.clamp(-LARGEST_LOG, LARGEST_LOG))


def flattened(scale: Tensor, mean: float) -> Tensor:
    """The scale with a share of its mean at every pixel."""
    times, plus = flattening(mean)
    return (scale * times).add_(plus)


def hole(opacity: Tensor, prior: float) -> Tensor:
    """What is added to the scale where the model shows nothing, as `widened` adds it."""
    return (1 - opacity).square() * prior


def flattening(mean: float) -> tuple[float, float]:
    """What a scale of this mean is multiplied by, and what is added."""
    return 1 - FLATTEST, FLATTEST * mean


def planes(field: Tensor, found: WitnessMaps) -> Iterator[Tensor]:
    """The maps in the order of `FEATURES`, [H, W] each."""
    none = found.count == 0
    yield _log(field)
    for plane in (
        found.residual,
        found.clash,
        found.least_clash,
        found.bias,
        found.spread,
        found.drift.abs().amax(0),
        found.scatter,
    ):
        yield _log(torch.where(none, field, plane))
    yield found.count / ASKED
    yield _log(torch.where(none, FAR, found.distance))
    yield none.to(field)


def _log(values: Tensor) -> Tensor:
    return values.clamp(min=LEAST).log()
