# SPDX-License-Identifier: Apache-2.0
"""How a guide is learned: a small network by the width of boxes, then a gate and a power.

A view's width is the mean scale times the level that covers 90% of its pixels. A part of the loss
is its logarithm; the rest keeps coverage even between narrow and wide boxes, since the narrowest
scale would give up the hardest pixels. The gate of the correction makes pictures better; the power
of the mean scale is chosen by the width of calibrated boxes on captures left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from splatcert import __version__
from splatcert.conformal.calibrate import view_score
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.guided.guide import FEATURES, Guide, Unit
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.difficulty.sources import ALPHA
from splatcert.raster.abreast import one_torch_thread
from splatcert.scales.guide_sources import GuideSource, GuideViews
from splatcert.scales.guided_features import flattened, raw_scale

Array = NDArray[np.float64]
Fit = Callable[[tuple[GuideSource, ...]], Guide]
BETA = Fraction(1, 10)
EVEN = 0.95
"""Weight of even coverage in the loss."""
STEPS, PIXELS, RATE = 200, 300, 0.05
SOFTNESS = 0.02
"""Width of the window of ranks around the covered share."""
LEAST_RESIDUAL = 1e-4
LEAST_ERROR = 1e-5
"""Added to a view's mean squared error before the logarithm."""
START = -2.5, -4.0
"""Logarithms of scale and floor before learning; only their difference matters."""
UNITS, UNIT_SPREAD = 8, 0.3
"""Units of the network, and the deviation of their weights before learning."""
GATED = FEATURES.index("count"), FEATURES.index("distance")
POWERS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
USUAL = 1.25
"""Power for a single source, which cannot be left out."""


def learn_guide(sources: Sequence[GuideSource], fit: Fit | None = None) -> Guide:
    """The guide learned on all sources, with its card.

    `fit` is `fit_guide`, perhaps one that remembers the guides it has made.
    """
    fit = fit or fit_guide
    tried = left_out(sources, fit) if len(sources) > 1 else []
    power = choose_power(tried) if tried else USUAL
    card = _card(sources, {one.source.name: one.saving(power) for one in tried})
    return replace(fit(tuple(sources)), power=power, card=card)


def fit_guide(sources: Sequence[GuideSource]) -> Guide:
    """The guide of these sources with the usual power."""
    views = [source.views for source in sources]
    with one_torch_thread():
        guide = fit_scale(views)
        guide = replace(guide, gate=fit_gate(views))
    shift = float(np.mean([_field_over_scale(one, guide) for one in views]))
    floor = guide.floor * math.exp(shift)
    return replace(guide, intercept=guide.intercept + shift, floor=floor)


def fit_scale(views: Sequence[GuideViews]) -> Guide:
    """Weights, units, intercept and floor that minimise width and unevenness.

    Every source counts alike. Multiplying the scale by a number changes nothing.
    """
    centre, spread = _spread(views)
    count = len(FEATURES)
    draw = torch.Generator().manual_seed(0)
    weights, levels = torch.zeros(count), torch.tensor(START)
    inner, biases = UNIT_SPREAD * torch.randn(count, UNITS, generator=draw), torch.zeros(UNITS)
    shares = torch.zeros(UNITS)
    learned = [part.requires_grad_() for part in (weights, levels, inner, biases, shares)]
    share = torch.cat([torch.full((len(v.maps),), 1 / len(v.maps)) for v in views]) / len(views)
    for picks in _steps(views, learned):
        maps = torch.cat([v.maps[:, pick] for v, pick in zip(views, picks, strict=True)])
        maps = (maps - centre) / spread
        residual = torch.cat([v.residual[:, pick] for v, pick in zip(views, picks, strict=True)])
        exponent = maps @ weights + torch.tanh(maps @ inner + biases) @ shares + levels[0]
        logs = torch.logaddexp(exponent, levels[1])
        (share * _losses(logs, residual)).sum().backward()
    weights, levels, inner, biases, shares = (part.detach().double() for part in learned)
    outer, inner = weights / spread, inner.T / spread
    intercept, floor = (levels[0] - outer @ centre.double()).item(), levels[1].exp().item()
    biases = (biases - inner @ centre.double()).tolist()
    return Guide(
        weights=tuple(outer.tolist()),
        units=tuple(
            Unit(weights=tuple(row), bias=bias, share=part)
            for row, bias, part in zip(inner.tolist(), biases, shares.tolist(), strict=True)
        ),
        intercept=intercept,
        floor=floor,
        power=USUAL,
        gate=(0.0, 0.0, 0.0),
        beta=str(BETA),
    )


def fit_gate(views: Sequence[GuideViews]) -> tuple[float, float, float]:
    """The gate (eq:gate) under which corrected pictures differ least from photographs."""
    centre, spread = (numbers[list(GATED)] for numbers in _spread(views))
    weights = torch.zeros(len(GATED) + 1, requires_grad=True)
    for picks in _steps(views, [weights]):
        total = torch.zeros(())
        for view, pick in zip(views, picks, strict=True):
            maps = (view.maps[:, pick][..., GATED] - centre) / spread
            gate = torch.sigmoid(maps @ weights[:-1] + weights[-1])
            rest = view.difference[:, pick] - gate[..., None] * view.drift[:, pick]
            total = total + torch.log(rest.square().mean((1, 2)) + LEAST_ERROR).mean()
        total.backward()
    count, distance = (weights.detach()[:-1] / spread).tolist()
    always = float(weights.detach()[-1]) - count * float(centre[0]) - distance * float(centre[1])
    return count, distance, always


def _steps(views: Sequence[GuideViews], learned: list[Tensor]) -> Iterator[list[Tensor]]:
    """The pixels of each step; between steps, `learned` follow their gradients."""
    draw = torch.Generator().manual_seed(0)
    optimiser = AdamW(learned, lr=RATE, weight_decay=0.01)
    rate = OneCycleLR(optimiser, RATE, total_steps=STEPS)
    for _ in range(STEPS):
        optimiser.zero_grad()
        yield [torch.randint(v.maps.shape[1], (PIXELS,), generator=draw) for v in views]
        optimiser.step()
        rate.step()


def _spread(views: Sequence[GuideViews]) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each map, [F] each."""
    centre = torch.stack([v.maps.mean((0, 1)) for v in views]).mean(0)
    variance = torch.stack([v.maps.flatten(0, 1).var(0) for v in views]).mean(0)
    return centre, variance.sqrt().clamp(min=1e-3)


def _losses(logs: Tensor, residual: Tensor) -> Tensor:
    """Log width that each view needs, and the pinball loss of its pixels, [V, P] to [V]."""
    covered = float(1 - BETA)
    count = logs.shape[1]
    ranks = (torch.arange(count) + 0.5) / count
    window = torch.exp(-0.5 * ((ranks - covered) / SOFTNESS) ** 2)
    ratio = torch.log(residual + LEAST_RESIDUAL) - logs
    level = (ratio.sort(dim=1).values * window / window.sum()).sum(1)
    width = level + torch.logsumexp(logs, 1) - math.log(count)
    beyond = ratio - level.detach()[:, None]
    uneven = torch.maximum(covered * beyond, (covered - 1) * beyond)
    return (1 - EVEN) * width + 4 * EVEN * uneven.mean(1)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A source under the guide of the others."""

    source: GuideSource
    guide: Guide
    needed: Array
    """Oracle factors of its views, [V]."""
    means: Array
    """Their mean scales, [V]."""

    @classmethod
    def of(cls, source: GuideSource, guide: Guide) -> LeftOut:
        """Measure the views of a source with a guide."""
        return cls(source, guide, *measure(source.views, guide))

    def width(self, power: float) -> float:
        """Mean width over splits."""
        rule = GuidedRule(guide=replace(self.guide, power=power))
        return mean_width(self.needed, rule.factors(self.means))

    def saving(self, power: float) -> float:
        """Share of the constant scale's width that is saved."""
        residual = self.source.views.residual.double().numpy()
        flat = np.array([view_score(r[None], np.ones((1, r.size)), BETA) for r in residual])
        return saving(self.width(power), mean_width(flat, np.ones(len(flat))))


def left_out(sources: Sequence[GuideSource], fit: Fit) -> list[LeftOut]:
    """Every source under the guide that `fit` makes of the others."""
    found = []
    for left in sources:
        guide = fit(tuple(source for source in sources if source is not left))
        found.append(LeftOut.of(left, guide))
    return found


def choose_power(tried: Sequence[LeftOut]) -> float:
    """The power with the least mean log width on sources left out."""
    return min(POWERS, key=lambda power: sum(math.log(one.width(power)) for one in tried))


def measure(views: GuideViews, guide: Guide) -> tuple[Array, Array]:
    """Oracle factor and mean scale of each view, [V] each."""
    needed, means = [], []
    for maps, hole, errors in zip(views.maps, views.hole, views.residual, strict=True):
        raw = raw_scale(maps, guide)
        values = flattened(raw, float(raw.double().mean())).add_(hole).double()
        mean = float(values.mean())
        shape = (values / mean).numpy()[None]
        needed.append(view_score(errors.double().numpy()[None], shape, BETA))
        means.append(mean)
    return np.array(needed), np.array(means)


def mean_width(needed: Array, factors: Array) -> float:
    """Mean half-width of calibrated boxes over random splits of these views."""
    count = len(needed)
    splits = draw_splits(count, calibration_size(count), 200, 0)
    return estimate(needed, factors, ALPHA, splits).mean_width


def _field_over_scale(views: GuideViews, guide: Guide) -> float:
    """Mean log ratio of the residual field to the scale."""
    means = raw_scale(views.maps, guide).double().mean(1).numpy()
    return float(np.mean(np.log(views.field_means) - np.log(means)))


def _card(sources: Sequence[GuideSource], saved: Mapping[str, float]) -> dict[str, Any]:
    """Sources, and what each saves when it is left out."""
    rows = [
        {
            "scene": source.name,
            "views": len(source.views.cameras),
            "saving": round(saved[source.name], 4) if source.name in saved else None,
            "hashes": dict(sorted(source.marks.items())),
        }
        for source in sources
    ]
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return {"splatcert": __version__, "date": date, "views": sources[0].kind, "scenes": rows}
