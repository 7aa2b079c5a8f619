# SPDX-License-Identifier: Apache-2.0
"""What differs between gsplat releases: constants, compiled channels, lists of contributors.

gsplat 1.6 has the constants of our own renderers. 1.5.3 caps alpha at 0.999, so a certificate
treats the two as different renderers.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.reference import COMPENSATION_FLOOR
from splatcert.raster.render import BackendError

TILE = 16
OLDEST = (1, 5, 3)
RENEWED = (1, 6)
"""The release that changed the alpha cap, the compensation and the compiled channels."""

CHANNELS_BEFORE = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32)
CHANNELS_RENEWED = (1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 21, 23, 24, 32)


def installed_gsplat() -> Any:
    """The installed gsplat, or an error that says how to get it."""
    try:
        import gsplat
    except ImportError as error:
        raise BackendError(
            "the back end 'cuda' requires gsplat, which is not installed.\n"
            "  pip install 'splatcert[cuda]', or use the back end 'cpu'."
        ) from error
    if _release(gsplat) < OLDEST:
        raise BackendError(
            f"the back end 'cuda' requires gsplat 1.5.3 or newer, found {gsplat.__version__}.\n"
            "  pip install --upgrade gsplat, or use the back end 'cpu'."
        )
    return gsplat


def _release(gsplat: Any) -> tuple[int, ...]:
    """Leading numbers of a version: 1.6.0rc1+cu124 is (1, 6, 0)."""
    match = re.match(r"\d+(\.\d+)*", gsplat.__version__)
    return tuple(int(part) for part in match.group().split(".")) if match else (0,)


def alpha_cap(gsplat: Any) -> float:
    """Largest alpha of one Gaussian."""
    return 0.99 if _release(gsplat) >= RENEWED else 0.999


def compensation_floor(gsplat: Any) -> float:
    """Smallest squared opacity compensation of antialiased splats."""
    return COMPENSATION_FLOOR if _release(gsplat) >= RENEWED else 0.0


def compiled_channels(gsplat: Any) -> tuple[int, ...]:
    """Numbers of channels that the kernels are compiled for, up to 32."""
    return CHANNELS_RENEWED if _release(gsplat) >= RENEWED else CHANNELS_BEFORE


def channel_runs(count: int, compiled: tuple[int, ...]) -> list[tuple[slice, int]]:
    """Split `count` channels into runs, each with the compiled width it is padded to.

    gsplat has kernels for some widths only, and from 1.6 on refuses the others.
    """
    widest = compiled[-1]
    runs = []
    for start in range(0, count, widest):
        size = min(widest, count - start)
        padded = next(width for width in compiled if width >= size)
        runs.append((slice(start, start + size), padded))
    return runs


@dataclass(frozen=True, eq=False)
class Tiles:
    """Projected splats sorted into tiles, as the kernels take them: one camera, N Gaussians."""

    means2d: Tensor
    """[1, N, 2]."""
    conics: Tensor
    """[1, N, 3]."""
    opacities: Tensor
    """[1, N]."""
    offsets: Tensor
    """Start of each tile's list, [1, rows, columns]."""
    flatten_ids: Tensor
    """Gaussians of all tiles, front to back within each."""
    camera: Camera

    def detached(self) -> Tiles:
        """The same without gradients to the splats."""
        return replace(self, **{name: part.detach() for name, part in self.projected().items()})

    def projected(self) -> dict[str, Tensor]:
        """The projection as keyword arguments."""
        return {"means2d": self.means2d, "conics": self.conics, "opacities": self.opacities}

    def image(self) -> dict[str, int]:
        """The size of image and tiles as keyword arguments."""
        width, height = self.camera.width, self.camera.height
        return {"image_width": width, "image_height": height, "tile_size": TILE}


def exact_tiles(gsplat: Any, conics: Tensor, opacities: Tensor) -> dict[str, Tensor]:
    """Arguments from 1.6 on that test ellipses against tiles: shorter lists, same pixels."""
    if "conics" not in inspect.signature(gsplat.isect_tiles).parameters:
        return {}
    return {"conics": conics.detach(), "opacities": opacities.detach()}


def weights_behind(gsplat: Any, tiles: Tiles, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Gaussians and weights of chosen pixels, padded with zero weight, [P, K] each."""
    if hasattr(gsplat, "rasterize_contributing_gaussian_ids"):
        return _listed(gsplat, tiles, chosen)
    if hasattr(gsplat, "rasterize_to_indices_in_range"):
        return _recomputed(gsplat, tiles, chosen)
    raise BackendError(
        f"gsplat {gsplat.__version__} cannot list the Gaussians behind a pixel.\n"
        "  Use the back end 'cpu', or install a newer gsplat: pip install --upgrade gsplat"
    )


def _listed(gsplat: Any, tiles: Tiles, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The lists that gsplat has made since 1.6."""
    arguments = {
        **tiles.projected(),
        "tile_offsets": tiles.offsets,
        "flatten_ids": tiles.flatten_ids,
        **tiles.image(),
    }
    counts, _ = gsplat.rasterize_num_contributing_gaussians(**arguments)
    gaussians, weights = gsplat.rasterize_contributing_gaussian_ids(
        **arguments, num_contributing_gaussians=counts
    )
    return gaussians[0].flatten(0, 1)[chosen], weights[0].flatten(0, 1)[chosen]


def _recomputed(gsplat: Any, tiles: Tiles, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The same before 1.6, which lists indices only; weights are computed from them."""
    camera = tiles.camera
    gaussian, pixel, _ = gsplat.rasterize_to_indices_in_range(
        range_start=0,
        range_end=len(tiles.flatten_ids) // TILE**2 + 1,
        transmittances=tiles.means2d.new_ones(1, camera.height, camera.width),
        **tiles.projected(),
        **tiles.image(),
        isect_offsets=tiles.offsets,
        flatten_ids=tiles.flatten_ids,
    )
    # The list runs pixel by pixel and front to back within each.
    counts = torch.bincount(pixel.long(), minlength=camera.height * camera.width)
    starts = (counts.cumsum(0) - counts)[chosen, None]
    rank = torch.arange(int(counts.max()), device=chosen.device)
    valid = rank < counts[chosen, None]
    padded = torch.cat([gaussian.long(), gaussian.new_zeros(1).long()])
    gaussians = padded[torch.where(valid, starts + rank, len(gaussian))]

    x, y = chosen % camera.width + 0.5, chosen // camera.width + 0.5
    dx, dy = (torch.stack([x, y], 1)[:, None] - tiles.means2d[0][gaussians]).unbind(2)
    a, b, c = tiles.conics[0][gaussians].unbind(2)
    sigma = 0.5 * (a * dx**2 + c * dy**2) + b * dx * dy
    alpha = tiles.opacities[0][gaussians] * torch.exp(-sigma)
    alpha = torch.where(valid, alpha.clamp(max=alpha_cap(gsplat)), 0.0)
    passed = torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha], dim=1)
    return gaussians, alpha * passed.cumprod(dim=1)[:, : alpha.shape[1]]
