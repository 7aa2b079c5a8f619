# SPDX-License-Identifier: Apache-2.0
"""Is the hold-out a fair sample of the capture? A permutation test on cameras alone.

Every 8th photo is not always a fair sample: where the photographer alternates between looking
level and looking up, it holds out one kind only, and the boxes are calibrated for that kind.
The test compares held-out with training cameras, needs no pixel, and runs before any training.

Under the null hypothesis every relabelling of the cameras is equally likely. A large p-value
approves nothing: cameras may differ in ways that no feature here measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera, extent_of
from splatcert.conformal.exchangeability import centred_ranks

Array = NDArray[np.float64]
UNFAIR = 0.05
"""P-values below it are pointed out."""
PERMUTATIONS = 2_000
FEWEST = 4
"""Held-out or training views below which nothing can be said."""
LEAST_UP = 0.2
"""Length of the mean up direction below which a capture has no common up."""
TINY = 1e-12
"""A camera in the centre, or looking straight down, looks neither inward nor outward."""
DIGITS = 6
"""Decimals of radians and extents that count: smaller differences are rounding."""
CHUNK = 256
SIDES = {
    "elevation": ("look further down", "look further up"),
    "height": ("stand lower", "stand higher"),
    "radius": ("stand closer to the centre", "stand farther from the centre"),
    "roll": ("are rolled further clockwise", "are rolled further anticlockwise"),
    "looking inward": ("look further outward", "look further inward"),
}
"""What a photo does that has a smaller or a larger value of each feature."""
LENGTHS = ("height", "radius")
CONSEQUENCE = "Coverage may differ for the kind of view that is missing from the hold-out."
REMEDY = "Train with photos of every kind held out: --holdout random8, or a list in a file."


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One feature of the cameras, compared between held-out and training views."""

    feature: str
    z: float
    """Standardised rank sum of the held-out views; positive where theirs are larger."""
    held_out: float
    """Median of the held-out views: degrees, or scene extents for height and radius.

    Looking inward is 90 degrees where a camera faces the centre, -90 where it faces away.
    """
    training: float
    """Median of the training views."""
    beyond: float
    """Share of training views that lie beyond every held-out view, on the side they differ to."""

    def words(self, median: float) -> str:
        """A median with its unit."""
        return f"{median:.2f} extents" if self.feature in LENGTHS else f"{median:.0f}°"


@dataclass(frozen=True, kw_only=True)
class HoldoutCheck:
    """The outcome: one p-value that allows for all features having been tried."""

    p_value: float
    differences: tuple[Difference, ...]
    held_out: int
    training: int
    permutations: int = PERMUTATIONS
    seed: int = 0

    @property
    def flagged(self) -> bool:
        """Whether held-out and training cameras differ more than chance explains."""
        return self.p_value < UNFAIR

    @property
    def largest(self) -> Difference:
        """The feature that differs most."""
        return max(self.differences, key=lambda one: abs(one.z))

    @property
    def finding(self) -> str:
        """What the test found, in words."""
        if not self.flagged:
            return (
                "No sign of a difference between held-out and training cameras "
                f"(p = {self.p_value:.2g})."
            )
        found = self.largest
        theirs, others = SIDES[found.feature][found.z > 0], SIDES[found.feature][found.z < 0]
        beyond = f"; {100 * found.beyond:.0f}% of training photos {others} than any of them"
        return (
            f"Held-out photos {theirs} than training photos (median {found.words(found.held_out)} "
            f"against {found.words(found.training)}){beyond * (found.beyond >= UNFAIR)}. "
            f"They differ in {found.feature} (p = {self.p_value:.2g})."
        )

    @property
    def words(self) -> str:
        """The finding; where cameras differ, also the consequence and what to do."""
        return f"{self.finding} {CONSEQUENCE} {REMEDY}" if self.flagged else self.finding

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {
            "p_value": self.p_value,
            "flagged": self.flagged,
            "differs_most_in": self.largest.feature,
            "z": {one.feature: one.z for one in self.differences},
            "words": self.words,
            "permutations": self.permutations,
            "seed": self.seed,
        }


def check_holdout(
    held_out: Sequence[Camera], training: Sequence[Camera], *, seed: int = 0
) -> HoldoutCheck | None:
    """Compare held-out with training cameras; None where there is nothing to compare.

    Each feature gives a rank sum; the largest |z| is compared with that of random relabellings:
    p = (1 + relabellings at least as extreme) / (1 + all).
    """
    if min(len(held_out), len(training)) < FEWEST:
        return None
    features = camera_features(held_out, training)
    if not features:
        return None
    m, n = len(held_out), len(held_out) + len(training)
    ranks = np.stack([centred_ranks(values) for values in features.values()], axis=1)
    spread = np.sqrt((ranks.astype(np.float64) ** 2).sum(axis=0) * m * (n - m) / (n * (n - 1)))
    ranks = ranks.astype(np.float64)  # sums of integers, exact below 2^53
    z = ranks[:m].sum(axis=0) / spread
    largest = np.abs(z).max()
    extreme = sum(
        int((np.abs(labels @ ranks / spread).max(axis=1) >= largest).sum())
        for labels in relabellings(m, n, seed)
    )
    return HoldoutCheck(
        p_value=(1 + extreme) / (1 + PERMUTATIONS),
        differences=tuple(
            _difference(name, float(value), features[name][:m], features[name][m:])
            for name, value in zip(features, z, strict=True)
        ),
        held_out=m,
        training=n - m,
        seed=seed,
    )


def camera_features(held_out: Sequence[Camera], training: Sequence[Camera]) -> dict[str, Array]:
    """Features that differ between cameras, by name; each [n], held-out views first.

    Angles are in radians, lengths in scene extents. Up is the mean of the training cameras;
    centre and extent are those of the whole capture.
    """
    cameras = [*held_out, *training]
    centres = np.array([camera.centre for camera in cameras])
    axes = np.array([camera.world_to_camera[:3, :3] for camera in cameras])
    right, ups, forward = axes[:, 0], -axes[:, 1], axes[:, 2]
    offsets = centres - centres.mean(axis=0)
    extent = extent_of(cameras)
    offsets = offsets / extent if extent > 0 else np.zeros_like(offsets)
    found = {"radius": np.linalg.norm(offsets, axis=1)}
    up = ups[len(held_out) :].mean(axis=0)
    if (length := np.linalg.norm(up)) > LEAST_UP:
        up = up / length
        found["elevation"], found["roll"] = _angle(forward @ up), _angle(right @ up)
        found["height"] = offsets @ up
        # Inward is a heading on the ground, or it would repeat elevation.
        offsets, forward = (part - np.outer(part @ up, up) for part in (offsets, forward))
    lengths = np.linalg.norm(offsets, axis=1) * np.linalg.norm(forward, axis=1)
    found["looking inward"] = _angle(-(offsets * forward).sum(axis=1) / np.maximum(lengths, TINY))
    rounded = {name: np.round(found[name], DIGITS) for name in SIDES if name in found}
    return {name: values for name, values in rounded.items() if np.ptp(values) > 0}


def _angle(sine: Array) -> Array:
    return np.arcsin(sine.clip(-1, 1))


def relabellings(held_out: int, views: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Random choices of held-out views as rows of zeros and ones, a few hundred at a time."""
    generator = np.random.Generator(np.random.PCG64(seed))
    labels = (np.arange(views) < held_out).astype(np.float64)
    for start in range(0, PERMUTATIONS, CHUNK):
        rows = min(CHUNK, PERMUTATIONS - start)
        yield generator.permuted(np.tile(labels, (rows, 1)), axis=1)


def _difference(feature: str, z: float, held_out: Array, training: Array) -> Difference:
    beyond = training > held_out.max() if z < 0 else training < held_out.min()
    unit = 1.0 if feature in LENGTHS else 180 / np.pi
    return Difference(
        feature=feature,
        z=z,
        held_out=unit * float(np.median(held_out)),
        training=unit * float(np.median(training)),
        beyond=float(beyond.mean()),
    )
