# SPDX-License-Identifier: Apache-2.0
"""The maps of a query that its witnesses make: by native code, on a GPU, and by a reference.

Each pixel is taken to where its surface lies in every witness. A witness that has the point in
its picture and not behind another surface is compared there with the query. Those whose ray
and scale are closer weigh more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import grid_sample

from splatcert import _native
from splatcert.camera import Camera
from splatcert.difficulty.guided.guide import Guide
from splatcert.raster.gpu.device import Buffer
from splatcert.raster.gpu.query import DeviceMaps
from splatcert.raster.gpu.witnesses import ask_photos
from splatcert.raster.native_autograd import plain_floats
from splatcert.raster.query_maps import QueryMaps
from splatcert.witnesses.pack import CLOSEST, Packed, unpack

PLANES, NUMBERS = 11, 21
"""Maps, and numbers of a witness beside its pixels."""
HIDDEN = 0.08
"""Share of the depth by which a surface may lie in front of the point."""
SOFTENING = 0.05
"""A witness weighs 1 / (distance + this)^2."""
COARSENESS = 0.2
"""Distance of a witness that sees the point from far away, beside that of its ray."""


class Witness(NamedTuple):
    """A training view that is asked."""

    camera: Camera
    packed: Packed


@dataclass(frozen=True, eq=False)
class WitnessMaps:
    """What the witnesses of a query say of each pixel; zero where there are none."""

    planes: Tensor
    """[11, H, W], in the order of the properties below; `drift` takes three."""

    @property
    def count(self) -> Tensor:
        """Witnesses that see the point, [H, W]."""
        return self.planes[0]

    @property
    def distance(self) -> Tensor:
        """Smallest distance of a witness, by angle between rays and by scale, [H, W]."""
        return self.planes[1]

    @property
    def residual(self) -> Tensor:
        """Mean error of the render in the witnesses, [H, W]."""
        return self.planes[2]

    @property
    def clash(self) -> Tensor:
        """Mean difference between the photographs and the query's picture, [H, W]."""
        return self.planes[3]

    @property
    def least_clash(self) -> Tensor:
        """Smallest such difference, [H, W]."""
        return self.planes[4]

    @property
    def bias(self) -> Tensor:
        """Size of the mean signed difference, [H, W]."""
        return self.planes[5]

    @property
    def spread(self) -> Tensor:
        """Deviation of the signed difference, [H, W]."""
        return self.planes[6]

    @property
    def drift(self) -> Tensor:
        """Mean signed residual, [3, H, W]."""
        return self.planes[7:10]

    @property
    def scatter(self) -> Tensor:
        """Deviation of the signed residual, [H, W]."""
        return self.planes[10]


class GuidedMap(NamedTuple):
    """A scale made from witnesses and a residual field."""

    scale: Tensor
    """s (eq:guided), [H, W]."""
    mean: float
    correction: Tensor | None
    """What the witnesses add to the render, [3, H, W]; None if not asked for."""
    told: int
    """Pixels that have a witness."""


def ask(
    camera: Camera, picture: Tensor, depth: Tensor, witnesses: Sequence[Witness]
) -> WitnessMaps:
    """Maps of a query from its picture [H, W, 3] and depth [H, W]; the same bits on any threads."""
    planes = _native.empty([PLANES, camera.height, camera.width])
    _native.ask_witnesses(*_question(camera, picture, depth, witnesses), planes)
    return WitnessMaps(planes)


def ask_device(
    maps: DeviceMaps, witnesses: Sequence[Witness], photos: Sequence[Buffer]
) -> WitnessMaps:
    """The same on the device that rendered the query; `photos` are the witnesses' pixels there."""
    sizes = [(witness.camera.width, witness.camera.height) for witness in witnesses]
    found = ask_photos(maps, photos, sizes, numbers_of(maps.camera, witnesses))
    return WitnessMaps(torch.from_numpy(found))


def ask_scale(
    camera: Camera,
    found: QueryMaps,
    witnesses: Sequence[Witness],
    guide: Guide,
    *,
    correct: bool = False,
) -> GuidedMap:
    """The scale of a query, without storing the maps that it is made from."""
    size = [camera.height, camera.width]
    scale, correction = _native.empty(size), _native.empty([3, *size]) if correct else None
    mean, told = _native.guided_scale(
        *_question(camera, found.center, found.depth, witnesses),
        plain_floats(found.field),
        list(guide.numbers),
        scale,
        correction,
    )
    return GuidedMap(scale, mean, correction, told)


def _question(
    camera: Camera, picture: Tensor, depth: Tensor, witnesses: Sequence[Witness]
) -> tuple[Tensor, Tensor, tuple[float, float, float, float], list[Tensor], NDArray[np.float32]]:
    """What native code is told of a query and its witnesses."""
    return (
        plain_floats(depth),
        plain_floats(picture),
        (camera.fx, camera.fy, camera.cx, camera.cy),
        [witness.packed.pixels for witness in witnesses],
        numbers_of(camera, witnesses).astype(np.float32),
    )


def ask_reference(
    camera: Camera, picture: Tensor, depth: Tensor, witnesses: Sequence[Witness]
) -> WitnessMaps:
    """The same in float64, written to be checked by eye."""
    depth, picture = depth.double(), picture.double()
    rows, columns = torch.meshgrid(
        torch.arange(camera.height) + 0.5, torch.arange(camera.width) + 0.5, indexing="ij"
    )
    at = torch.stack(
        [(columns - camera.cx) / camera.fx * depth, (rows - camera.cy) / camera.fy * depth, depth],
        dim=-1,
    )
    asked = [_ask_one(camera, at, picture, witness) for witness in witnesses]
    if not asked:
        return WitnessMaps(torch.zeros(PLANES, camera.height, camera.width, dtype=torch.float64))
    clash, residual, distance, seen = (torch.stack(parts) for parts in zip(*asked, strict=True))
    weight = torch.where(seen, 1 / (distance + SOFTENING) ** 2, 0)
    total = weight.sum(0).clamp(min=1e-30)

    def mean(values: Tensor) -> Tensor:
        extra = (..., *[None] * (values.ndim - 3))
        return (values * weight[extra]).sum(0) / total[extra]

    def deviation(values: Tensor) -> Tensor:
        return (mean(values**2) - mean(values) ** 2).clamp(min=0).sqrt().amax(-1)

    size, drift = clash.abs().amax(-1), mean(residual)
    planes = [
        seen.sum(0),
        torch.where(seen, distance, torch.inf).amin(0),
        mean(residual.abs().amax(-1)),
        mean(size),
        torch.where(seen, size, torch.inf).amin(0),
        mean(clash).abs().amax(-1),
        deviation(clash),
        *drift.unbind(-1),
        deviation(residual),
    ]
    return WitnessMaps(torch.where(seen.any(0), torch.stack(planes), 0))


def _ask_one(
    camera: Camera, at: Tensor, picture: Tensor, witness: Witness
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Photograph minus query, signed residual, distance, and whether the point is seen."""
    numbers = torch.from_numpy(numbers_of(camera, [witness])[0])
    there = at @ numbers[:9].reshape(3, 3).T + numbers[9:12]
    z = there[..., 2]
    lens = witness.camera
    u = there[..., 0] / z * lens.fx + lens.cx
    v = there[..., 1] / z * lens.fy + lens.cy
    seen = (z > CLOSEST) & (at[..., 2] > CLOSEST)
    seen &= (u >= 0) & (u < lens.width) & (v >= 0) & (v < lens.height)
    u, v = torch.where(seen, u, 0), torch.where(seen, v, 0)
    colour, residual, depth = unpack(witness.packed)
    seen &= depth[v.long(), u.long()] > (1 - HIDDEN) * z
    grid = torch.stack([2 * u / lens.width - 1, 2 * v / lens.height - 1], dim=-1)
    both = torch.cat([colour, residual], dim=-1).permute(2, 0, 1)[None]
    found = grid_sample(both, grid[None], padding_mode="border", align_corners=False)[0]
    away = at - numbers[12:15]
    cosine = (at * away).sum(-1) / (at.norm(dim=-1) * away.norm(dim=-1))
    distance = (2 - 2 * cosine).clamp(min=0).sqrt()
    distance = distance + COARSENESS * (1 - at[..., 2] / z).clamp(min=0)
    return found[:3].permute(1, 2, 0) - picture, found[3:].permute(1, 2, 0), distance, seen


def numbers_of(query: Camera, witnesses: Sequence[Witness]) -> NDArray[np.float64]:
    """Rotation and shift from query to each witness, its centre, lens and depths, [n, 21]."""
    rows = np.empty((len(witnesses), NUMBERS))
    here = query.world_to_camera
    for row, (camera, packed) in zip(rows, witnesses, strict=True):
        there = camera.world_to_camera
        rotation = there[:3, :3] @ here[:3, :3].T
        shift = there[:3, 3] - rotation @ here[:3, 3]
        others = camera.fx, camera.fy, camera.cx, camera.cy, packed.log2_near, packed.log2_step
        row[:] = np.concatenate([rotation.ravel(), shift, -rotation.T @ shift, others])
    return rows
