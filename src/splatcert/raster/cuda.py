# SPDX-License-Identifier: Apache-2.0
"""The `cuda` back end: gsplat's kernels behind a `View`.

Harmonics are evaluated here, because gsplat's own path adds 0.5 and clamps, and an operator
must be linear. `gsplat_versions` holds what differs between releases.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.gsplat_versions import (
    TILE,
    Tiles,
    alpha_cap,
    channel_runs,
    compensation_floor,
    compiled_channels,
    exact_tiles,
    installed_gsplat,
    weights_behind,
)
from splatcert.raster.reference import (
    ALPHA_FLOOR,
    FOV_MARGIN,
    LOW_PASS,
    NEAR_PLANE,
    STOP_TRANSMITTANCE,
)
from splatcert.raster.render import BackendError
from splatcert.raster.view import Contributors, View
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import colours

FAR_PLANE = 1e10


def renderer_identity() -> dict[str, object]:
    """What a certificate records about this renderer."""
    gsplat = installed_gsplat()
    return {
        "name": "gsplat",
        "version": gsplat.__version__,
        "constants": {
            "near_plane": NEAR_PLANE,
            "low_pass": LOW_PASS,
            "alpha_cap": alpha_cap(gsplat),
            "alpha_floor": ALPHA_FLOOR,
            "stop_transmittance": STOP_TRANSMITTANCE,
            "fov_margin": FOV_MARGIN,
            "compensation_floor": compensation_floor(gsplat),
        },
    }


class CudaView(View):
    """Splats seen from one camera on a CUDA device, in float32.

    `composite` is differentiable to the splats and the values; `scatter` and `normal`
    are its adjoint and are not differentiated themselves. gsplat adds in the order in which
    its threads arrive, so results repeat to about 1e-6, not to the bit.
    """

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self._gsplat = installed_gsplat()
        self.camera = camera
        self.splats = splats.to(device=_device(splats), dtype=torch.float32)
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

        grid = {
            "tile_width": -(-camera.width // TILE),
            "tile_height": -(-camera.height // TILE),
        }
        _, isect_ids, flatten_ids = self._gsplat.isect_tiles(
            means2d=means2d.detach(),
            radii=radii,
            depths=depths.detach(),
            tile_size=TILE,
            **grid,
            sort=True,
            segmented=False,
            packed=False,
            n_images=1,
            **exact_tiles(self._gsplat, conics, opacities),
        )
        offsets = self._gsplat.isect_offset_encode(isect_ids=isect_ids, n_images=1, **grid)
        self._tiles = Tiles(means2d, conics, opacities, offsets, flatten_ids, camera)

    def composite(self, values: Tensor) -> Tensor:
        """A: one row of D values per Gaussian, [N, D], to an image [H, W, D]."""
        values = self._rows(values)
        if not len(self.splats):
            return values.new_zeros(*self._shape, values.shape[1])
        return self._rasterise(values, self._tiles)

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: an image [H, W, D] to one row per Gaussian, [N, D].

        The gradient of a linear map with respect to its argument is the map's
        transpose, whatever the argument: gsplat's backward pass is the adjoint.
        """
        if image.ndim != 3 or tuple(image.shape[:2]) != self._shape:
            raise ValueError(f"expected a {self._shape} image, got {list(image.shape)}")
        image = image.detach().to(self.splats.means)
        return self._adjoint(image.new_zeros(len(self.splats), image.shape[2]), image)

    def normal(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """A^T M A, [N, D] to [N, D], in one forward and one backward pass if there is no mask."""
        if mask is not None:
            return super().normal(values, mask)
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
            gaussians, weights = weights_behind(self._gsplat, self._tiles, chosen.long())
        kept = weights > 0
        offsets = torch.cat([chosen.new_zeros(1), kept.sum(1).cumsum(0)]).long()
        return Contributors(offsets, gaussians[kept].long(), weights[kept])

    def _rows(self, values: Tensor) -> Tensor:
        """Values checked and moved to the device."""
        if values.ndim != 2 or len(values) != len(self.splats):
            raise ValueError(f"expected [{len(self.splats)}, D] values, got {list(values.shape)}")
        return values.to(self.splats.means)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.camera.height, self.camera.width

    def _rasterise(self, values: Tensor, tiles: Tiles) -> Tensor:
        """One gsplat pass for each run of channels, [N, D] to [H, W, D]."""
        images = []
        for run, width in channel_runs(values.shape[1], compiled_channels(self._gsplat)):
            part = values[:, run]
            padding = part.new_zeros(len(part), width - part.shape[1])
            image, _ = self._gsplat.rasterize_to_pixels(
                **tiles.projected(),
                colors=torch.cat([part, padding], dim=1)[None],
                **tiles.image(),
                isect_offsets=tiles.offsets,
                flatten_ids=tiles.flatten_ids,
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
            rendered = self._rasterise(leaf, self._tiles.detached())
        (pulled,) = torch.autograd.grad(
            rendered, leaf, rendered.detach() if image is None else image
        )
        return pulled


def _device(splats: Splats) -> torch.device:
    """Where to render: the splats' own device if it is CUDA, else the current one."""
    return splats.means.device if splats.means.is_cuda else require_device()


def require_device() -> torch.device:
    """The current CUDA device, or an error that says what is missing."""
    installed_gsplat()
    if not torch.cuda.is_available():
        raise BackendError(
            "the back end 'cuda' requires a CUDA device, and torch finds none.\n"
            "  Install a torch built for CUDA and check nvidia-smi, or use the back end 'cpu'."
        )
    return torch.device("cuda")
