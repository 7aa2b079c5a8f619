# SPDX-License-Identifier: Apache-2.0
"""The guide: what the guided scale learned on source captures, as a small JSON file.

eq:guided   e = weights . features + intercept + sum of share tanh(weights . features + bias)
            s = exp(e) + floor                                the scale of a pixel
            log a = power log mean(s)                         the factor of its view
eq:gate     g = 1 / (1 + exp(-(gate . (count, log distance, 1))))

The sum runs over a few units, a small network. g is the share of the witnesses' mean residual that
the corrected centre adds to the render.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from splatcert.conformal.levels import LevelError, parse_level
from splatcert.difficulty.predictor import PREDICTORS, check_card, undated
from splatcert.errors import InputError
from splatcert.storage.schema import PlainError, from_plain, read_json, to_plain
from splatcert.storage.whole import write_text_whole

FORMAT, VERSION = "splatcert guide", 3
MAX_BYTES = 1 << 22
FEATURES = (
    "field", "residual", "clash", "least clash", "bias", "spread", "drift", "scatter",
    "count", "distance", "unseen",
)  # fmt: skip
"""Maps of a query, in the order of the weights; `scales/guided_features.py` makes them."""
MOST_WEIGHT = 100.0
MOST_UNITS = 32
"""The native kernel has room for as many."""


class GuideError(InputError):
    """A guide that cannot be read or applied."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit of the guide's network."""

    weights: tuple[float, ...]
    """One per feature."""
    bias: float
    share: float
    """What it adds to the exponent where it is fully on."""


@dataclass(frozen=True, kw_only=True)
class Guide:
    """Weights of the guided scale, and where they come from."""

    format: str = FORMAT
    version: int = VERSION
    features: tuple[str, ...] = FEATURES
    weights: tuple[float, ...]
    """One per feature."""
    units: tuple[Unit, ...] = ()
    """What is not linear in the features."""
    intercept: float
    """Makes the scale about as large as the residual field."""
    floor: float
    """What every pixel gets beside that, whatever its maps say."""
    power: float
    """Power of the mean scale that a view's factor takes."""
    gate: tuple[float, float, float]
    """How far to trust the witnesses' mean residual: weights of count and log distance, and 1."""
    beta: str
    """Pixel level it was learned for."""
    card: dict[str, Any] = field(default_factory=dict)
    """Source captures, and performance on those left out."""

    def __post_init__(self) -> None:
        if self.features != FEATURES:
            raise GuideError("it was made for other maps; learn it again with this version")
        if any(len(part.weights) != len(FEATURES) for part in (self, *self.units)):
            raise GuideError(f"{len(FEATURES)} maps require as many weights")
        if len(self.units) > MOST_UNITS:
            raise GuideError(f"at most {MOST_UNITS} units are possible, got {len(self.units)}")
        if not all(math.isfinite(x) and abs(x) <= MOST_WEIGHT for x in (*self.numbers, self.power)):
            raise GuideError(f"weights must be finite and at most {MOST_WEIGHT:g}")
        if not 0 <= self.floor <= 1:
            raise GuideError(f"the floor must lie in [0, 1], got {self.floor}")
        parse_level(self.beta, "beta")
        check_card(self.card)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Weights, intercept, floor, gate and units, as the native kernel takes them."""
        units = [x for unit in self.units for x in (*unit.weights, unit.bias, unit.share)]
        return (*self.weights, self.intercept, self.floor, *self.gate, *units)

    @property
    def sha256(self) -> str:
        """Identity: hash of everything except the date, and the field, which older cards lack."""
        content = to_plain(replace(self, card=undated(self.card)))
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write it as JSON; an interrupted write leaves no partial file."""
        write_text_whole(Path(path), json.dumps(to_plain(self), indent=1, allow_nan=False) + "\n")


def load_guide(path: str | Path) -> Guide:
    """Read a guide; other maps, a missing entry or a wrong type are refused."""
    content = read_json(Path(path), "guide", MAX_BYTES, raises=GuideError)
    return guide_from_json(content, str(path))


def guide_from_json(content: object, where: str) -> Guide:
    """The guide that was stored; `where` names it in messages."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise GuideError(f"{where} is not a guide.\n  `splatcert learn --guide` creates one.")
    if content.get("version") != VERSION:
        raise GuideError(
            f"{where} has version {content.get('version')!r}, this program reads {VERSION}.\n"
            "  Learn it again with this version."
        )
    try:
        return from_plain(Guide, content)
    except (PlainError, GuideError, LevelError) as error:
        raise GuideError(f"{where}: {error}") from None


ShippedGuide = Literal["guide", "guide-training"]
"""Learned on held-out photographs of our captures, and on their training photographs only."""


def shipped_guide(name: ShippedGuide = "guide") -> Guide:
    """A guide that comes with the package."""
    return load_guide(PREDICTORS / f"{name}.json")
