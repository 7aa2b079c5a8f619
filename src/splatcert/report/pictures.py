# SPDX-License-Identifier: Apache-2.0
"""Views as pictures embedded in a page: reduced to screen size, coloured, encoded."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatcert.conformal.boxes import VACUOUS, width_in_words
from splatcert.report.colours import WidthScale, shown_colours
from splatcert.storage.png import to_pixels

Map = NDArray[np.float32]
Mask = NDArray[np.bool_]
LABELS = {"lower": "lower edge", "upper": "upper edge"}
"""Labels of panels whose label differs from their kind."""
LONGEST_SIDE = 640
QUALITY = 80
MISS = (255, 46, 126)
"""Unlike the colours of most photographs, and distinct from grey for colour-blind readers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ViewPicture:
    """One view: a render and what is known of its errors, at the size of the page."""

    name: str
    center: Map
    """Rendered colour in [0, 1], [H, W, 3]."""
    half_width: Map | None
    """[H, W]; None where boxes are unbounded."""
    missed: Mask | None
    """Pixels outside their boxes, [H, W]; None without a photo."""
    error: Map | None
    """Largest difference of a colour channel to the photo, [H, W]."""
    photo: Map | None
    """[H, W, 3]; only where photographs were requested."""

    @classmethod
    def reduced(cls, name: str, **maps: NDArray[Any] | None) -> ViewPicture:
        """The view at page size, so that large maps need not stay in memory."""
        small = {key: None if one is None else reduce(one) for key, one in maps.items()}
        return cls(name=name, **small)  # pyright: ignore[reportArgumentType]


class Panel(NamedTuple):
    """One picture of a view: stacked layers, and what they show in words."""

    kind: str
    label: str
    alt: str
    layers: tuple[str, ...]
    """Data URLs, the lowest layer first."""
    size: tuple[int, int]
    """Width and height in pixels."""


def panels(view: ViewPicture, scale: WidthScale) -> tuple[Panel, ...]:
    """All pictures of a view, the render first."""
    found = [_panel(view, "render", f"Render of view {view.name}", jpeg(view.center))]
    if view.half_width is not None:
        found += _boxes(view, view.half_width, scale)
    if view.missed is not None:
        share = f"{100 * view.missed.mean():.1f}% of its pixels"
        words = f"Pixels of the photo of view {view.name} outside their boxes: {share}"
        found.append(_panel(view, "misses", words, faded(view.center), stain(view.missed)))
    if view.photo is not None:
        found.append(_panel(view, "photo", f"Photo of view {view.name}", jpeg(view.photo)))
    return tuple(found)


def error_panel(view: ViewPicture, scale: WidthScale) -> Panel | None:
    """The error in the colours of half-widths, for comparison with them."""
    if view.error is None:
        return None
    words = f"Error of view {view.name}: {_in_words(view.error)}"
    return _panel(view, "error", words, width_png(view.error, scale))


def _boxes(view: ViewPicture, half_width: Map, scale: WidthScale) -> list[Panel]:
    words = f"Half-width of the boxes of view {view.name}: {_in_words(half_width)}"
    edge = f"edge of the boxes of view {view.name}"
    reach = half_width[..., None]
    return [
        _panel(view, "half-width", words, width_png(half_width, scale)),
        _panel(view, "lower", f"Lower {edge}", jpeg(view.center - reach)),
        _panel(view, "upper", f"Upper {edge}", jpeg(view.center + reach)),
    ]


def _panel(view: ViewPicture, kind: str, alt: str, *layers: str) -> Panel:
    height, width = view.center.shape[:2]
    return Panel(kind, LABELS.get(kind, kind), alt, layers, (width, height))


def _in_words(values: Map) -> str:
    if values.mean() > VACUOUS:
        return width_in_words(float(values.mean()))
    low, high = 255 * np.quantile(values, (0.05, 0.95)).clip(max=VACUOUS)
    most = f"nine pixels in ten between {low:.0f} and {high:.0f}"
    return f"mean {255 * values.mean():.0f} of 255, {most}"


def sharpness(colour: NDArray[Any]) -> float:
    """Mean size of the steps between neighbouring pixels' brightness."""
    grey = np.clip(colour, 0, 1).mean(axis=-1)
    return float(sum(np.abs(np.diff(grey, axis=axis)).mean() for axis in (0, 1)))


def reduce(values: NDArray[Any]) -> NDArray[Any]:
    """A map or picture reduced to fit a page; colours are averaged, masks sampled."""
    height, width = values.shape[:2]
    factor = LONGEST_SIDE / max(height, width)
    if factor >= 1:
        return values
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    if values.dtype == np.bool_:
        return np.asarray(Image.fromarray(values).resize(size, Image.Resampling.NEAREST))
    layers = values[..., None] if values.ndim == 2 else values
    small = [
        np.asarray(Image.fromarray(layer.astype(np.float32)).resize(size, Image.Resampling.BOX))
        for layer in np.moveaxis(layers, -1, 0)
    ]
    return small[0] if values.ndim == 2 else np.stack(small, axis=-1)


def jpeg(colour: NDArray[Any]) -> str:
    """Colours in [0, 1] (clamped) as the data URL of a JPEG."""
    return _address(Image.fromarray(to_pixels(colour)), "jpeg", quality=QUALITY, optimize=True)


def faded(colour: NDArray[Any]) -> str:
    """A darkened grey copy to draw on, as the data URL of a JPEG."""
    grey = 0.15 + 0.5 * np.clip(colour, 0, 1).mean(axis=-1)
    return _address(Image.fromarray(to_pixels(grey)), "jpeg", quality=60, optimize=True)


def width_png(values: Map, scale: WidthScale) -> str:
    """A map in the colours of the scale, as the data URL of a lossless PNG."""
    image = Image.fromarray(scale.indices(values), mode="P")
    colours = shown_colours()
    image.putpalette(colours.tobytes() + bytes(3 * (256 - len(colours))))
    return _address(image, "png", optimize=True)


def stain(mask: Mask) -> str:
    """Marked pixels in one colour, the others transparent, as the data URL of a PNG."""
    image = Image.fromarray(mask.astype(np.uint8), mode="P")
    image.putpalette(bytes(3) + bytes(MISS))
    return _address(image, "png", optimize=True, transparency=0, bits=1)


def _address(image: Image.Image, kind: str, **options: Any) -> str:
    stored = io.BytesIO()
    image.save(stored, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(stored.getvalue()).decode()}"
