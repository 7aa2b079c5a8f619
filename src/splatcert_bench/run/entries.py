# SPDX-License-Identifier: Apache-2.0
"""The entries [[scene]] and [[pool]] of a bench's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from splatcert.config import LARGEST_SEED
from splatcert.errors import InputError

Density = Literal["fastgs", "vanilla"]
EnsembleKind = Literal["ensemble", "ensemble-full"]
ENSEMBLE: EnsembleKind = "ensemble"
FULL_ENSEMBLE: EnsembleKind = "ensemble-full"
"""The ensemble of `[members]`, and a scene's own of the main model's size and length."""
FORBIDDEN = set('/\\:*?"<>|+@') | {" "}
"""Characters not allowed in a name, which becomes a folder; a + joins scene and rule, an @ pool
and ridge."""
RESERVED = ("learn", "guide")
LONGEST_NAME = 100
LARGEST_ENSEMBLE = 100


class BenchError(InputError):
    """A bench whose settings or inputs cannot be used."""


def require_name(kind: str, name: str) -> None:
    """Refuse names that cannot be folders, or that lead elsewhere."""
    usual = name.isprintable() and not FORBIDDEN & set(name) and not name.startswith(".")
    if not (0 < len(name) <= LONGEST_NAME and usual):
        raise BenchError(
            f"a {kind}'s name becomes a folder, and {name[:LONGEST_NAME]!r} cannot be one"
        )


def require_range(name: str, value: int, least: int, most: int) -> None:
    """Refuse a number outside its range, by name."""
    if not least <= value <= most:
        raise BenchError(f"{name} must be {least} to {most}, got {value}")


def require_ensemble(name: str, count: int) -> None:
    """Refuse a number of models that is neither none nor at least two."""
    require_range(name, count, 0, LARGEST_ENSEMBLE)
    if count == 1:
        raise BenchError(f"{name} must be 0 (none) or at least 2, got 1")


@dataclass(frozen=True, kw_only=True)
class SceneEntry:
    """One [[scene]] of the file."""

    name: str
    family: str
    """Scenes of one family are held out together by the strict pool."""
    path: str | None = None
    """Path of the capture, relative to the data folder."""
    model: str | None = None
    """A finished run of `splatcert train` to use instead of training, relative to the file."""
    images: str | None = None
    """Folder of photographs inside the capture, for example images_4."""
    densities: tuple[Density, ...] = ()
    """Further density rules to train and study this scene with, besides the main one."""
    made: int | None = None
    """Seed of a synthetic scene, used instead of a capture."""
    full_members: int = 0
    """Members of a second ensemble, of the main model's own size and length; 0 for none."""

    def __post_init__(self) -> None:
        require_name("scene", self.name)
        if self.name.partition(".")[0] in RESERVED:
            raise BenchError(f"a scene cannot be called {self.name}: jobs of pools use that name")
        for kind in ("family", "path", "model", "images"):
            if not (getattr(self, kind) or "").isprintable():
                raise BenchError(f"scene {self.name}: {kind} has control characters")
        if len(set(self.densities)) < len(self.densities):
            raise BenchError(f"scene {self.name}: densities names one rule twice")
        if (self.path is None) == (self.made is None):
            raise BenchError(f"scene {self.name}: give either path or made")
        if self.made is not None:
            require_range("made", self.made, 0, LARGEST_SEED)
        require_ensemble(f"scene {self.name}: full_members", self.full_members)


@dataclass(frozen=True, kw_only=True)
class VariantEntry:
    """One [[variant]] of the file: further models of some scenes, trained in another way."""

    name: str
    """Name of these models; studies and tables call them that."""
    scenes: tuple[str, ...]
    """The scenes that have one."""
    density: Density | None = None
    """Density rule. Default of this and the rest: as the main model."""
    recipe: Literal["fast", "published"] | None = None
    iterations: int | None = None
    max_gaussians: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        require_name("variant", self.name)
        if not self.changes():
            raise BenchError(f"variant {self.name} changes nothing: it would repeat the main model")

    def changes(self) -> dict[str, Any]:
        """The options of `splatcert train` that differ from the main model's."""
        names = ("density", "recipe", "iterations", "max_gaussians", "seed")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class PoolEntry:
    """Source scenes that a predictor is learned on, and the scenes it is tried on."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...] = ()
    """Default: all scenes that are not sources. A target is never its own source."""
    views: Literal["training", "held-out"] | None = None
    """Source views to learn from. Default: as in `[learn]`."""
    prior: Literal["magnitude", "flat"] | None = None
    """The factor that learning starts from. Default: as in `[learn]`."""
    penalty: Literal["width", "rank"] | None = None
    """Criterion that chooses the ridge penalty. Default: as in `[learn]`."""

    def __post_init__(self) -> None:
        require_name("pool", self.name)
