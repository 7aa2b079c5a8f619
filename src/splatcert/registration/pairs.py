# SPDX-License-Identifier: Apache-2.0
"""Which pairs of photos are worth matching: near cameras, and photos that look alike.

Matching all pairs would take most of the time and find almost nothing more. Known photos are
matched with the nearest cameras that look the same way. For a new photo, a few hundred of its
largest features are compared with as many of each known photo, and the photos with the most
agreeing features are matched in full. No vocabulary is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from splatcert.registration.features import FeatureDatabase, Picture

NEAREST = 8
"""Known photos that each known photo is matched with."""
LOOK_ALIKES = 20
"""Known photos that each new photo is matched with."""
SAMPLED = 256
"""Features per photo that decide which photos look alike."""
RATIO = 0.8
"""Largest ratio of the angles to the best and the second-best feature."""
SAME_WAY = 0.5
"""Smallest cosine between viewing directions of a pair."""
AT_ONCE = 32
"""Known photos compared in one product of matrices."""


def near_pairs(
    poses: NDArray[np.float64], wanted: Iterable[int], extent: float
) -> list[tuple[int, int]]:
    """Pairs of each wanted photo and its nearest ones that look the same way, lower index first.

    `poses` are world to camera, [N, 4, 4]; nearness is distance over the extent plus the
    difference of directions.
    """
    rotations = poses[:, :3, :3]
    centres = -np.einsum("nji,nj->ni", rotations, poses[:, :3, 3])
    forward = rotations[:, 2]
    pairs = set()
    for index in wanted:
        cosine = forward @ forward[index]
        apart = np.linalg.norm(centres - centres[index], axis=1) / max(extent, 1e-12)
        cost = np.where(cosine < SAME_WAY, np.inf, apart + (1 - cosine))
        cost[index] = np.inf
        nearest = np.argsort(cost, kind="stable")[:NEAREST]
        for other in nearest[np.isfinite(cost[nearest])].tolist():
            pairs.add((min(index, other), max(index, other)))
    return sorted(pairs)


class LookAlikes:
    """Finds the known photos that show what a new one shows."""

    def __init__(self, database: FeatureDatabase, known: Sequence[Picture]) -> None:
        self.database = database
        # Missing rows stay zero: a zero is never a best match, because SIFT has no negative entry.
        self.samples = np.zeros((len(known), SAMPLED, 128), np.float32)
        for rows, picture in zip(self.samples, known, strict=True):
            found = database.sample(picture, SAMPLED)
            rows[: len(found)] = found

    def of(self, picture: Picture) -> list[int]:
        """Indices of the known photos with the most agreeing features, best first."""
        mine = self.database.sample(picture, SAMPLED)
        if len(mine) < 2:
            return []
        blocks = range(0, len(self.samples), AT_ONCE)
        scores = np.concatenate([_agreeing(mine, self.samples[b : b + AT_ONCE]) for b in blocks])
        return np.argsort(-scores, kind="stable")[:LOOK_ALIKES].tolist()


def _agreeing(mine: NDArray[np.float32], theirs: NDArray[np.float32]) -> NDArray[np.int64]:
    """Features that are each other's best match, clearly better than the second best, per photo.

    `mine` is [M, 128], `theirs` [K, N, 128].
    """
    photos, features, length = theirs.shape
    likeness = (mine @ theirs.reshape(-1, length).T).reshape(len(mine), photos, features)
    best = likeness.argmax(axis=2)
    back = likeness.argmax(axis=0)
    mutual = back[np.arange(photos), best] == np.arange(len(mine))[:, None]
    first = np.take_along_axis(likeness, best[..., None], axis=2)[..., 0]
    np.put_along_axis(likeness, best[..., None], -1, axis=2)
    second = likeness.max(axis=2)
    clear = np.arccos(first.clip(-1, 1)) < RATIO * np.arccos(second.clip(-1, 1))
    return (mutual & clear).sum(axis=0)
