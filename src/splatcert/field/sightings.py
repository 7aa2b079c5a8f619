# SPDX-License-Identifier: Apache-2.0
"""Which training views saw which Gaussian, and the smallest angle to another camera."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.raster.render import Backend, open_view
from splatcert.splats.gaussians import Splats

SEEN = 0.25
"""Sum of weights, in pixels, from which a view counts as having seen a Gaussian."""
ROWS_AT_ONCE = 1 << 14
"""Number of Gaussians whose angles to all cameras are computed together."""


@dataclass(frozen=True, eq=False)
class Sightings:
    """Which cameras saw which Gaussians, one bit per pair."""

    origin: NDArray[np.float64]
    """Origin of the positions below, chosen so that float32 is precise enough, [3]."""
    centres: NDArray[np.float32]
    """Camera centres, [T, 3]."""
    means: NDArray[np.float32]
    """Means of the Gaussians, [N, 3]."""
    bits: NDArray[np.uint8]
    """Bits packed along the cameras, [N, ceil(T / 8)]."""

    @classmethod
    def of(
        cls,
        splats: Splats,
        cameras: Sequence[Camera],
        *,
        backend: Backend = "cpu",
        report: Callable[[int], None] | None = None,
    ) -> Sightings:
        """Render every camera once; smaller pictures see slightly fewer Gaussians."""
        bits = np.zeros((len(splats), -(-len(cameras) // 8)), dtype=np.uint8)
        for index, camera in enumerate(cameras):
            seen = exposure(splats, camera, backend) >= SEEN
            bits[:, index // 8] |= seen.astype(np.uint8) << (7 - index % 8)
            if report is not None:
                report(index + 1)
        centres = np.array([camera.centre for camera in cameras]).reshape(-1, 3)
        origin = centres.mean(axis=0)
        means = splats.means.cpu().double().numpy() - origin
        return cls(origin, _narrow(centres - origin), _narrow(means), bits)

    def counts(self) -> NDArray[np.int32]:
        """Number of views that saw each Gaussian, [N]."""
        total = np.zeros(len(self.bits), dtype=np.int32)
        for start in range(0, len(total), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            total[block] = np.unpackbits(self.bits[block], axis=1).sum(axis=1, dtype=np.int32)
        return total

    def best_angles(self, rows: NDArray[np.int64], camera: Camera) -> NDArray[np.float32]:
        """Smallest angle at a Gaussian between this camera and one that saw it, [len(rows)].

        In radians; pi where no camera saw it.
        """
        best = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            block = rows[start : start + ROWS_AT_ONCE]
            seen = np.unpackbits(self.bits[block], axis=1, count=len(self.centres)).astype(bool)
            cosines = self._cosines(block, self._place(camera), self.centres)
            cosines[~seen] = -1.0
            best[start : start + len(block)] = np.arccos(cosines.max(axis=1).clip(-1, 1))
        return best

    def angles(self, rows: NDArray[np.int64], one: Camera, other: Camera) -> NDArray[np.float32]:
        """Angle at some Gaussians between two cameras in radians, [len(rows)]."""
        cosines = self._cosines(rows, self._place(one), self._place(other)[None])[:, 0]
        return np.arccos(cosines.clip(-1, 1))

    def _place(self, camera: Camera) -> NDArray[np.float32]:
        return _narrow(camera.centre - self.origin)

    def _cosines(
        self, rows: NDArray[np.int64], place: NDArray[np.float32], others: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Cosines of the angles at each Gaussian from one place to others, [len(rows), T]."""
        means = self.means[rows]
        here = _unit(place - means)
        # (o - m) . h without a vector for each pair.
        along = here @ others.T - np.einsum("ij,ij->i", here, means)[:, None]
        squares = (others**2).sum(1)[None] + (means**2).sum(1)[:, None] - 2 * means @ others.T
        return along / np.sqrt(np.maximum(squares, 1e-12))


def exposure(splats: Splats, camera: Camera, backend: Backend = "cpu") -> NDArray[np.float32]:
    """Sum of each Gaussian's weights over a view's pixels, [N]."""
    ones = torch.ones(camera.height, camera.width, 1)
    view = open_view(splats, camera, backend)
    return view.scatter(ones.to(splats.means))[:, 0].cpu().numpy()


def _narrow(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.astype(np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
