# SPDX-License-Identifier: Apache-2.0
"""Scenes made by formula, on which back ends are compared and timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.raster.query_maps import QueryMaps, Traits
from splatcert.raster.render import open_view
from splatcert.raster.view import View
from splatcert.splats.gaussians import Splats
from splatcert.witnesses.album import Album
from splatcert.witnesses.maps import Witness, WitnessMaps, ask_reference
from splatcert.witnesses.pack import pack

Numbers = NDArray[np.float64]
GREY = (0.5, 0.5, 0.5)
FIELD_TERMS = 9
"""Coefficients of a residual field of degree 2."""


@dataclass(frozen=True, eq=False)
class MadeScene:
    """Random splats in front of one camera, with all that a certified query requires."""

    name: str
    splats: Splats
    camera: Camera
    traits: Traits
    values: Tensor
    """Something for every Gaussian to carry, [N, 4]."""
    image: Tensor
    """Something for every pixel to send back, [H, W, 4]."""
    album: Album
    """Photographs to ask about the view, as the guided scale does."""

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{len(self.splats):,} Gaussians, {self.camera.width} x {self.camera.height} pixels"

    @cached_property
    def truth(self) -> Numbers:
        """What the float64 reference shows."""
        exact = self.splats.to(dtype=torch.float64)
        return self.shown_by(open_view(exact, self.camera, "reference"))

    def shown_by(self, view: View) -> Numbers:
        """Composited values; picture, field and opacity of a query; what photos say, [H, W, 14]."""
        query = view.query(self.traits, GREY, EPSILON0)
        told = self._told(query)
        planes = torch.stack([query.field, query.opacity], dim=2)
        said = torch.stack([told.residual, told.clash, *told.drift], dim=2)
        values = view.composite(self.values.to(view.splats.means.dtype))
        parts = (values, query.center, planes, said)
        return np.concatenate([plain(part) for part in parts], axis=2)

    def _told(self, query: QueryMaps) -> WitnessMaps:
        if query.depth.dtype == torch.float64:
            return ask_reference(self.camera, query.center, query.depth, self.album.witnesses)
        return self.album.ask(self.camera, query)


def plain(tensor: Tensor) -> Numbers:
    """A tensor of any device as a float64 array."""
    return tensor.detach().cpu().double().numpy()


def agreement_scenes() -> tuple[MadeScene, ...]:
    """Three small scenes: a soft cloud, needles with antialiasing, opaque layers."""
    return (
        made_scene("cloud", 300, 64, size=0.09, opacity=0.0),
        made_scene("needles", 300, 64, size=0.05, opacity=1.0, stretch=2.0, antialiased=True),
        made_scene("layers", 200, 64, size=0.25, opacity=3.0, stretch=0.7),
    )


def timing_scene(*, small: bool = False) -> MadeScene:
    """The scene that is timed; a small one for back ends that would take minutes."""
    count, width = (2_000, 64) if small else (30_000, 384)
    return made_scene("timing", count, width, size=0.03, opacity=1.0, stretch=0.6)


def made_scene(
    name: str,
    count: int,
    width: int,
    *,
    size: float,
    opacity: float,
    stretch: float = 0.3,
    antialiased: bool = False,
) -> MadeScene:
    """Gaussians in a box before a camera; the same on every machine."""
    random = np.random.Generator(np.random.PCG64(len(name) + count))
    height = width * 3 // 4

    def normal(*shape: int) -> Tensor:
        return torch.from_numpy(random.standard_normal(shape).astype(np.float32))

    def uniform(*shape: int) -> Tensor:
        return torch.from_numpy(random.random(shape).astype(np.float32))

    means = torch.stack(
        [3 * uniform(count) - 1.5, 2.2 * uniform(count) - 1.1, 2 + 3 * uniform(count)], dim=1
    )
    splats = Splats(
        means=means,
        quats=normal(count, 4),
        log_scales=float(np.log(size)) + stretch * normal(count, 3),
        logit_opacities=opacity + normal(count),
        sh=0.3 * normal(count, 16, 3),
        antialiased=antialiased,
    )
    traits = Traits(
        log_exposure=5 * uniform(count),
        spread=uniform(count),
        residual_summary=0.1 * uniform(count),
        direction=normal(count, 3),
        coefficients=torch.cat(
            [0.2 + 0.1 * uniform(count, 1), 0.02 * normal(count, FIELD_TERMS - 1)], dim=1
        ),
    )
    camera = Camera(
        world_to_camera=np.eye(4),
        width=width,
        height=height,
        fx=0.9 * width,
        fy=0.92 * width,
        cx=0.48 * width,
        cy=0.53 * height,
    )
    values, image = normal(count, 4), normal(height, width, 4)
    return MadeScene(name, splats, camera, traits, values, image, _photographs(camera))


def _photographs(camera: Camera) -> Album:
    """Smooth pictures from both sides; they show all that the camera does, and hide nothing."""
    width, height = 2 * camera.width, 2 * camera.height
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    waves = [(rows / 5).sin(), (columns / 7).cos(), ((rows + columns) / 9).sin()]
    photo = 0.5 + 0.4 * torch.stack(waves, dim=2)
    pixels = pack(photo, 0.9 * photo, torch.full((height, width), 1e3))
    middle = {"cx": camera.cx + camera.width / 2, "cy": camera.cy + camera.height / 2}
    seen = replace(camera, width=width, height=height, **middle)
    sides = [np.array(camera.world_to_camera), np.array(camera.world_to_camera)]
    sides[0][0, 3], sides[1][0, 3] = 0.4, -0.4
    return Album(tuple(Witness(replace(seen, world_to_camera=pose), pixels) for pose in sides))
