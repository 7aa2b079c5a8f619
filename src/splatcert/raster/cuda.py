# SPDX-License-Identifier: Apache-2.0
"""The `cuda` back end: gsplat's kernels behind the `View` protocol.

gsplat 1.6 has the constants of our own renderers; 1.5.3 caps alpha at 0.999, so the
two are different renderers to a certificate. Harmonics are evaluated here, because
gsplat's own path adds 0.5 and clamps, and an operator must be linear.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.reference import (
    ALPHA_FLOOR,
    COMPENSATION_FLOOR,
    FOV_MARGIN,
    LOW_PASS,
    NEAR_PLANE,
    STOP_TRANSMITTANCE,
)
from splatcert.raster.render import BackendError
from splatcert.raster.view import Contributors
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import colours

TILE = 16
FAR_PLANE = 1e10
OLDEST = (1, 5, 3)
RENEWED = (1, 6)
"""The release that changed the alpha cap, the compensation and the compiled channels."""

CHANNELS_BEFORE = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32)
CHANNELS_RENEWED = (1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 21, 23, 24, 32)


def renderer_identity() -> dict[str, object]:
    """What a certificate records of this renderer, and compares before it is used."""
    gsplat = _gsplat()
    renewed = _release(gsplat) >= RENEWED
    return {
        "name": "gsplat",
        "version": gsplat.__version__,
        "constants": {
            "near_plane": NEAR_PLANE,
            "low_pass": LOW_PASS,
            "alpha_cap": _alpha_cap(gsplat),
            "alpha_floor": ALPHA_FLOOR,
            "stop_transmittance": STOP_TRANSMITTANCE,
            "fov_margin": FOV_MARGIN,
            "compensation_floor": COMPENSATION_FLOOR if renewed else 0.0,
        },
    }


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
class _Projection:
    """Splats in the image, as gsplat's kernels take them: one camera, all N Gaussians."""

    means2d: Tensor
    """[1, N, 2]."""
    conics: Tensor
    """[1, N, 3]."""
    opacities: Tensor
    """[1, N]."""

    def detached(self) -> _Projection:
        return _Projection(self.means2d.detach(), self.conics.detach(), self.opacities.detach())

    def arguments(self) -> dict[str, Tensor]:
        return {"means2d": self.means2d, "conics": self.conics, "opacities": self.opacities}


class CudaView:
    """Splats seen from one camera on a CUDA device, in float32.

    `composite` is differentiable to the splats and the values; `scatter` and `normal`
    are its adjoint and are not differentiated themselves. gsplat adds in whatever order
    its threads arrive, so results repeat to about 1e-6, not to the bit.
    """

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self._gsplat = _gsplat()
        self.camera = camera
        self.splats = splats.to(device=_device(splats), dtype=torch.float32)
        release = _release(self._gsplat)
        self._compiled = CHANNELS_RENEWED if release >= RENEWED else CHANNELS_BEFORE
        if len(splats):  # the kernels divide by the number of Gaussians
            self._prepare()

    def _prepare(self) -> None:
        """Project and sort once; every pass reuses the tile lists."""
        camera, splats = self.camera, self.splats
        opacities = splats.opacities
        radii, means2d, depths, conics, compensations = self._gsplat.fully_fused_projection(
            means=splats.means,
            covars=None,
            quats=splats.quats,
            scales=splats.scales,
            viewmats=splats.means.new_tensor(camera.world_to_camera)[None],
            Ks=splats.means.new_tensor(camera.K)[None],
            width=camera.width,
            height=camera.height,
            eps2d=LOW_PASS,
            near_plane=NEAR_PLANE,
            far_plane=FAR_PLANE,
            radius_clip=0.0,
            packed=False,
            sparse_grad=False,
            calc_compensations=splats.antialiased,
            camera_model="pinhole",
            opacities=opacities,
        )
        opacities = opacities[None]
        if splats.antialiased:
            opacities = opacities * compensations
        finite = means2d.isfinite().all(-1) & conics.isfinite().all(-1) & opacities.isfinite()
        radii = radii * finite[..., None]
        self._drawn = (radii > 0).all(-1)[0]
        self._depths = depths[0]
        self._projected = _Projection(means2d, conics, opacities)

        tiles = {
            "tile_width": -(-camera.width // TILE),
            "tile_height": -(-camera.height // TILE),
        }
        exact: dict[str, Tensor] = {}
        if "conics" in inspect.signature(self._gsplat.isect_tiles).parameters:
            # From 1.6 on, ellipses are tested against tiles: shorter lists, same pixels.
            exact = {"conics": conics.detach(), "opacities": opacities.detach()}
        _, isect_ids, self._flatten_ids = self._gsplat.isect_tiles(
            means2d=means2d.detach(),
            radii=radii,
            depths=depths.detach(),
            tile_size=TILE,
            **tiles,
            sort=True,
            segmented=False,
            packed=False,
            n_images=1,
            **exact,
        )
        self._offsets = self._gsplat.isect_offset_encode(isect_ids=isect_ids, n_images=1, **tiles)

    def composite(self, values: Tensor) -> Tensor:
        """A: one row of D values per Gaussian, [N, D], to an image [H, W, D]."""
        values = self._rows(values)
        if not len(self.splats):
            return values.new_zeros(*self._shape, values.shape[1])
        return self._rasterise(values, self._projected)

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: an image [H, W, D] to one row per Gaussian, [N, D].

        The gradient of a linear map with respect to its argument is the map's
        transpose, whatever the argument: gsplat's backward pass is the adjoint.
        """
        if image.ndim != 3 or tuple(image.shape[:2]) != self._shape:
            raise ValueError(f"expected a {self._shape} image, got {list(image.shape)}")
        image = image.detach().to(self.splats.means)
        return self._adjoint(image.new_zeros(len(self.splats), image.shape[2]), image)

    def normal(self, values: Tensor) -> Tensor:
        """A transposed times A, [N, D] to [N, D], sharing one preparation of the view."""
        return self._adjoint(self._rows(values).detach(), None)

    def colours(self) -> Tensor:
        """Colour of each Gaussian towards this camera, [N, 3]; zero where it is not drawn."""
        empty = torch.zeros_like(self.splats.means)
        if not len(self.splats):
            return empty
        drawn = self._drawn.nonzero()[:, 0]
        means = self.splats.means[drawn]
        shown = colours(self.splats.sh[drawn], means, means.new_tensor(self.camera.centre))
        return empty.index_copy(0, drawn, shown)

    def depths(self) -> Tensor:
        """Camera z of each Gaussian, [N]; zero where it is not drawn."""
        empty = torch.zeros_like(self.splats.logit_opacities)
        return torch.where(self._drawn, self._depths, empty) if len(self.splats) else empty

    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""
        size = pixels.new_tensor(self._shape)
        if pixels.ndim != 2 or ((pixels < 0) | (pixels >= size)).any():
            raise ValueError(f"pixels must be [P, 2] inside {self._shape}, as (row, column)")
        chosen = (pixels[:, 0] * self.camera.width + pixels[:, 1]).to(self.splats.means.device)
        if not len(self.splats):
            empty = chosen.new_zeros(0)
            return Contributors(chosen.new_zeros(len(chosen) + 1), empty, empty.float())
        with torch.no_grad():
            if hasattr(self._gsplat, "rasterize_contributing_gaussian_ids"):
                gaussians, weights = self._listed(chosen.long())
            elif hasattr(self._gsplat, "rasterize_to_indices_in_range"):
                gaussians, weights = self._recomputed(chosen.long())
            else:
                raise BackendError(
                    f"gsplat {self._gsplat.__version__} cannot list the Gaussians behind a pixel.\n"
                    "  Use the back end 'cpu', or install another gsplat: pip install gsplat"
                )
        kept = weights > 0
        offsets = torch.cat([chosen.new_zeros(1), kept.sum(1).cumsum(0)]).long()
        return Contributors(offsets, gaussians[kept].long(), weights[kept])

    def _listed(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Gaussians and weights of chosen pixels, padded with zero weight, [P, K] each."""
        arguments = {
            **self._projected.arguments(),
            "tile_offsets": self._offsets,
            "flatten_ids": self._flatten_ids,
            **self._image_arguments,
        }
        counts, _ = self._gsplat.rasterize_num_contributing_gaussians(**arguments)
        gaussians, weights = self._gsplat.rasterize_contributing_gaussian_ids(
            **arguments, num_contributing_gaussians=counts
        )
        return gaussians[0].flatten(0, 1)[chosen], weights[0].flatten(0, 1)[chosen]

    def _recomputed(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """The same before 1.6, which lists indices only: weights are computed from them."""
        gaussian, pixel, _ = self._gsplat.rasterize_to_indices_in_range(
            range_start=0,
            range_end=len(self._flatten_ids) // TILE**2 + 1,
            transmittances=self.splats.means.new_ones(1, *self._shape),
            **self._projected.arguments(),
            **self._image_arguments,
            isect_offsets=self._offsets,
            flatten_ids=self._flatten_ids,
        )
        # The list runs pixel by pixel and front to back within each.
        counts = torch.bincount(pixel.long(), minlength=self._shape[0] * self._shape[1])
        starts = (counts.cumsum(0) - counts)[chosen, None]
        rank = torch.arange(int(counts.max()), device=chosen.device)
        valid = rank < counts[chosen, None]
        padded = torch.cat([gaussian.long(), gaussian.new_zeros(1).long()])
        gaussians = padded[torch.where(valid, starts + rank, len(gaussian))]

        x, y = chosen % self.camera.width + 0.5, chosen // self.camera.width + 0.5
        dx, dy = (torch.stack([x, y], 1)[:, None] - self._projected.means2d[0][gaussians]).unbind(2)
        a, b, c = self._projected.conics[0][gaussians].unbind(2)
        sigma = 0.5 * (a * dx**2 + c * dy**2) + b * dx * dy
        alpha = self._projected.opacities[0][gaussians] * torch.exp(-sigma)
        alpha = torch.where(valid, alpha.clamp(max=_alpha_cap(self._gsplat)), 0.0)
        passed = torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha], dim=1)
        return gaussians, alpha * passed.cumprod(dim=1)[:, : alpha.shape[1]]

    def _rows(self, values: Tensor) -> Tensor:
        """Values checked and moved to the device."""
        if values.ndim != 2 or len(values) != len(self.splats):
            raise ValueError(f"expected [{len(self.splats)}, D] values, got {list(values.shape)}")
        return values.to(self.splats.means)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.camera.height, self.camera.width

    @property
    def _image_arguments(self) -> dict[str, int]:
        return {
            "image_width": self.camera.width,
            "image_height": self.camera.height,
            "tile_size": TILE,
        }

    def _rasterise(self, values: Tensor, projected: _Projection) -> Tensor:
        """One gsplat pass for each run of channels, [N, D] to [H, W, D]."""
        images = []
        for run, width in channel_runs(values.shape[1], self._compiled):
            part = values[:, run]
            padding = part.new_zeros(len(part), width - part.shape[1])
            image, _ = self._gsplat.rasterize_to_pixels(
                **projected.arguments(),
                colors=torch.cat([part, padding], dim=1)[None],
                **self._image_arguments,
                isect_offsets=self._offsets,
                flatten_ids=self._flatten_ids,
                backgrounds=None,
                masks=None,
                packed=False,
                absgrad=False,
            )
            images.append(image[0, ..., : part.shape[1]])
        return torch.cat(images, dim=2) if images else values.new_zeros(*self._shape, 0)

    def _adjoint(self, values: Tensor, image: Tensor | None) -> Tensor:
        """Pull `image`, or the image of the values themselves, back to the Gaussians."""
        if not values.numel():
            return torch.zeros_like(values)
        with torch.enable_grad():
            leaf = values.clone().requires_grad_()
            rendered = self._rasterise(leaf, self._projected.detached())
        (pulled,) = torch.autograd.grad(
            rendered, leaf, rendered.detach() if image is None else image
        )
        return pulled


def _gsplat() -> Any:
    """The installed gsplat, or an error that says how to get it."""
    try:
        import gsplat
    except ImportError as error:
        raise BackendError(
            "the back end 'cuda' needs gsplat, which is not installed.\n"
            "  pip install 'splatcert[cuda]', or use the back end 'cpu'."
        ) from error
    if _release(gsplat) < OLDEST:
        raise BackendError(
            f"the back end 'cuda' needs gsplat 1.5.3 or newer, found {gsplat.__version__}.\n"
            "  pip install --upgrade gsplat, or use the back end 'cpu'."
        )
    return gsplat


def _release(gsplat: Any) -> tuple[int, ...]:
    """Leading numbers of a version: 1.6.0rc1+cu124 is (1, 6, 0)."""
    match = re.match(r"\d+(\.\d+)*", gsplat.__version__)
    return tuple(int(part) for part in match.group().split(".")) if match else (0,)


def _alpha_cap(gsplat: Any) -> float:
    return 0.99 if _release(gsplat) >= RENEWED else 0.999


def _device(splats: Splats) -> torch.device:
    """Where to render: the splats' own device if it is CUDA, else the current one."""
    if splats.means.is_cuda:
        return splats.means.device
    if not torch.cuda.is_available():
        raise BackendError(
            "the back end 'cuda' needs a CUDA device, and torch finds none.\n"
            "  Install a torch built for CUDA and check nvidia-smi, or use the back end 'cpu'."
        )
    return torch.device("cuda")
