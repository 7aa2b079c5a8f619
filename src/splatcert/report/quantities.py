# SPDX-License-Identifier: Apache-2.0
"""Quantities other than colour in a report, such as depth in metres, each with its own promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.boxes import Boxes
from splatcert.conformal.view_conformal import ViewConformal
from splatcert.errors import InputError
from splatcert.report.colours import WidthScale
from splatcert.report.pictures import Panel, jpeg, reduce, width_png

WHOLE = WidthScale(255)
"""The scale of maps that are divided by the end of their own."""


class QuantityError(InputError):
    """A quantity that cannot be shown."""


class QuantityView(NamedTuple):
    """One view of a quantity."""

    name: str
    words: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, eq=False)
class ShownQuantity:
    """What was calibrated for a quantity, and the boxes of the views to show, by name."""

    conformal: ViewConformal
    boxes: Mapping[str, Boxes]

    def __post_init__(self) -> None:
        if self.conformal.quantity is None:
            raise QuantityError(
                "a report shows quantities with a name and a unit.\n"
                '  Name it: ViewConformal(alpha, beta, Quantity("depth", "m")).'
            )

    @property
    def name(self) -> str:
        """What the boxes bound."""
        assert self.conformal.quantity is not None  # checked on construction
        return self.conformal.quantity.name

    @property
    def guarantee(self) -> str:
        """The promise about this quantity."""
        words = self.conformal.guarantee()
        return f"{words[0].upper()}{words[1:]}."

    def views(self) -> list[QuantityView]:
        """The quantity and its half-widths per view, in one colour scale for all of them."""
        widths = {name: _values(boxes.half_width) for name, boxes in self.boxes.items()}
        finite = [width[np.isfinite(width)] for width in widths.values()]
        end = max((float(one.max()) for one in finite if one.size), default=0.0) or 1.0
        return [
            self._view(name, _values(boxes.center)[..., 0], widths[name], end)
            for name, boxes in self.boxes.items()
        ]

    def _view(
        self, name: str, center: NDArray[np.float32], width: NDArray[np.float32], end: float
    ) -> QuantityView:
        quantity = self.conformal.quantity
        assert quantity is not None
        known = np.isfinite(width)
        low, high = (center[known].min(), center[known].max()) if known.any() else (0.0, 1.0)
        grey = np.where(known, (center - low) / max(float(high - low), 1e-12), 0.0)
        shown = reduce(np.repeat(grey[..., None], 3, axis=-1).astype(np.float32))
        size = shown.shape[1], shown.shape[0]
        unit = f" {quantity.unit}".rstrip()
        labels = (f"{quantity.name}, {low:.3g} (dark) to {high:.3g}{unit}", f"0 to {end:.3g}{unit}")
        words = "every box is unbounded"
        if known.any():
            words = f"{quantity.half_width(float(np.median(width[known])))} at its median pixel"
        return QuantityView(
            name,
            words,
            (
                Panel("center", labels[0], f"{quantity.name} of {name}", (jpeg(shown),), size),
                Panel(
                    "half-width",
                    f"half-width, {labels[1]}",
                    f"Half-width of the {quantity.name} of {name}",
                    (width_png(reduce(width / np.float32(end)), WHOLE),),
                    size,
                ),
            ),
        )


def _values(given: object) -> NDArray[np.float32]:
    return np.asarray(given, dtype=np.float32)
