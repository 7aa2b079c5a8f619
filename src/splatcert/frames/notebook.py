# SPDX-License-Identifier: Apache-2.0
"""Certificates, boxes, renders and scenes as a notebook shows them, and as figures."""

from __future__ import annotations

import io
from functools import singledispatch
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.certificate import Certificate
from splatcert.conformal.boxes import Boxes
from splatcert.errors import InputError
from splatcert.raster.render import Render
from splatcert.report.charts import PLAN_HEIGHT, PLAN_WIDTH, on_plan
from splatcert.report.colours import UNIT, WidthScale, palette
from splatcert.report.content import of_255
from splatcert.report.pictures import jpeg, reduce, width_png
from splatcert.report.svg import circle, drawing
from splatcert.report.words.promise import guarantee_words
from splatcert.report.words.summary import width_words
from splatcert.scene.scene import Scene
from splatcert.storage.png import to_pixels

PICTURE = "width:100%;border-radius:4px"


class FigureError(InputError):
    """A figure that cannot be drawn here."""


@singledispatch
def html_of(shown: object) -> str:
    """What a notebook shows."""
    raise TypeError(f"cannot show a {type(shown).__name__}")


@html_of.register
def _certificate(certificate: Certificate) -> str:
    record = certificate.record
    return _table(
        {
            "Certificate": f"{record.scene.name}, {record.model.gaussians:,} Gaussians",
            "Guarantee": guarantee_words(certificate),
            "Applies to": f"views exchangeable with its {record.guarantee.views} calibration views",
            "Half-width": width_words(certificate) or "unbounded",
        }
    )


@html_of.register
def _boxes(boxes: Boxes) -> str:
    center, half_width = _arrays(boxes)
    pictures = [_picture(jpeg(reduce(center)), "Render")]
    words = "The boxes are unbounded: there were too few calibration views."
    if boxes.is_bounded:
        scale = WidthScale.for_pixels([float(half_width[np.isfinite(half_width)].mean())])
        pictures.append(_picture(width_png(reduce(half_width), scale), "Half-width"))
        words = f"{_mean_words(boxes, half_width)} Colours run from 0 to {scale.top} of 255."
    if boxes.flag is not None:
        words += f" This camera is {boxes.flag.words()}."
    return (
        '<div style="display:grid;grid-template-columns:1fr 1fr;gap:8px;max-width:960px">'
        f"{''.join(pictures)}</div><p>{escape(words)}</p>"
    )


def _mean_words(boxes: Boxes, half_width: NDArray[np.float32]) -> str:
    if boxes.is_vacuous:
        return "The boxes are vacuous: on average wider than the range of colours."
    return f"Mean half-width {of_255(float(half_width[np.isfinite(half_width)].mean()))} of 255."


@html_of.register
def _render(render: Render) -> str:
    return _picture(jpeg(reduce(render.rgb.detach().cpu().numpy())), "Render")


@html_of.register
def _scene(scene: Scene) -> str:
    shown = ("format", "photos", "training", "held out", "split", "sizes", "extent")
    facts = scene.describe()
    rows = {key: _plain(facts[key]) for key in shown if facts.get(key) is not None}
    training = np.array([camera.centre for camera in scene.training.cameras])
    held_out = np.array([view.camera.centre for view in scene.held_out]).reshape(-1, 3)
    drawing = _plan(training, held_out) if len(training) else ""
    return f'{_table(rows)}<div style="max-width:420px">{drawing}</div>'


def figure_of(shown: object) -> Any:
    """A matplotlib figure of boxes or of a certificate."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FigureError(
            "figures require matplotlib.\n  Install it: pip install 'splatcert[figures]'."
        ) from None

    class ShownFigure(Figure):
        """A figure that a notebook shows without pyplot."""

        def _repr_png_(self) -> bytes:
            stored = io.BytesIO()
            self.savefig(stored, format="png")
            return stored.getvalue()

    figure = ShownFigure(figsize=(10, 4), layout="constrained")
    if isinstance(shown, Boxes):
        _draw_boxes(figure, shown)
    elif isinstance(shown, Certificate):
        _draw_certificate(figure, shown)
    else:
        raise TypeError(f"cannot draw a {type(shown).__name__}")
    return figure


def _draw_boxes(figure: Any, boxes: Boxes) -> None:
    from matplotlib.colors import ListedColormap

    center, half_width = _arrays(boxes)
    left, right = figure.subplots(1, 2)
    left.imshow(to_pixels(center))
    left.set_title("render")
    finite = half_width[np.isfinite(half_width)]
    top = WidthScale.for_pixels([float(finite.mean())]).top if finite.size else 255
    colours = ListedColormap(palette() / 255)
    drawn = right.imshow(255 * half_width, cmap=colours, vmin=0, vmax=top)
    right.set_title("half-width" if boxes.is_bounded else "unbounded boxes")
    figure.colorbar(drawn, ax=right, label=UNIT)
    for axes in (left, right):
        axes.set_axis_off()


def _draw_certificate(figure: Any, certificate: Certificate) -> None:
    left, right = figure.subplots(1, 2)
    scores, widths = np.sort(certificate.scores), np.sort(certificate.usual_half_widths)
    ranks = np.arange(1, len(scores) + 1)
    left.plot(ranks, scores, "o")
    if np.isfinite(certificate.threshold):
        left.axhline(certificate.threshold, color="0.4", linewidth=1)
        left.annotate("threshold q", (1, certificate.threshold), va="bottom")
    left.set(xlabel="calibration views by score", ylabel="score", ylim=(0, 1.15 * scores[-1]))
    right.plot(ranks, 255 * widths, "o")
    right.set(
        xlabel="calibration views by half-width", ylabel=UNIT, ylim=(0, 255 * 1.15 * widths[-1])
    )
    figure.suptitle(guarantee_words(certificate), fontsize="medium", wrap=True)


def _arrays(boxes: Boxes) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Centre and half-width in NumPy, wherever they were computed."""
    found = []
    for values in (boxes.center, boxes.half_width):
        known = values.detach().cpu().numpy() if hasattr(values, "detach") else values
        found.append(np.asarray(known, dtype=np.float32))
    return found[0], found[1]


def _plan(training: NDArray[np.float64], held_out: NDArray[np.float64]) -> str:
    """Map of the cameras, without the style sheet that a report has."""
    groups = ((2, "#8a8a94", "training"), (4, "#d4457f", "held out"))
    parts = [
        circle(place, radius, "camera", words, fill=colour)
        for (radius, colour, words), places in zip(groups, on_plan(training, held_out), strict=True)
        for place in places.tolist()
    ]
    words = f"{len(training)} training cameras in grey, {len(held_out)} held out in red"
    return drawing(parts, "Camera positions", words, (PLAN_WIDTH, PLAN_HEIGHT))


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {count}" for key, count in list(value.items())[:4])
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(rows: dict[str, str]) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(key)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for key, text in rows.items()
    )
    return f"<table>{cells}</table>"


def _picture(address: str, words: str) -> str:
    return (
        f'<figure style="margin:0"><img src="{address}" alt="{escape(words)}" style="{PICTURE}">'
        f"<figcaption>{escape(words)}</figcaption></figure>"
    )
