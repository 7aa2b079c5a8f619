# SPDX-License-Identifier: Apache-2.0
"""The renderer in plain torch: short, slow, and meant to be checked by eye.

Every other back end is tested against this one. It computes in the dtype of the
splats, so tests run it in float64, and autograd differentiates all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from splatcert.camera import Camera
from splatcert.raster.view import RENDERER_VERSION, Contributors, View
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import colours
from splatcert.storage.memory import BYTES_PER_ENTRY, BYTES_PER_PIXEL, require_memory

NEAR_PLANE = 0.01
LOW_PASS = 0.3  # square pixels
ALPHA_CAP = 0.9900000095367432
"""0.99 in float32, as kernels hold it. Two capped Gaussians then end a pixel in every precision
instead of meeting the stop threshold up to a rounding error."""
ALPHA_FLOOR = 1 / 255
STOP_TRANSMITTANCE = 1e-4
FOV_MARGIN = 0.3  # of the tangent of half the field of view
COMPENSATION_FLOOR = 2.5e-5  # of the squared opacity compensation

CHUNK = 2**21
"""Entries of A held at once, which bounds the memory of a pass."""


@dataclass(frozen=True, eq=False)
class Footprints:
    """Gaussians projected into the image (EWA splatting)."""

    centres: Tensor
    """Pixels, [M, 2]."""
    covariances: Tensor
    """After the low-pass filter, square pixels, [M, 2, 2]."""
    opacities: Tensor
    """Peak alpha, compensated if the splats are antialiased, [M]."""
    depths: Tensor
    """Camera z, [M]."""

    def drawn(self, camera: Camera) -> Tensor:
        """Which of them can be visible, [M] bool.

        Beyond the near plane and finite values, alpha must reach its floor at some
        pixel centre: no pixel changes when the others are left out.
        """
        level = 2 * (self.opacities / ALPHA_FLOOR).log()
        variances = self.covariances.diagonal(dim1=1, dim2=2)
        reach = (level[:, None] * variances).sqrt()  # not a number below the floor
        size = reach.new_tensor([camera.width, camera.height])
        first = (self.centres - reach - 0.5).ceil().clamp(min=0)
        last = torch.minimum((self.centres + reach - 0.5).floor(), size - 1)
        finite = self.covariances.isfinite().all(2).all(1) & self.centres.isfinite().all(1)
        in_front = self.depths > NEAR_PLANE
        return in_front & finite & (_det(self.covariances) > 0) & (first <= last).all(1)

    def alphas(self, pixels: Tensor) -> Tensor:
        """min(0.99, o exp(-sigma)) with sigma = d^T cov^-1 d / 2, [P, 2] to [P, M]."""
        (xx, xy), (_, yy) = self.covariances.permute(1, 2, 0)
        dx, dy = (pixels[:, None] - self.centres).unbind(2)
        sigma = (yy * dx**2 - 2 * xy * dx * dy + xx * dy**2) / (2 * _det(self.covariances))
        return (self.opacities * torch.exp(-sigma)).clamp(max=ALPHA_CAP)

    def weights(self, pixels: Tensor) -> Tensor:
        """Rows of A: w = alpha T (eq:gs-render), [P, 2] to [P, M]."""
        alpha, before, after = transmit(self.alphas(pixels))
        return alpha * before * (after > STOP_TRANSMITTANCE)


def _det(m: Tensor) -> Tensor:
    return m[..., 0, 0] * m[..., 1, 1] - m[..., 0, 1] * m[..., 1, 0]


def transmit(alphas: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Alpha with faint entries skipped, and T before and after each Gaussian, [P, M].

    T falls along a row, so `after > stop` is true up to the Gaussian that would take
    it to the threshold and false from there on: one comparison is the whole stop rule.
    """
    alpha = torch.where(alphas >= ALPHA_FLOOR, alphas, torch.zeros_like(alphas))
    after = torch.cumprod(1 - alpha, dim=1)
    before = torch.cat([torch.ones_like(after[:, :1]), after], dim=1)[:, : after.shape[1]]
    return alpha, before, after


def rotations(quats: Tensor) -> Tensor:
    """Rotation matrices of quaternions w, x, y, z of any length, [N, 4] to [N, 3, 3]."""
    w, x, y, z = (quats / quats.norm(dim=1, keepdim=True)).unbind(1)
    entries = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(entries, dim=1).reshape(-1, 3, 3)


def project(splats: Splats, camera: Camera) -> Footprints:
    """The footprint of every Gaussian in the order of the splats, visible or not."""
    pose = splats.means.new_tensor(camera.world_to_camera)
    turn = pose[:3, :3]
    x, y, z = (splats.means @ turn.T + pose[:3, 3]).unbind(1)
    u, v = x / z, y / z
    centres = torch.stack([camera.fx * u + camera.cx, camera.fy * v + camera.cy], dim=1)

    # Far outside the image the linearised projection is meaningless; its slope is held.
    u = _held(u, camera.cx, camera.fx, camera.width)
    v = _held(v, camera.cy, camera.fy, camera.height)
    zero = torch.zeros_like(z)
    rows = [camera.fx / z, zero, -camera.fx * u / z, zero, camera.fy / z, -camera.fy * v / z]
    jacobian = torch.stack(rows, dim=1).reshape(-1, 2, 3)
    axes = jacobian @ turn @ rotations(splats.quats) * splats.scales[:, None]
    sharp = axes @ axes.mT
    blurred = sharp + LOW_PASS * torch.eye(2, dtype=sharp.dtype, device=sharp.device)

    opacities = splats.opacities
    if splats.antialiased:
        ratio = _det(sharp) / _det(blurred)
        opacities = opacities * ratio.clamp(min=COMPENSATION_FLOOR).sqrt()
    return Footprints(centres, blurred, opacities, z)


def _held(slope: Tensor, principal: float, focal: float, size: int) -> Tensor:
    margin = FOV_MARGIN * 0.5 * size / focal
    return slope.clamp(-(principal / focal + margin), (size - principal) / focal + margin)


class ReferenceView(View):
    """Splats seen from one camera, in dense matrices."""

    def __init__(self, splats: Splats, camera: Camera) -> None:
        self.camera = camera
        self.splats = splats
        pixels, count = camera.width * camera.height, len(splats)
        entries = max(count, min(CHUNK, pixels * count))
        require_memory(
            BYTES_PER_PIXEL * pixels + BYTES_PER_ENTRY * entries,
            f"a view of {camera.width} x {camera.height} pixels",
        )
        with torch.no_grad():
            everything = project(splats, camera)
            drawn = everything.drawn(camera).nonzero()[:, 0]
            front_to_back = everything.depths[drawn].argsort(stable=True)
        self.order = drawn[front_to_back]
        """Drawn Gaussians, nearest first, equal depths by index, [M]."""
        # Projected again without the rest, whose infinities would poison the gradients.
        self.footprints = project(splats[self.order], camera)

    def composite(self, values: Tensor) -> Tensor:
        """A: one row of D values per Gaussian, [N, D], to an image [H, W, D]."""
        self._check(values, (len(self.splats),))
        parts = self._pass(lambda w, part, rows: w @ rows, values[self.order])
        return torch.cat(parts).reshape(self.camera.height, self.camera.width, values.shape[1])

    def scatter(self, image: Tensor) -> Tensor:
        """A transposed: an image [H, W, D] to one row per Gaussian, [N, D]."""
        self._check(image, (self.camera.height, self.camera.width))
        parts = self._pass(lambda w, part, rows: w.mT @ rows[part], image.flatten(0, 1))
        return self._all_rows(torch.stack(parts).sum(0))

    def normal(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """A^T M A, [N, D] to [N, D], sharing one evaluation of the weights if there is no mask."""
        if mask is not None:
            return super().normal(values, mask)
        self._check(values, (len(self.splats),))
        parts = self._pass(lambda w, part, rows: w.mT @ (w @ rows), values[self.order])
        return self._all_rows(torch.stack(parts).sum(0))

    def colours(self) -> Tensor:
        """Colour of each Gaussian towards this camera, [N, 3]; zero where it is not drawn."""
        drawn = self.splats[self.order]
        centre = drawn.means.new_tensor(self.camera.centre)
        return self._all_rows(colours(drawn.sh, drawn.means, centre))

    def depths(self) -> Tensor:
        """Camera z of each Gaussian, [N]; zero where it is not drawn."""
        return self._all_rows(self.footprints.depths)

    def footprint(self) -> Tensor:
        """Sum of alpha over the pixels of each Gaussian, ignoring occlusion, [N]."""
        pixels = self.pixels()
        parts = [transmit(self.footprints.alphas(pixels[part]))[0].sum(0) for part in self.chunks()]
        return self._all_rows(torch.stack(parts).sum(0))

    def contributors(self, pixels: Tensor) -> Contributors:
        """Weights behind chosen pixels, [P, 2] as (row, column)."""
        size = pixels.new_tensor([self.camera.height, self.camera.width])
        if pixels.ndim != 2 or ((pixels < 0) | (pixels >= size)).any():
            raise ValueError(f"pixels must be [P, 2] inside {size.tolist()}, as (row, column)")
        weights = self.footprints.weights(pixels.flip(1).to(self.footprints.centres) + 0.5)
        pixel, column = weights.nonzero(as_tuple=True)  # row by row, so front to back
        counts = torch.bincount(pixel, minlength=len(pixels))
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return Contributors(offsets, self.order[column], weights[pixel, column])

    def pixels(self) -> Tensor:
        """Pixel centres x, y in row order, [H W, 2]."""
        like = self.footprints.centres
        y = torch.arange(self.camera.height, dtype=like.dtype, device=like.device) + 0.5
        x = torch.arange(self.camera.width, dtype=like.dtype, device=like.device) + 0.5
        return torch.cartesian_prod(y, x).flip(1)

    def chunks(self) -> list[slice]:
        """Runs of pixels whose rows of A fit the memory limit together."""
        total = self.camera.height * self.camera.width
        step = max(1, CHUNK // max(1, len(self.order)))
        return [slice(start, start + step) for start in range(0, total, step)]

    def _pass(self, act: Callable[[Tensor, slice, Tensor], Tensor], rows: Tensor) -> list[Tensor]:
        """What `act` makes of the weights of each run of pixels.

        Under autograd the weights are evaluated again on the way back instead of kept.
        """
        pixels = self.pixels()

        def step(part: slice, rows: Tensor) -> Tensor:
            return act(self.footprints.weights(pixels[part]), part, rows)

        again = partial(checkpoint, step, use_reentrant=False, preserve_rng_state=False)
        return [cast(Tensor, again(part, rows)) for part in self.chunks()]

    def _all_rows(self, drawn: Tensor) -> Tensor:
        """Rows of the drawn Gaussians at their places among all, zero elsewhere."""
        empty = drawn.new_zeros(len(self.splats), *drawn.shape[1:])
        return empty.index_copy(0, self.order, drawn)

    def _check(self, tensor: Tensor, leading: tuple[int, ...]) -> None:
        if tensor.ndim != len(leading) + 1 or tuple(tensor.shape[:-1]) != leading:
            raise ValueError(f"expected shape {[*leading, '...']}, got {list(tensor.shape)}")


def renderer_identity() -> dict[str, object]:
    """What a certificate records about this renderer."""
    return {
        "name": "splatcert-reference",
        "version": RENDERER_VERSION,
        "constants": {
            "near_plane": NEAR_PLANE,
            "low_pass": LOW_PASS,
            "alpha_cap": 0.99,
            "alpha_floor": ALPHA_FLOOR,
            "stop_transmittance": STOP_TRANSMITTANCE,
            "fov_margin": FOV_MARGIN,
            "compensation_floor": COMPENSATION_FLOOR,
        },
    }
