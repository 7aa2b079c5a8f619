# SPDX-License-Identifier: Apache-2.0
"""The charts of a report: coverage, width per view, factor and shape against error, camera map."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from splatcert.certificate.content.record import Guarantee
from splatcert.conformal.levels import in_percent
from splatcert.conformal.ranks import rank_correlation
from splatcert.report.colours import WidthScale
from splatcert.report.content import (
    CalibrationViews,
    NextPhoto,
    ShapeTest,
    percent,
    plural,
    width,
)
from splatcert.report.svg import Axis, Chart, circle, drawing, text

Array = NDArray[np.float64]

PLAN_WIDTH, PLAN_HEIGHT, PLAN_MARGIN = 440, 320, 22


def coverage_curve(views: CalibrationViews, guarantee: Guarantee) -> Markup:
    """Share of views with at least a given share of pixels inside, and the guaranteed level.

    Exact everywhere with photos; from the certificate alone, exact at its levels (dots).
    """
    wanted, corner = float(1 - guarantee.beta), float(1 - guarantee.alpha)
    shares, levels = covered_shares(views, guarantee)
    lowest = min(wanted, *shares) if views.inside is not None else float(min(levels))
    low = max(0.0, np.floor(10 * lowest - 0.5) / 10)
    across = Axis("share of a view's pixels inside their boxes", low, 1.0, _percents(low, 1.0))
    chart = Chart(across, Axis("share of views at or above", 0, 1, _percents(0, 1)))
    chart.line([(low, corner), (wanted, corner), (wanted, 0)], "target")
    if views.inside is not None:
        ordered = np.sort(shares)
        remaining = [1 - k / len(ordered) for k in range(1, len(ordered) + 1)]
        chart.steps([(low, 1.0), *zip(ordered.tolist(), remaining, strict=True)], "curve")
    else:
        points = list(zip(levels, shares, strict=True))
        chart.line(points, "curve faint")
        chart.dots([(p, f"{percent(p[1])} of views have {percent(p[0])}") for p in points], "dot")
    reached = percent(_reaching(views, guarantee, guarantee.beta))
    chart.dots([((wanted, corner), "the level that is guaranteed")], "corner", 6)
    chart.note((wanted, corner), "guaranteed", "end", (-10, 18))
    return chart.svg(
        "Coverage of the calibration views",
        f"{reached} of {plural(len(views.names), 'view')} have at least "
        f"{in_percent(1 - guarantee.beta)} of their pixels inside; the guarantee for new views is "
        f"{in_percent(1 - guarantee.alpha)}.",
    )


def covered_shares(
    views: CalibrationViews, guarantee: Guarantee
) -> tuple[list[float], list[float]]:
    """Pixel coverage per view, or the share of views that reach each level, and the levels."""
    if views.inside is not None:
        return views.inside.tolist(), []
    betas = sorted(views.levels, reverse=True)
    return [_reaching(views, guarantee, beta) for beta in betas], [float(1 - b) for b in betas]


def _reaching(views: CalibrationViews, guarantee: Guarantee, beta: Fraction) -> float:
    """Share of views with at least 1 - beta of their pixels inside: a* <= q a (lem:event)."""
    return float(np.mean(is_covered(views, guarantee, beta)))


def is_covered(
    views: CalibrationViews, guarantee: Guarantee, beta: Fraction | None = None
) -> NDArray[np.bool_]:
    """Whether each view reaches its pixel coverage, [m]."""
    needed = views.needed(guarantee.beta if beta is None else beta)
    return needed / views.factors <= guarantee.threshold * (1 + 1e-9)


def _percents(low: float, high: float) -> tuple[tuple[float, str], ...]:
    step = 0.1 if high - low <= 0.5 else 0.2
    count = round((high - low) / step - 1e-6)
    return tuple((high - k * step, f"{100 * (high - k * step):.0f}%") for k in range(count, -1, -1))


def width_by_view(views: CalibrationViews, guarantee: Guarantee) -> Markup:
    """Mean half-width per view, given and needed, from easiest to hardest."""
    order = views.by_difficulty(guarantee.beta)
    needed = views.needed(guarantee.beta)[order].tolist()
    given = (guarantee.threshold * views.factors)[order].tolist()
    most = max(*needed, *given) if math.isfinite(guarantee.threshold) else needed[-1]
    left = Axis.upwards("half-width, of 255", most * 1.04, unit=1 / 255)
    chart = Chart(_ranks(len(order)), left, right=unit_axis(left))
    if math.isfinite(guarantee.threshold):
        chart.line(list(enumerate(given, 1)), "curve second")
    covered = is_covered(views, guarantee)[order]
    dots, crosses = [], []
    for rank, row in enumerate(order):
        told = f"needed {width(needed[rank])}, given {width(given[rank])}"
        mark = (rank + 1, needed[rank]), f"{views.names[row]}: {told}"
        (dots if covered[rank] else crosses).append(mark)
    chart.dots(dots, "dot")
    chart.crosses(crosses, "cross")
    return chart.svg(
        "Half-width per view",
        f"Views needed {width(needed[0])} to {width(needed[-1])}; boxes are "
        f"{width(float(np.mean(given)))} wide on average. {len(crosses)} of "
        f"{plural(len(order), 'view')} needed more than was given.",
    )


def _ranks(count: int) -> Axis:
    marks = sorted({1, count, *np.linspace(1, count, 5).round().astype(int).tolist()})
    name = "calibration views, easiest to hardest"
    return Axis(name, 0.5, count + 0.5, tuple((k, str(k)) for k in marks))


def unit_axis(left: Axis) -> Axis:
    """The same heights on the colour range 0 to 1."""
    ticks = Axis.upwards("", left.high, digits=2).ticks
    kept = tuple(tick for tick in ticks if tick[0] <= left.high * 1.001)
    return Axis("of 1", left.low, left.high, kept)


def factor_scatter(views: CalibrationViews, guarantee: Guarantee) -> Markup:
    """View factor against the half-width needed, on log axes; views above the line fall short."""
    needed, factors = views.needed(guarantee.beta), views.factors
    across = _log_axis("view factor a, predicted without the view's photo", factors)
    chart = Chart(across, _log_axis("half-width needed a*, of 255", needed, unit=1 / 255))
    if math.isfinite(guarantee.threshold):
        inside = [
            a for a in np.geomspace(across.low, across.high, 60) if _within(chart.y, a, guarantee)
        ]
        if len(inside) > 1:
            ends = (inside[0], inside[-1])
            chart.line([(a, guarantee.threshold * a) for a in ends], "target")
            chart.note((ends[1], guarantee.threshold * ends[1]), "q · a", "end", (-2, 22))
    covered = is_covered(views, guarantee)
    found = zip(views.names, factors, needed, covered, strict=True)
    points = [
        (((float(a), float(n)), f"{name}: a = {a:.3g}, needed {width(n)}"), good)
        for name, a, n, good in found
    ]
    chart.dots([point for point, good in points if good], "dot")
    chart.crosses([point for point, good in points if not good], "cross")
    return chart.svg(
        "View factor against half-width needed",
        f"Rank correlation {rank_correlation(factors, needed):+.2f} over "
        f"{plural(len(factors), 'view')}.",
    )


def _within(axis: Axis, factor: float, guarantee: Guarantee) -> bool:
    return axis.low <= guarantee.threshold * factor <= axis.high


def _log_axis(name: str, values: Array, unit: float = 1.0) -> Axis:
    known = values[(values > 0) & np.isfinite(values)]
    least, most = (float(known.min()) / 1.12, float(known.max()) * 1.12) if known.size else (1, 2)
    marks = [
        digit * 10.0**power for power in range(-4, 5) for digit in (1, 1.5, 2, 3, 4, 5, 6, 7, 8)
    ]
    kept = [mark for mark in marks if least <= mark * unit <= most]
    chosen = [mark for mark in kept if len(kept) <= 7 or f"{mark:g}".strip("0.")[0] in "125"]
    return Axis(name, least, most, tuple((mark * unit, f"{mark:g}") for mark in chosen), log=True)


def shape_curve(test: ShapeTest) -> Markup:
    """Error against the shape b~, both relative to the view mean; the diagonal would be perfect."""
    most = float(max(test.shape.max(), test.error.max())) * 1.04
    chart = Chart(
        Axis.upwards("shape b̃, relative to the view mean", most, digits=1),
        Axis.upwards("error, relative to the view mean", most, digits=1),
    )
    chart.line([(0, 0), (chart.x.high, chart.x.high)], "target")
    points = list(zip(test.shape.tolist(), test.error.tolist(), strict=True))
    chart.line(points, "curve faint")
    chart.dots([(p, f"where b̃ is {p[0]:.2f}, the error is {p[1]:.2f}") for p in points], "dot")
    return chart.svg(
        "Error against shape",
        f"Where the shape is smallest ({test.shape[0]:.2f}), the error is {test.error[0]:.2f} "
        f"times the view mean; where it is largest ({test.shape[-1]:.2f}), {test.error[-1]:.2f}.",
    )


def plan(
    training: Array,
    views: CalibrationViews,
    guarantee: Guarantee,
    chosen: tuple[NextPhoto, ...],
    scale: WidthScale,
) -> Markup:
    """Map of the cameras, projected along the direction in which they differ least."""
    needed = views.needed(guarantee.beta)
    targets = np.array([photo.place for photo in chosen]).reshape(-1, 3)
    flat, places, marked = on_plan(training, views.places, targets)
    parts = [circle(point, 2, "faint-dot") for point in flat.tolist()]
    for name, point, value in zip(views.names, places.tolist(), needed.tolist(), strict=True):
        words = f"{name}: needed {width(value)}"
        parts.append(circle(point, 5, "camera", words, fill=scale.css(value)))
    for number, (x, y) in enumerate(marked.tolist(), 1):
        parts += [circle((x, y), 9, "ring"), text((x + 10, y - 8), str(number), "start", "note")]
    return drawing(
        parts,
        "Camera positions",
        f"{plural(len(flat), 'training camera')} as small dots, "
        f"{plural(len(places), 'calibration view')} coloured by the half-width they needed, "
        "suggested places ringed.",
        (PLAN_WIDTH, PLAN_HEIGHT),
    )


def on_plan(*groups: Array) -> tuple[Array, ...]:
    """Places projected onto the plane in which they vary most, fitted into the drawing."""
    everything = np.concatenate(groups)
    centre = everything.mean(axis=0)
    _, _, axes = np.linalg.svd(everything - centre, full_matrices=False)
    plane = axes[:2] * np.sign(axes[:2][[0, 1], np.abs(axes[:2]).argmax(axis=1)])[:, None]
    flat = [(group - centre) @ plane.T for group in groups]
    low, high = (
        np.min((everything - centre) @ plane.T, 0),
        np.max((everything - centre) @ plane.T, 0),
    )
    room = np.array([PLAN_WIDTH, PLAN_HEIGHT]) - 2 * PLAN_MARGIN
    factor = float((room / np.maximum(high - low, 1e-9)).min())
    middle = (low + high) / 2
    place = np.array([PLAN_WIDTH, PLAN_HEIGHT]) / 2
    return tuple(place + (one - middle) * factor for one in flat)
