# SPDX-License-Identifier: Apache-2.0
"""Charts and pictures as PNG, all in one style. Matplotlib is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.storage.arrays import LONGEST_REASON, UNUSABLE
from splatcert.storage.whole import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from splatcert_bench.site.panels import Panel, PanelRow

INK, MUTED, FAINT = "#24292f", "#6e7781", "#d8dee4"
OURS, OTHER = "#0b6fa4", "#c4572e"
PALETTE = (
    "#0b6fa4",
    "#c4572e",
    "#3a8f5c",
    "#8a5aa8",
    "#b58900",
    "#5b6770",
    "#cc6699",
    "#1aa5a5",
    "#7a4b2a",
    "#24292f",
)
CELL = 2.5
"""Width of one picture, in inches."""
MISSED = np.array([214, 40, 57], dtype=np.uint8)
STYLE: dict[Any, Any] = {
    "figure.facecolor": "white",
    "figure.dpi": 160,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.1,
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.8,
}


class FigureError(InputError):
    """A figure that cannot be drawn."""


def write_charts(folder: Path, charts: Sequence[Mapping[str, Any]]) -> None:
    """Draw charts from their numbers; if one cannot be drawn, no file is written."""
    with ExitStack() as drawn:
        for chart in charts:
            name = chart["name"]
            size = (8.2, 3.9) if name == "coverage" else (7.4, 3.8)
            figure = drawn.enter_context(_figure(size, folder / f"{name}.png"))
            _draw(figure.add_subplot(), name, chart["data"])


def _draw(axes: Axes, name: str, data: Mapping[str, Any]) -> None:
    remedy = "Run splatcert bench again to rewrite results.json."
    if name not in DRAWINGS:
        raise FigureError(f"there is no chart {name!r}, only {', '.join(DRAWINGS)}.\n  {remedy}")
    try:
        DRAWINGS[name](axes, data)
    except UNUSABLE as error:  # the numbers come from a file, which may be damaged
        reason = repr(error)[:LONGEST_REASON]
        raise FigureError(
            f"the chart {name} cannot be drawn from its numbers: {reason}.\n  {remedy}"
        ) from error


def write_panel(path: Path, panel: Panel) -> None:
    """Draw one figure of renders, half-widths and misses."""
    height, width = panel.rows[0].render.shape[:2]
    columns = 1 + len(panel.rows[0].boxes) + (0 if panel.widths else 1)
    ratios = [CELL] * columns + ([1.2 * CELL] if panel.widths else [])
    size = sum(ratios) + 0.9, len(panel.rows) * (CELL * height / width + 0.3) + 0.3
    widest = max(map(_widest, panel.rows))
    with _figure(size, path) as figure:
        grid = figure.add_gridspec(len(panel.rows), len(ratios), width_ratios=ratios)
        for at, row in enumerate(panel.rows):
            axes = [figure.add_subplot(grid[at, column]) for column in range(columns)]
            top = widest if panel.widths else _widest(row)
            _draw_row(figure, axes, row, top, misses=not panel.widths, heads=at == 0)
        if panel.widths:
            _draw_widths(figure.add_subplot(grid[:, -1]), panel.widths)


def _draw_level(axes: Axes, data: Mapping[str, Any]) -> None:
    levels = data["levels"]
    for key, text, colour in (("views", "View-CP", OURS), ("pooled", "pixel-pooled", OTHER)):
        line = data[key]
        axes.fill_between(levels, line["low"], line["high"], color=colour, alpha=0.15, linewidth=0)
        axes.plot(levels, line["mean"], color=colour, marker="o", markersize=4, label=text)
    axes.plot(levels, levels, color=MUTED, linestyle="--", linewidth=1, label="requested")
    axes.set(xlabel="level γ = 1 − α = 1 − β (%)", ylabel="view-event coverage (%)", ylim=(35, 101))
    axes.legend(loc="upper left")


def _draw_distribution(axes: Axes, data: Mapping[str, Any]) -> None:
    share, below = data["corner"]
    for curve in data["curves"]:
        main = curve["method"] == "gsu"
        colour = OURS if curve["kind"] == "views" else OTHER
        name = "View-CP" if curve["kind"] == "views" else "pixel-pooled"
        text = f"{name}: {curve['below']:.1f}% of views fall short" if main else None
        width, alpha = (2.2, 1.0) if main else (1.2, 0.35)
        values = 100 * np.array(curve["cdf"])
        shares = 100 * np.array(data["shares"])
        axes.plot(shares, values, color=colour, linewidth=width, alpha=alpha, label=text)
    axes.axvline(100 * share, color=MUTED, linestyle="--", linewidth=1)
    axes.axhline(100 * below, color=MUTED, linestyle="--", linewidth=1)
    axes.plot(100 * share, 100 * below, "o", markersize=8, markerfacecolor="white", color=INK)
    axes.set(xlabel="pixels of a view inside their boxes (%)", ylabel="test views up to there (%)")
    axes.set(xlim=(70, 100), ylim=(0, 100))
    _add_legend(axes, loc="upper left")


def _draw_coverage(axes: Axes, data: Mapping[str, Any]) -> None:
    scenes = data["scenes"]
    labels = list(dict.fromkeys(p["label"] for scene in scenes for p in scene["points"]))
    for at, scene in enumerate(scenes):
        low, high = scene["band"]
        axes.fill_between([at - 0.42, at + 0.42], low, high, color=FAINT, linewidth=0)
        for point in scene["points"]:
            place = labels.index(point["label"])
            across = at + 0.66 * ((place + 0.5) / len(labels) - 0.5)
            colour = PALETTE[place % len(PALETTE)]
            noise = 2 * point["noise"]
            axes.errorbar(
                across, point["coverage"], noise, color=colour, marker="o", markersize=3.5,
                linewidth=1, label=_text(point["label"]) if at == 0 else None,
            )  # fmt: skip
    axes.set_xticks(range(len(scenes)))
    # One line per word: names of neighbours would run into each other.
    names = [scene["scene"].replace("_", "\n") + f"\nm = {scene['m']}" for scene in scenes]
    axes.set_xticklabels(names, fontsize=8)
    axes.grid(axis="x", visible=False)
    axes.set(ylabel="view-event coverage (%)")
    axes.margins(y=0.12)
    _add_legend(axes, loc="upper center", ncols=4, bbox_to_anchor=(0.5, -0.16))


def _draw_strips(axes: Axes, data: Mapping[str, Any]) -> None:
    strips = data["strips"]
    for at, strip in enumerate(reversed(strips)):
        colour = OURS if strip["method"] == "full" else MUTED
        values = strip["values"]
        jitter = 0.18 * (np.arange(len(values)) % 3 - 1)
        axes.plot(values, at + jitter, "o", color=colour, alpha=0.35, markersize=4)
        low, high = strip["interval"]
        axes.plot([low, high], [at, at], color=colour, linewidth=2.4)
        axes.plot(strip["mean"], at, "D", color=colour, markersize=7, markeredgecolor="white")
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(range(len(strips)))
    axes.set_yticklabels([_text(strip["label"]) for strip in reversed(strips)])
    costs = [strip.get("models") for strip in reversed(strips)]
    if any(cost is not None for cost in costs):
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(strips)))
        right.set_yticklabels(["" if cost is None else f"{cost}" for cost in costs])
        right.set_ylabel("models")
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="width saved against the constant scale (%)", ylim=(-0.6, len(strips) - 0.4))


def _add_legend(axes: Axes, **where: Any) -> None:
    """Unless there is nothing to explain."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**where)


DRAWINGS: Mapping[str, Callable[[Axes, Mapping[str, Any]], None]] = {
    "coverage": _draw_coverage,
    "level": _draw_level,
    "distribution": _draw_distribution,
    "saving": _draw_strips,
    "strict": _draw_strips,
}
"""How each chart is drawn, by name."""


def _draw_row(
    figure: Figure, axes: Sequence[Axes], row: PanelRow, top: float, *, misses: bool, heads: bool
) -> None:
    axes[0].imshow(row.render)
    axes[0].set_ylabel(row.label)
    drawn = None
    for box, place in zip(row.boxes, axes[1:], strict=False):
        drawn = place.imshow(box.half_width, cmap="magma", vmin=0, vmax=top)
        mean = float(box.half_width.mean())
        place.set_xlabel(f"mean {mean:.3f}, {100 * box.covered:.0f}% inside", fontsize=8)
        if heads:
            place.set_title(f"half-width: {_text(box.label)}", fontsize=9)
    if heads:
        axes[0].set_title("render", fontsize=9)
    if misses:
        axes[-1].imshow(_marked(row.render, row.boxes[-1].misses))
        if heads:
            axes[-1].set_title("pixels our boxes miss", fontsize=9)
    for place in axes:
        place.set_xticks([])
        place.set_yticks([])
        place.grid(visible=False)
        for spine in place.spines.values():
            spine.set_visible(False)
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=list(axes[1 : 1 + len(row.boxes)]), fraction=0.03, pad=0.01)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def _widest(row: PanelRow) -> float:
    """Top of a row's colour scale; a few pixels may lie above it."""
    return max(float(np.quantile(box.half_width, 0.995)) for box in row.boxes)


def _text(label: str) -> str:
    """A label for Matplotlib, whose fonts place our combining marks badly."""
    return label.replace("b̃", r"$\tilde{b}$").replace("b̄", r"$\bar{b}$")


def _draw_widths(axes: Axes, widths: Mapping[str, NDArray[np.float64]]) -> None:
    for (text, values), colour in zip(widths.items(), (OTHER, OURS), strict=False):
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            "o-",
            color=colour,
            markersize=3,
            label=_text(text),
        )
    axes.set(xlabel="held-out views, easy to hard", ylabel="mean half-width", ylim=(0, None))
    axes.margins(y=0.08)
    axes.legend(loc="lower right")


def _marked(render: NDArray[np.uint8], misses: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The render greyed and lightened, with missed pixels in red."""
    grey = render.astype(np.float64).mean(axis=2, keepdims=True).repeat(3, axis=2)
    picture = (140 + 0.45 * grey).clip(0, 255).astype(np.uint8)
    picture[misses] = MISSED
    return picture


@contextmanager
def _figure(size: tuple[float, float], path: Path) -> Iterator[Figure]:
    """A figure in our style, saved at the end; Matplotlib's global settings stay unchanged.

    The PNG holds no program version, so equal figures are equal bytes.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise FigureError(
            "figures require Matplotlib, which is not installed; everything else was written.\n"
            "  Install splatcert[figures], then run splatcert results."
        ) from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        with replacing(path) as aside, aside.open("wb") as file:
            figure.savefig(file, format="png", metadata={"Software": None})
