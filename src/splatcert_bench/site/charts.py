# SPDX-License-Identifier: Apache-2.0
"""The charts as plain numbers, each a function of the studies of a bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from splatcert.conformal.splits import calibration_size
from splatcert_bench.run.entries import ENSEMBLE
from splatcert_bench.statistics.choices import MissingError
from splatcert_bench.statistics.evidence import UNLEARNED, Evidence
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.tables.cells import BASELINES, BY_PHOTOS, label, mean_of
from splatcert_bench.tables.coverage import (
    CURVE_SIZE,
    GAMMAS,
    READ,
    curve_points,
    readings,
    scenes_with_ratios,
)
from splatcert_bench.tables.paper import paper_text

SHARES = np.linspace(0.5, 1, 201)
"""Shares of covered pixels at which the distribution is drawn."""


@dataclass(frozen=True)
class Chart:
    """A chart before it is drawn; `data` holds only what JSON can hold."""

    name: str
    title: str
    caption: str
    data: Mapping[str, Any]


def level_chart(bench: BenchStudies) -> Chart:
    """View-event coverage against the requested level (fig:validity-efficiency, a)."""
    pooled, by_views = curve_points(bench)
    data = {
        "levels": [100 * float(gamma) for gamma in GAMMAS],
        "pooled": _spread(pooled),
        "views": _spread(by_views),
    }
    caption = (
        f"View-event coverage of the 3DGS-U field at the requested level, {len(pooled)} scenes, "
        f"m = {CURVE_SIZE}. Lines are means over scenes, bands their middle half. The dashed line "
        "is the level itself."
    )
    return Chart("level", "Does calibration control the view event?", caption, data)


def saving_chart(bench: BenchStudies) -> Chart:
    """Savings of all scales, scene by scene (fig:validity-efficiency, b)."""
    main = bench.main
    methods = main.somewhere(*BASELINES, UNLEARNED, "full", *BY_PHOTOS, "oracle")
    evidence = main.having(*methods)
    caption = (
        f"Width saved against the constant scale on {len(evidence.scenes)} scenes. Dots are "
        "scenes, diamonds their mean with a 95% bootstrap interval. On the right, the number of "
        "models to train and render."
    )
    return Chart("saving", "Width saved at matched coverage", caption, _strips(evidence, methods))


def strict_chart(bench: BenchStudies) -> Chart:
    """The two factors under strict family holdout (fig:validity-efficiency, c)."""
    strict = bench.main.by("strict")
    methods = strict.somewhere("a", "shape", UNLEARNED, "full", *BY_PHOTOS, "ensemble", "oracle")
    evidence = strict.having(*methods)
    caption = (
        f"The same on {len(evidence.scenes)} scenes when no scene of the target's family was a "
        "source of its predictor."
    )
    return Chart("strict", "Strict family holdout", caption, _strips(evidence, methods))


def distribution_chart(bench: BenchStudies) -> Chart:
    """Covered share of a view's pixels as a distribution over test views (fig:cdf)."""
    curves = []
    for method in READ:
        evidence = scenes_with_ratios(bench, method)
        if not evidence.studies:
            continue
        read = [readings(bench, evidence, method, study) for study in evidence.studies]
        for kind, found in (
            ("pooled", [r.pooled for r in read]),
            ("views", [r.by_views for r in read]),
        ):
            shares = np.sort(np.concatenate([coverage.fractions for coverage in found]))
            covered = np.concatenate([coverage.successes for coverage in found])
            curves.append(
                {
                    "method": method,
                    "label": label(method),
                    "kind": kind,
                    "pairs": int(shares.size),
                    "below": 100 * float(1 - covered.mean()),
                    "cdf": _rounded(np.searchsorted(shares, SHARES, side="right") / shares.size),
                }
            )
    if not curves:
        raise MissingError("no scene stored its ratios")
    protocol = bench.protocol
    data = {
        "shares": _rounded(SHARES),
        "curves": curves,
        "corner": [float(1 - protocol.beta), float(protocol.alpha)],
    }
    short = {c["kind"]: c["below"] for c in curves if c["method"] == "gsu"}
    said = (
        f" With the 3DGS-U field (bold) {short['views']:.1f}% of test views fall short by View-CP "
        f"and {short['pooled']:.1f}% by pooling (the paper: {_said('view')} and {_said('pooled')})."
        if short
        else ""
    )
    others = [c for c in curves if c["method"] != "gsu"]
    if short and others:
        said += f" Over the other maps: {_among(others, 'views')} and {_among(others, 'pooled')}."
    caption = (
        "Share of a view's pixels inside their boxes, as a distribution over (test view, split) "
        "pairs of all scenes. A valid procedure passes below the circle." + said
    )
    return Chart("distribution", "The view event as a distribution", caption, data)


def coverage_chart(bench: BenchStudies) -> Chart:
    """View-CP coverage of every scene and scale, and its range in theory (thm:validity)."""
    main, alpha = bench.main, bench.protocol.alpha
    methods = main.somewhere("constant", *BASELINES, "a", "shape", UNLEARNED, "full", *BY_PHOTOS)
    scenes = []
    for study in main.studies:
        size = calibration_size(len(study))
        points = []
        for method in methods:
            if not main.can(method, study):
                continue
            found = main.outcome(method, study).coverages
            noise = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else 0.0
            mean = 100 * float(found.mean())
            points.append({"label": label(method), "coverage": mean, "noise": 100 * noise})
        band = [100 * float(1 - alpha), 100 * (float(1 - alpha) + 1 / (size + 1))]
        scenes.append({"scene": study.scene, "m": size, "band": band, "points": points})
    caption = (
        f"View-event coverage of View-CP, mean over {bench.protocol.splits} splits with two "
        "standard errors of the draw of splits. Shaded: from 1 − α to 1 − α + 1/(m + 1), where "
        "the theorem puts the expectation if no scores tie."
    )
    return Chart("coverage", "View-CP coverage, all scenes and scales", caption, {"scenes": scenes})


CHARTS: Mapping[str, Callable[[BenchStudies], Chart]] = {
    "coverage": coverage_chart,
    "level": level_chart,
    "distribution": distribution_chart,
    "saving": saving_chart,
    "strict": strict_chart,
}
"""By name, in the order of the page."""


def _among(curves: Sequence[Mapping[str, Any]], kind: str) -> str:
    """The range of views that fall short."""
    values = sorted(curve["below"] for curve in curves if curve["kind"] == kind)
    ends = [f"{values[0]:.1f}", f"{values[-1]:.1f}"]
    return "–".join(dict.fromkeys(ends)) + "%"


def _said(kind: str) -> str:
    figure = paper_text(f"cdf {kind}", "below")
    return f"{figure.value}%" if figure else ""


def _strips(evidence: Evidence, methods: list[str]) -> dict[str, Any]:
    """Savings of several scales: every scene, the mean and its interval."""
    strips = []
    for method in methods:
        values = evidence.savings(method)
        mean = mean_of(evidence, values)
        strips.append(
            {
                "method": method,
                "label": label(method),
                "values": [float(value) for value in values],
                "mean": mean.value,
                "interval": [mean.low, mean.high],
                "models": _models(evidence, method),
            }
        )
    return {"scenes": list(evidence.scenes), "strips": strips}


def _models(evidence: Evidence, method: str) -> int | None:
    """Models to train and render for a scale, the cost axis of the figure; None if they differ."""
    if method == "oracle":
        return None
    if method != ENSEMBLE:
        return 1
    counts = {study.settings.get("members", "") for study in evidence.studies}
    return int(counts.pop()) if len(counts) == 1 and "" not in counts else None


def _spread(points: np.ndarray) -> dict[str, list[float]]:
    low, high = np.quantile(points, (0.25, 0.75), axis=0)
    return {
        "mean": [float(value) for value in points.mean(axis=0)],
        "low": [float(value) for value in low],
        "high": [float(value) for value in high],
    }


def _rounded(values: np.ndarray) -> list[float]:
    """Round to enough digits for a printed line."""
    return [round(float(value), 5) for value in values]
