# SPDX-License-Identifier: Apache-2.0
"""The view predictor: a log-linear model of view difficulty that transfers between scenes.

eq:view-regression   log a(z_v) = theta . (z_v - mu_z) / sigma_z + magnitude (m_v - mu_m) + c

Weights and shrinkages are learned once on source scenes and frozen. Each scene has its own
units mu_z, sigma_z, from its training views, described out of fold. m is the feature that is
the log of the mean residual field, in its own units. With magnitude 1, a predictor without
weights makes boxes as wide as the field; with magnitude 0 (the paper's form), all equally wide.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatcert.conformal.levels import LevelError, parse_level
from splatcert.difficulty.descriptor import FEATURE_NAMES, check_schema
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError
from splatcert.storage.schema import PlainError, from_plain, read_json
from splatcert.storage.whole import write_text_whole

FORMAT = "splatcert view predictor"
VERSION = 2
MAX_BYTES = 1 << 22
"""Largest predictor file in bytes; the shipped ones take a few kilobytes."""
LOG_BOUND = 30.0
"""Predictions stay within e^-30 and e^30, so that even a very distant camera gets a number."""
MAGNITUDE = FEATURE_NAMES.index("f_gsu_logmean")
_LARGEST_CONSTANT = 1e-12
"""Relative standard deviation up to which a feature counts as constant."""


class PredictorError(InputError):
    """A predictor that cannot be made, read or applied."""


@dataclass(frozen=True, eq=False)
class FeatureUnits:
    """Mean and deviation of each feature over a scene's training views."""

    mean: NDArray[np.float64]
    """mu_z, [24]."""
    std: NDArray[np.float64]
    """sigma_z, [24]; 1 where a feature does not vary."""

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != (len(FEATURE_NAMES),) or not np.isfinite(values).all():
                raise PredictorError(f"{name} must be {len(FEATURE_NAMES)} finite numbers")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if not (self.std > 0).all():
            raise PredictorError("standard deviations of features must be positive")

    @classmethod
    def from_descriptors(cls, descriptors: ArrayLike) -> FeatureUnits:
        """Units of a scene from the out-of-fold descriptors of its training views, [T, 24]."""
        table = _descriptors(descriptors)
        if not len(table):
            raise PredictorError("feature units require at least one described view")
        mean, std = table.mean(axis=0), table.std(axis=0)
        varies = std > _LARGEST_CONSTANT * np.maximum(np.abs(mean), 1.0)
        return cls(mean=mean, std=np.where(varies, std, 1.0))

    def standardise(self, descriptors: ArrayLike) -> NDArray[np.float64]:
        """(z - mu_z) / sigma_z, [24] or [n, 24]."""
        return (_descriptors(descriptors) - self.mean) / self.std

    def log_magnitude(self, descriptors: ArrayLike) -> NDArray[np.float64]:
        """Log of the mean residual field over that of the scene's views, [] or [n]."""
        return _descriptors(descriptors)[..., MAGNITUDE] - self.mean[MAGNITUDE]


@dataclass(frozen=True, eq=False)
class ViewPredictor:
    """Everything that transfers to other scenes (alg:vscp, phase 1), and its origin."""

    weights: NDArray[np.float64]
    """theta, [24]."""
    intercept: float
    """c; any value gives the same boxes (lem:gauge); this one gives predictions of about one."""
    lambda_a: Fraction
    lambda_b: Fraction
    ridge: float
    """Ridge penalty of the fit."""
    beta: Fraction
    """Pixel level of the targets it was fitted to."""
    magnitude: float = 0.0
    """Power of the field's magnitude, which the weights correct."""
    features: tuple[str, ...] = FEATURE_NAMES
    card: Mapping[str, Any] = field(default_factory=dict)
    """Training scenes, and the scores on them."""

    def __post_init__(self) -> None:
        check_schema(self.features, "this view predictor")
        weights = np.array(self.weights, dtype=np.float64)
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)
        if weights.shape != (len(self.features),):
            raise PredictorError(
                f"{len(self.features)} features require as many weights, got shape {weights.shape}"
            )
        if not np.isfinite([*weights, self.intercept, self.magnitude]).all():
            raise PredictorError("weights, intercept and magnitude must be finite")
        for name in ("lambda_a", "lambda_b"):
            if getattr(self, name) not in LAMBDA_GRID:
                # Scores are stored for these shapes only, and shapes are fixed before labels.
                known = ", ".join(map(str, LAMBDA_GRID))
                raise PredictorError(f"{name} must be one of {known}, got {getattr(self, name)}")
        if not (math.isfinite(self.ridge) and self.ridge > 0):
            raise PredictorError(f"the ridge penalty must be positive, got {self.ridge}")
        parse_level(self.beta, "beta")
        check_card(self.card)

    def raw(self, descriptors: ArrayLike, units: FeatureUnits) -> NDArray[np.float64]:
        """Positive predicted difficulty before its unit is fixed, [n, 24] to [n], [24] to []."""
        # A matrix product may round differently for a different number of views.
        standard = units.standardise(descriptors)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # non-finite values are refused when the unit is fixed
            log_factor = (standard * self.weights).sum(axis=-1) + self.intercept
            log_factor = log_factor + self.magnitude * units.log_magnitude(descriptors)
        return np.exp(np.clip(log_factor, -LOG_BOUND, LOG_BOUND))

    def to_json(self) -> dict[str, Any]:
        """The predictor as stored; numbers are restored bit for bit."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "features": list(self.features),
            "weights": [float(weight) for weight in self.weights],
            "intercept": float(self.intercept),
            "magnitude": float(self.magnitude),
            "lambda_a": str(self.lambda_a),
            "lambda_b": str(self.lambda_b),
            "ridge": float(self.ridge),
            "beta": str(self.beta),
            "card": dict(self.card),
        }

    def without_field(self) -> ViewPredictor:
        """The same without the field on its card: a certificate describes the field itself."""
        card = {key: value for key, value in self.card.items() if key != "field"}
        return replace(self, card=card)

    @property
    def sha256(self) -> str:
        """Identity: hash of everything except the date, and the field, which older cards lack."""
        content = self.to_json()
        content["card"] = undated(self.card)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write it as JSON; an interrupted write leaves no partial file."""
        write_text_whole(Path(path), json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")


def undated(card: Mapping[str, Any]) -> dict[str, Any]:
    """A card without the entries that do not make its identity."""
    return {key: value for key, value in card.items() if key not in ("date", "field")}


def check_card(card: Mapping[str, Any]) -> None:
    """Check the entries that programs rely on: source scenes and the marks of their labels."""
    if not isinstance(card.get("field", {}), Mapping):
        raise PredictorError(f"card.field must be an object, got {card['field']!r:.60}")
    scenes = card.get("scenes", [])
    if not isinstance(scenes, (list, tuple)):
        raise PredictorError(f"card.scenes must be a list, got {scenes!r:.60}")
    for at, row in enumerate(scenes):
        if not isinstance(row, Mapping):
            raise PredictorError(f"card.scenes[{at}] must be an object, got {row!r:.60}")
        marks = row.get("hashes", {})
        if not isinstance(marks, Mapping) or not all(isinstance(m, str) for m in marks.values()):
            raise PredictorError(
                f"card.scenes[{at}].hashes must map names to text, got {marks!r:.60}"
            )


def load_predictor(path: str | Path) -> ViewPredictor:
    """Read a predictor; different features, a missing entry or a wrong type are refused."""
    content = read_json(Path(path), "view predictor", MAX_BYTES, raises=PredictorError)
    return predictor_from_json(content, str(path))


def predictor_from_json(content: object, where: str) -> ViewPredictor:
    """The predictor that `to_json` described; `where` names it in messages."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PredictorError(f"{where} is not a view predictor.\n  `splatcert learn` creates one.")
    if content.get("version") != VERSION:
        raise PredictorError(
            f"{where} has version {content.get('version')!r}, this program reads {VERSION}.\n"
            "  Learn it again with this version."
        )
    known = {name: content[name] for name in _STORED_NAMES if name in content}
    try:
        stored = from_plain(_Stored, known)
        check_schema(stored.features, where)
        return ViewPredictor(
            weights=np.array(stored.weights),
            intercept=stored.intercept,
            magnitude=stored.magnitude,
            lambda_a=Fraction(stored.lambda_a),
            lambda_b=Fraction(stored.lambda_b),
            ridge=stored.ridge,
            beta=parse_level(stored.beta, "beta"),
            card=stored.card,
        )
    except (PlainError, PredictorError, LevelError) as error:
        raise PredictorError(f"{where}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The entries of a predictor's file."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    magnitude: float
    lambda_a: Literal["0", "1/4", "1/2", "3/4", "1"]
    lambda_b: Literal["0", "1/4", "1/2", "3/4", "1"]
    ridge: float
    beta: str
    card: dict[str, Any]

    def __post_init__(self) -> None:
        try:
            json.dumps(self.card, allow_nan=False)
        except ValueError:
            raise PredictorError("card must not contain NaN or infinity") from None


_STORED_NAMES = tuple(entry.name for entry in fields(_Stored))


def _descriptors(descriptors: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(descriptors, dtype=np.float64)
    if table.ndim not in (1, 2) or table.shape[-1] != len(FEATURE_NAMES):
        raise PredictorError(
            f"a descriptor has {len(FEATURE_NAMES)} features, got shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise PredictorError("descriptors must be finite")
    return table


Shipped = Literal["default", "strict", "reverse"]
"""Learned on all our captures, without Mip-NeRF 360, without Tanks & Temples and Deep Blending."""
PREDICTORS = Path(__file__).parents[1] / "predictors"


def shipped_predictor(name: Shipped = "default") -> ViewPredictor:
    """A predictor shipped with the package."""
    return load_predictor(PREDICTORS / f"{name}.json")
