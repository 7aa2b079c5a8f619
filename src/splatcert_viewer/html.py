# SPDX-License-Identifier: Apache-2.0
"""Pieces of the page: colour bar, gauge, guarantee, card. All text from files is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from splatcert.certificate.certificate import Certificate
from splatcert.conformal.boxes import VACUOUS, width_in_words
from splatcert.conformal.calibrate import shortfall
from splatcert.report.colours import GREY, STEPS, WidthScale, palette
from splatcert.report.words.promise import promise_lines
from splatcert_viewer.cameras.known_views import KnownView
from splatcert_viewer.frame import Frame, Mode

GOOD, BAD, QUIET = "#51cf66", "#ff922b", "#909296"
CAPTIONS: dict[Mode, str] = {
    "RGB": "The render: the centre of every box.",
    "half-width": "How far a photo may differ from the render, per pixel.",
    "lower": "The lower corner of every box, clipped at black.",
    "upper": "The upper corner of every box, clipped at white.",
}


def _block(content: str) -> str:
    return f'<div style="padding:0 0.75em 0.6em;font-size:0.85em;line-height:1.4">{content}</div>'


def _line(content: str, colour: str = QUIET) -> str:
    return f'<div style="color:{colour}">{content}</div>'


def facts(said: Mapping[str, str]) -> str:
    """Labelled lines."""
    lines = (f"<div><b>{escape(label)}.</b> {escape(text)}</div>" for label, text in said.items())
    return _block(f'<div data-path="{len(said)}">{"".join(lines)}</div>')


def caption(mode: Mode) -> str:
    """What the display mode shows."""
    return _block(f'<b data-mode="{mode}">{mode[0].upper() + mode[1:]}.</b> {CAPTIONS[mode]}')


def colour_bar(scale: WidthScale, title: str, grey_too: str = "") -> str:
    """The colour scale of half-widths with ticks; `grey_too` names what else is shown in grey."""
    colours = palette()
    stops = ", ".join(
        f"#{bytes(colour).hex()} {100 * k / (STEPS - 1):.1f}%"
        for k, colour in enumerate(colours)
        if k % 3 == 0
    )
    ticks = "".join(
        f'<span style="position:absolute;left:{25 * k}%;transform:translateX({-25 * k}%)">'
        f"{scale.top * k / 4:.0f}{'+' if k == 4 else ''}</span>"
        for k in range(5)
    )
    grey = "rgb({},{},{})".format(*GREY)
    return _block(
        f"<div>{title}, of 255</div>"
        f'<div style="height:10px;margin-top:4px;border-radius:3px;'
        f'background:linear-gradient(90deg,{stops})"></div>'
        f'<div style="position:relative;height:1.5em;font-size:0.85em;color:{QUIET}">{ticks}</div>'
        + _line(f'<span style="color:{grey}">&#9632;</span> vacuous or unbounded {grey_too}')
    )


@dataclass(frozen=True)
class Gauge:
    """View difficulty compared with the calibration views."""

    least: float
    most: float
    """Smallest and largest factor of the calibration views."""
    predicted: bool
    """Whether factors differ between calibration views; otherwise every factor is 1."""

    def html(self, frame: Frame, threshold: float) -> str:
        """Factor and flag of one frame."""
        inside = frame.support.inside
        word = frame.support.word
        reasons = "".join(
            _line(f"This camera {escape(reason)}.") for reason in frame.support.reasons
        )
        alarms = "" if inside else _line(escape(frame.support.alarms.strip(" ()")))
        height, width = frame.pixels.shape[:2]
        size = f"{width} x {height} pixels"
        state = "full size" if frame.share == 1 else "preview while moving"
        return _block(
            f'<div data-factor="{frame.factor:.6f}" data-support="{word}">'
            f'<b style="color:{QUIET if inside else BAD}">&#9679; {word}</b></div>'
            f"{reasons}{alarms}{self._scale(frame.factor, inside)}"
            f"<div>mean half-width {_bold_width(threshold * frame.factor)}</div>"
            + _line(f'<span data-share="{frame.share:g}">{size}, {state}</span>')
        )

    def _scale(self, factor: float, inside: bool) -> str:
        if not self.predicted:
            return _line("Every view has factor a = 1.")
        end = 1.25 * self.most

        def percent(value: float) -> float:
            return 100 * min(max(value / end, 0.0), 1.0)

        left, right = percent(self.least), percent(self.most)
        return (
            f"<div>view factor a = <b>{factor:#.3g}</b></div>"
            '<div style="position:relative;height:10px;margin:4px 0;border-radius:3px;'
            'background:#373a40">'
            f'<div style="position:absolute;height:100%;left:{left:.1f}%;'
            f'width:{right - left:.1f}%;background:#5c5f66;border-radius:3px"></div>'
            f'<div style="position:absolute;top:-3px;height:16px;width:3px;'
            f'left:calc({percent(factor):.1f}% - 1px);background:{QUIET if inside else BAD}"></div>'
            "</div>" + _line(f"calibration views {self.least:#.3g} to {self.most:#.3g}")
        )


def guarantee_words(certificate: Certificate) -> str:
    """The guarantee at the chosen levels, and how it was calibrated."""
    alpha, views = certificate.alpha, certificate.record.guarantee.views
    calibrated = certificate.record.promise.calibration(alpha, views)
    if missing := shortfall(views, alpha):
        missing = escape(" ".join(missing.split()))
        body = f'<b style="color:{BAD}">Every box is unbounded.</b> {missing}'
    else:
        statement = certificate.guarantee
        body = f"<b>{escape(statement[0].upper() + statement[1:])}.</b>"
    own = (
        "These are the certificate's own levels."
        if certificate.is_certified
        else "This is what a certificate at these levels would state. A guarantee is valid only "
        "for levels chosen in advance."
    )
    scope = (
        f"Applies to {promise_lines(certificate)['Applies to']}. A camera that you choose here is "
        "one of these only if it could just as well have been a held-out photo."
    )
    return _block(
        f'<div data-threshold="{certificate.threshold:.6g}">{body}</div>'
        + _line(escape(scope))
        + _line(f"{escape(calibrated)}; q = {certificate.threshold:.4g}.")
        + _line(own)
    )


def card_words(view: KnownView, verdict: str, threshold: float) -> str:
    """Half-width of one view, given and needed, and how well its photograph is covered."""
    told = [f"mean half-width {_width(threshold * view.factor)}"]
    if not math.isnan(view.needed):
        told.append(f"needed at the certified beta: {_width(view.needed)}")
    return _block(
        f"<b>{escape(view.name)}</b>, {view.role} view"
        + _line("; ".join(told) + ".")
        + f"<div>{escape(verdict)}</div>"
    )


def _width(value: float) -> str:
    words = width_in_words(value)
    return words if value > VACUOUS else f"{value:.4f} ({words})"


def _bold_width(value: float) -> str:
    colour = f' style="color:{BAD}"' if value > VACUOUS else ""
    return f"<b{colour}>{_width(value)}</b>"
