# SPDX-License-Identifier: Apache-2.0
"""How a guide is learned: weights of the maps by the width of boxes, then three numbers.

A view's width is the mean scale times the level that covers 90% of its pixels. Half of the loss
is its logarithm; the other half keeps coverage even between narrow and wide boxes, since the
narrowest scale would give up the hardest pixels. The power of the mean scale and the weight of
nearby training views are chosen by the width of calibrated boxes on captures left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert import __version__
from splatcert.conformal.calibrate import view_score
from splatcert.conformal.splits import calibration_size, draw_splits, estimate, saving
from splatcert.difficulty.guided.guide import FEATURES, Guide
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.difficulty.sources import ALPHA
from splatcert.scales.guide_sources import GuideSource, GuideViews
from splatcert.scales.guided_features import scale_map

Array = NDArray[np.float64]
Fit = Callable[[tuple[GuideSource, ...]], Guide]
BETA = Fraction(1, 10)
EVEN = 0.75
"""Weight of even coverage in the loss."""
STEPS, PIXELS, RATE = 120, 100, 0.05
SOFTNESS = 0.02
"""Width of the window of ranks around the covered share."""
LEAST_RESIDUAL = 1e-4
POWERS, LATES = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0), (0.0, 0.3, 0.6, 0.9)
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
AS_GOOD = 0.0115
"""Log errors that differ by less, 0.05 dB, count as equal."""
USUAL = (1.5, 0.6)
"""Power and late for a single source, which cannot be left out."""


def learn_guide(sources: Sequence[GuideSource], fit: Fit | None = None) -> Guide:
    """The guide learned on all sources, with its card.

    `fit` is `fit_guide`, perhaps one that remembers the guides it has made.
    """
    fit = fit or fit_guide
    tried = left_out(sources, fit) if len(sources) > 1 else []
    power, late = choose_rule(tried) if tried else USUAL
    card = _card(sources, {one.source.name: one.saving(power, late) for one in tried})
    return replace(fit(tuple(sources)), power=power, late=late, card=card)


def fit_guide(sources: Sequence[GuideSource]) -> Guide:
    """The guide of these sources with the usual rule for the factor."""
    weights = fit_weights([source.learned for source in sources])
    levels = [_log_means(source.learned, weights) for source in sources]
    fields = [np.log(source.learned.field_means) for source in sources]
    intercept = float(np.mean([f.mean() - l.mean() for f, l in zip(fields, levels, strict=True)]))
    return Guide(
        weights=tuple(weights.tolist()),
        intercept=intercept,
        power=USUAL[0],
        late=USUAL[1],
        strength=_strength([source.learned for source in sources]),
        beta=str(BETA),
    )


def fit_weights(views: Sequence[GuideViews]) -> Array:
    """Weights that minimise width and unevenness, every source counting alike, [F]."""
    units = torch.stack([v.maps.flatten(0, 1).var(0) for v in views]).mean(0).sqrt()
    units = units.clamp(min=1e-3)
    draw = torch.Generator().manual_seed(0)
    weights = torch.zeros(len(FEATURES), requires_grad=True)
    optimiser = torch.optim.AdamW([weights], lr=RATE, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS)
    share = torch.cat([torch.full((len(v.maps),), 1 / len(v.maps)) for v in views]) / len(views)
    for _ in range(STEPS):
        picks = [torch.randint(v.maps.shape[1], (PIXELS,), generator=draw) for v in views]
        pairs = list(zip(views, picks, strict=True))
        maps = torch.cat([view.maps[:, pick] for view, pick in pairs])
        residual = torch.cat([view.residual[:, pick] for view, pick in pairs])
        optimiser.zero_grad()
        (share * _losses((maps / units) @ weights, residual)).sum().backward()
        optimiser.step()
        rate.step()
    return (weights.detach() / units).double().numpy()


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
    training: tuple[Array, Array]
    """Oracle factors and mean scales of its training views, [T] each."""
    learned: tuple[Array, Array]
    """The same of the views to learn from, [V] each."""

    @classmethod
    def of(cls, source: GuideSource, guide: Guide) -> LeftOut:
        """Measure the views of a source with a guide."""
        training = measure(source.training, guide)
        if source.held_out is None:
            return cls(source, guide, training, training)
        return cls(source, guide, training, measure(source.held_out, guide))

    def width(self, power: float, late: float) -> float:
        """Mean width over splits; training views do without what they needed themselves."""
        guide, source = replace(self.guide, power=power, late=late), self.source
        needed, means = self.training
        rule = GuidedRule.freeze(guide, source.training.cameras, means, needed)
        views = zip(self.learned[1].tolist(), source.learned.cameras, strict=True)
        factors = [
            rule.factor(mean, camera, leave=k if source.held_out is None else None)
            for k, (mean, camera) in enumerate(views)
        ]
        return mean_width(self.learned[0], np.array(factors))

    def saving(self, power: float, late: float) -> float:
        """Share of the constant scale's width that is saved."""
        residual = self.source.learned.residual.double().numpy()
        flat = np.array([view_score(r[None], np.ones((1, r.size)), BETA) for r in residual])
        return saving(self.width(power, late), mean_width(flat, np.ones(len(flat))))


def left_out(sources: Sequence[GuideSource], fit: Fit) -> list[LeftOut]:
    """Every source under the guide that `fit` makes of the others."""
    found = []
    for left in sources:
        guide = fit(tuple(source for source in sources if source is not left))
        found.append(LeftOut.of(left, guide))
    return found


def choose_rule(tried: Sequence[LeftOut]) -> tuple[float, float]:
    """Power and late with the least mean log width on sources left out."""
    return min(
        product(POWERS, LATES), key=lambda rule: sum(math.log(one.width(*rule)) for one in tried)
    )


def measure(views: GuideViews, guide: Guide) -> tuple[Array, Array]:
    """Oracle factor and mean scale of each view, [V] each."""
    needed, means = [], []
    for logs, errors in zip(logs_of(views, guide), views.residual, strict=True):
        values, mean = scale_map(logs)
        shape = (values.double() / mean).numpy()[None]
        needed.append(view_score(errors.double().numpy()[None], shape, BETA))
        means.append(mean)
    return np.array(needed), np.array(means)


def mean_width(needed: Array, factors: Array) -> float:
    """Mean half-width of calibrated boxes over random splits of these views."""
    count = len(needed)
    splits = draw_splits(count, calibration_size(count), 200, 0)
    return estimate(needed, factors, ALPHA, splits).mean_width


def logs_of(views: GuideViews, guide: Guide) -> Tensor:
    """The logarithm of s (eq:guided) at the pixels of views, [V, P]."""
    weights = torch.tensor(guide.weights, dtype=views.maps.dtype)
    return views.maps @ weights + guide.intercept


def _log_means(views: GuideViews, weights: Array) -> Array:
    logs = views.maps @ torch.from_numpy(weights).to(views.maps)
    return np.log(logs.exp().double().mean(1).numpy())


def _strength(views: Sequence[GuideViews]) -> float:
    """The smallest share of the witnesses' residual that improves pictures as much as any."""

    def error(strength: float) -> float:
        rest = [(v.difference - strength * v.drift).square().mean((1, 2)) for v in views]
        return float(np.mean([torch.log(r + 1e-6).mean() for r in rest]))

    errors = {strength: error(strength) for strength in STRENGTHS}
    limit = min(errors.values()) + AS_GOOD
    return min(strength for strength, value in errors.items() if value <= limit)


def _card(sources: Sequence[GuideSource], saved: Mapping[str, float]) -> dict[str, Any]:
    """Sources, and what each saves when it is left out."""
    rows = [
        {
            "scene": source.name,
            "views": len(source.learned.cameras),
            "saving": round(saved[source.name], 4) if source.name in saved else None,
            "hashes": dict(sorted(source.marks.items())),
        }
        for source in sources
    ]
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    views = "training" if sources[0].held_out is None else "held-out"
    return {"splatcert": __version__, "date": date, "views": views, "scenes": rows}
