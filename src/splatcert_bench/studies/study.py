# SPDX-License-Identifier: Apache-2.0
"""One study: a scene, a density rule and a centre, in the few numbers that every table needs.

A table only needs a map's view scores and its mean in each view, so a study keeps those for
every map and shrinkage instead of pixels. `study_file` reads and writes `study.npz`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.levels import Level, parse_level
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.errors import InputError

SHAPE = "gsu-pv"
"""The residual field normalised within each view: our b~. Every study has this map."""
DIRECTIONS = ("training", "test", "random", "opposite")
FACTS = {
    "training_views": "views that the splats were trained on",
    "gaussians": "number of Gaussians of the model",
    "visibility.<kappa>.<direction>": "mean GAVIS visibility; directions as in DIRECTIONS",
    "latency.megapixels": "size of the timed view",
    "latency.one_pass": "seconds: our query, colour and all auxiliary channels in one pass",
    "latency.four_passes": "seconds: the same query as four passes of three channels",
    "latency.colour": "seconds: colour alone",
    "latency.guided": "seconds: a query of the guided scale",
    "latency.corrected": "seconds: the same with the corrected centre",
    "latency.<ensemble>": "seconds: colour of every member, one after the other",
    "latency.members.<ensemble>": "number of timed members",
    "packing.maps": "largest relative difference of alpha and field, one pass against four",
    "packing.features": "the same over the whole descriptor",
    "seconds.train": "wall time of one model",
    "seconds.<ensemble>": "wall time of all members of an ensemble",
    "seconds.gavis": "wall time of GAVIS's sums over training views",
    "seconds.post": "wall time of field and support, after training",
    "labels.before": "uses of held-out labels before every scale was fixed",
    "labels.after": "held-out labels opened after that",
    "access.<group>.<kind>": "views of a group (GROUPS) that supplied something (KINDS)",
}
"""Single numbers that a study may hold, by name; tables leave out what is missing."""
GROUPS = ("training", "source", "calibration", "test")
KINDS = ("image", "pose", "features", "selection")
WHOLE = ("pixels", "native")
"""Arrays of integers; all others are floating point."""
MOST = 1e30
RANGES = {
    "pixels": (1, 2**40),
    "scores": (0.0, MOST),
    "means": (1 / MOST, MOST),
    "field_means": (0.0, MOST),
    "raw": (1 / MOST, MOST),
    "factors": (1 / MOST, MOST),
    "native": (0, 2**40),
}
"""Allowed values: the mean of a positive map is positive, and everything is bounded."""
PLAIN = ("pixels", "psnr", "field_means", "centres", "strangeness")
"""Arrays about the views themselves, whatever the map."""
MAY_BE_UNKNOWN = ("ause", "spearman", "native", "centres", "strangeness")
"""Arrays that may be empty where there are views."""
Reading = Literal["", "gaussian", "residual"]
Array = NDArray[np.float64]


class StudyError(InputError):
    """A study whose arrays do not fit together, or that lacks what is asked of it."""


@dataclass(frozen=True, eq=False)
class MapScores:
    """One positive map U at every shrinkage, s = (1 - lambda) + lambda U / unit.

    The unit is one constant per scene (eq:baseline-normalization) or, for names that end
    in -pv, each view's own mean over its whole image (eq:shrinkage).
    """

    scores: Array
    """R_v(s), [V, betas, lambdas]."""
    means: Array
    """Mean of U / unit over the pixels that count, [V]."""
    unit: float = 1.0
    """The scene constant c_U; 1 for a per-view map."""
    ause: Array = field(default_factory=lambda: np.empty(0))
    """AUSE within each view, [V]; empty if unknown. Shrinkages above 0 do not change rankings."""
    spearman: Array = field(default_factory=lambda: np.empty(0))
    """Rank correlation of map and residual within each view, [V]; empty if unknown."""
    reading: Reading = ""
    """What the raw map means without calibration, if anything (tab:validity)."""
    native: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    """Pixels covered by the uncalibrated map, [V, betas]; empty without a reading."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """View factors from a predictor learned on source scenes."""

    raw: Array
    """Raw predictions, [V]; in the paper's unit they are divided by their mean over the batch."""
    factors: Array
    """View factors in the deployed unit, mean one over training views, [V]."""
    lambda_a: Fraction
    lambda_b: Fraction
    sources: tuple[str, ...]
    """Scenes it was learned on; never the target."""
    ridge: float = float("nan")
    width: float = float("nan")
    """Mean width relative to the constant scale on the sources, each predicted without itself."""
    scores: Array = field(default_factory=lambda: np.empty((0, 0)))
    """R_v(a b~) measured on the deployed maps, [V, betas], to audit the identities; empty if
    not measured."""
    means: Array = field(default_factory=lambda: np.empty(0))
    """Mean of the deployed a b~ over the pixels that count, [V]; empty if not measured."""


@dataclass(frozen=True, eq=False)
class GuidedScores:
    """The guided scale around one centre, with a guide learned on source scenes."""

    scores: Array
    """R_v of the deployed map, [V, betas]."""
    means: Array
    """Mean of the map over the pixels that count, [V]."""
    ause: Array
    """AUSE of the map within each view, [V]."""
    spearman: Array
    """Rank correlation of map and residual within each view, [V]."""
    psnr: Array
    """PSNR of the centre, [V]."""
    ssim: Array
    """SSIM of the centre, [V]."""
    tenths: NDArray[np.uint32]
    """Pixels by tenth of the half-width and ratio, [V, 10, coarser bins]."""
    sources: tuple[str, ...]
    """Scenes that the guide was learned on; never the target."""
    power: float
    """Power of the mean scale, chosen on them."""
    counts: NDArray[np.uint32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint32))
    """Pixels by ratio, [V, BINS], for pooled calibration; empty where no table pools them."""


@dataclass(frozen=True, eq=False)
class Study:
    """Every number about the held-out views of one scene under one model and centre."""

    scene: str
    family: str
    backbone: str
    """Density rule: "fastgs" or "vanilla"."""
    centre: str
    """"model", or "ensemble-mean" for the predictive-centre control."""
    names: tuple[str, ...]
    betas: tuple[Fraction, ...]
    pixels: NDArray[np.int64]
    """Pixels that count, [V]."""
    psnr: Array
    """[V]."""
    field_means: Array
    """Mean of the raw residual field b over the whole image, [V]."""
    maps: Mapping[str, MapScores]
    """By name: SHAPE, gsu, gavis-<kappa>, ensemble, each also with -pv, and users' own maps."""
    predictions: Mapping[str, Prediction]
    """By pool: pool, same-family, strict, mixed, out-of-fold ..."""
    facts: Mapping[str, float]
    """See FACTS."""
    settings: Mapping[str, str]
    """Resolution, iterations, seed, members, version and more, for the reader."""
    hashes: Mapping[str, str]
    """SHA-256 of splats, photos, poses, predictors, by name."""
    centres: Array = field(default_factory=lambda: np.empty((0, 3)))
    """Places of the cameras, [V, 3]; empty if unknown."""
    strangeness: Array = field(default_factory=lambda: np.empty(0))
    """How unlike the training cameras each camera is, [V], as the flag has it; empty if unknown."""
    guided: Mapping[str, GuidedScores] = field(default_factory=dict)
    """By method and pool, "guided pool" or "corrected pool"; stored in a file of its own."""

    def __post_init__(self) -> None:
        if SHAPE not in self.maps:
            raise StudyError(f"study of {self.scene}: the map {SHAPE!r} is missing")
        if len(set(self.names)) < len(self.names):
            raise StudyError(f"study of {self.scene}: two views have the same name")
        for name, shape, array in self.arrays():
            entry = name.rpartition(".")[2]
            kinds = "iu" if entry in WHOLE else "f"
            if array.dtype.kind not in kinds or (array.shape != shape and array.size):
                found = f"{array.dtype} {array.shape}"
                raise StudyError(f"study of {self.scene}: {name} is {found}, expected {shape}")
            if not array.size and self.names and not _may_be_unknown(name):
                raise StudyError(f"study of {self.scene}: {name} is empty")
            if not (np.isfinite(array).all() or name == "psnr"):
                raise StudyError(f"study of {self.scene}: {name} is not finite everywhere")
            least, most = RANGES.get(entry, (-np.inf, np.inf))
            if array.size and not least <= array.min() <= array.max() <= most:
                raise StudyError(f"study of {self.scene}: {name} must be {least:g} to {most:g}")
        if any(len(one.means) != len(self.names) for one in self.guided.values()):
            raise StudyError(
                f"study of {self.scene}: guided scales have a different number of views"
            )

    @property
    def key(self) -> str:
        """Key of this study, also its file name."""
        return f"{self.scene}-{self.backbone}-{self.centre}"

    def __len__(self) -> int:
        return len(self.names)

    def map(self, name: str) -> MapScores:
        """A map by name."""
        if name not in self.maps:
            known = ", ".join(sorted(self.maps))
            raise StudyError(f"study {self.key} has no map {name!r}, only {known}")
        return self.maps[name]

    def guided_scores(self, method: str, pool: str) -> GuidedScores:
        """The guided scale, around the render or the corrected centre."""
        if (name := f"{method} {pool}") not in self.guided:
            raise StudyError(f"study {self.key} has no {method} scale of pool {pool!r}")
        return self.guided[name]

    def prediction(self, pool: str) -> Prediction:
        """View factors by the pool of source scenes."""
        if pool not in self.predictions:
            known = ", ".join(sorted(self.predictions)) or "none"
            raise StudyError(f"study {self.key} has no predictor of pool {pool!r}, only {known}")
        return self.predictions[pool]

    def beta_index(self, beta: Level) -> int:
        """Index of a level in `betas`."""
        level = parse_level(beta, "beta")
        if level not in self.betas:
            known = ", ".join(map(str, self.betas))
            raise StudyError(f"study {self.key} has no scores at beta = {level}, only at {known}")
        return self.betas.index(level)

    def arrays(self) -> list[tuple[str, tuple[int, ...], NDArray[Any]]]:
        """Every array by its name in the archive, with the shape it must have."""
        views, betas, lambdas = len(self.names), len(self.betas), len(LAMBDA_GRID)
        shapes = {
            ("map", "scores"): (views, betas, lambdas),
            ("map", "native"): (views, betas),
            ("prediction", "scores"): (views, betas),
        }
        shapes[("", "centres")] = (views, 3)
        listed = [(n, shapes.get(("", n), (views,)), getattr(self, n)) for n in PLAIN]
        for kind, holders in (("map", self.maps), ("prediction", self.predictions)):
            for name, holder in sorted(holders.items()):
                for entry in arrays_of(type(holder)):
                    shape = shapes.get((kind, entry), (views,))
                    listed.append((f"{kind}.{name}.{entry}", shape, getattr(holder, entry)))
        return listed


def _may_be_unknown(name: str) -> bool:
    """Whether an array may be empty where there are views."""
    entry = name.rpartition(".")[2]
    measured = name.startswith("prediction.") and entry in ("scores", "means")
    return measured or entry in MAY_BE_UNKNOWN


def arrays_of(kind: type[MapScores] | type[Prediction]) -> list[str]:
    """Names of the fields that are arrays; the others go into the file's header."""
    plain = ("unit", "reading", "lambda_a", "lambda_b", "sources", "ridge", "width")
    return [entry.name for entry in fields(kind) if entry.name not in plain]
