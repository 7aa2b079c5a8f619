# SPDX-License-Identifier: Apache-2.0
"""Synthetic scenes: a courtyard for demos and benchmarks, random splats for property tests.

A synthetic scene requires no download, is the same everywhere for one seed, and has the
statistics that determine a renderer's speed in a real capture: overlapping flat Gaussians on
surfaces, occlusion, thin structures and a far backdrop.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.scene.camera_paths import look_at
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT, basis
from splatcert_bench.synthetic.courtyard import SUN, SUNLIGHT, Surface, courtyard, shine

Array = NDArray[np.float64]
COVERAGE = 0.67
"""Standard deviation of a Gaussian, relative to the spacing of its neighbours."""
HAZE = 0.12
"""Share of faint Gaussians; as in trained models, most are nearly opaque."""


def made_splats(count: int, seed: int = 0, sh_degree: int = 3) -> Splats:
    """A courtyard of `count` Gaussians on textured surfaces, float32.

    Scales shrink with the square root of the count, so renders look alike and every pixel has
    about as many contributors, from a thousand Gaussians to millions.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    surface = courtyard(count, rng)
    logits = np.where(rng.random(count) < HAZE, -1.2, 4.2) + 0.9 * rng.standard_normal(count)
    sizes = COVERAGE * surface.spacing * np.exp(0.22 * rng.standard_normal(count))
    columns = (
        surface.points,
        _turn(surface.axis, 2 * np.pi * rng.random(count)),
        np.log(sizes[:, None] * surface.stretch),
        logits,
        _harmonics(surface, sh_degree, rng),
    )
    # Real files have no spatial order, so a renderer must really sort.
    return _splats(columns, rng.permutation(count))


def _turn(axis: Array, spin: Array) -> Array:
    """Quaternions w, x, y, z that rotate by `spin` about z, then take z to `axis`, [n, 4]."""
    x, y, z = axis.T
    upright = np.stack([1 + z, -y, x, np.zeros_like(z)], axis=1)
    upright[z < -1 + 1e-9] = [0.0, 1.0, 0.0, 0.0]
    upright /= np.linalg.norm(upright, axis=1, keepdims=True)
    w, i, j, _ = upright.T
    c, s = np.cos(spin / 2), np.sin(spin / 2)
    return np.stack([w * c, i * c + j * s, j * c - i * s, w * s], axis=1)


def _harmonics(surface: Surface, degree: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Colour harmonics: diffuse colour, a little noise and highlights of the sun, [n, K, 3]."""
    order = np.concatenate([np.full(2 * l + 1, l) for l in range(degree + 1)])
    shape = (len(surface.points), len(order), 3)
    sh = np.float32(0.012) * rng.standard_normal(shape, dtype=np.float32)
    sh[:, 0] = (shine(surface) - 0.5) / SH_CONSTANT
    # Directions run from the camera to the Gaussian, so a highlight sits at minus the
    # mirrored sun. Heat-kernel weights keep the truncated lobe nearly positive.
    facing = surface.normals @ SUN
    glossy = (surface.gloss * np.clip(facing, 0, None)).nonzero()[0]
    mirrored = 2 * facing[glossy, None] * surface.normals[glossy] - SUN
    decay = np.exp(-0.13 * order * (order + 1))
    lobe = decay / decay.sum() * basis(torch.from_numpy(-mirrored), degree).numpy()
    strength = 0.55 * 4 * np.pi * surface.gloss[glossy] * np.clip(4 * facing[glossy], 0, 1)
    sh[glossy] += (strength[:, None] * lobe)[:, :, None] * SUNLIGHT
    return sh


def _splats(
    columns: tuple[NDArray[np.floating], ...], order: NDArray[np.int64] | slice = slice(None)
) -> Splats:
    means, quats, log_scales, logits, sh = (
        torch.from_numpy(np.ascontiguousarray(column[order], dtype=np.float32))
        for column in columns
    )
    return Splats(means=means, quats=quats, log_scales=log_scales, logit_opacities=logits, sh=sh)


def made_cameras(
    count: int,
    width: int = 640,
    height: int = 420,
    *,
    field_of_view: float = 57.0,
    turn: float = 360.0,
) -> list[Camera]:
    """Cameras on a wavy ring around the courtyard; the first is the benchmark's.

    `field_of_view` is horizontal; `turn` is the arc that the cameras span. Both in degrees.
    """
    focal = 0.5 * width / np.tan(np.radians(field_of_view) / 2)
    lens = Camera(
        world_to_camera=np.eye(4),
        width=width,
        height=height,
        fx=focal,
        fy=focal,
        cx=width / 2,
        cy=height / 2,
    )
    target, up = np.array([0.0, 0.2, 0.8]), np.array([0.0, 0.0, 1.0])
    cameras = []
    for k in range(count):
        angle = np.radians(-68.0 + turn * k / count)
        radius = 5.6 + 0.35 * np.sin(3 * angle + 1)
        eye = np.array(
            [radius * np.cos(angle), radius * np.sin(angle), 1.9 + 0.5 * np.sin(5 * angle)]
        )
        cameras.append(replace(lens, world_to_camera=look_at(eye, target - eye, up)))
    return cameras


def random_splats(
    count: int,
    *,
    seed: int | np.random.Generator = 0,
    camera: Camera | None = None,
    sh_degree: int = 1,
) -> Splats:
    """Gaussians of every kind around a camera, for property tests, float32.

    Most lie in the frustum, some outside it, behind the camera or at its centre. They are
    needles, discs and blobs, from a fraction of a pixel to most of the image, from transparent
    to opaque. Harmonics are large enough that some colours clamp at zero. Without a camera they
    surround one at the origin that looks along +z.
    """
    rng = np.random.default_rng(seed)
    z = np.where(rng.random(count) < 0.9, rng.uniform(0.3, 6.0, count), rng.uniform(-1, 0.3, count))
    half_x, half_y = (
        (0.6, 0.6)
        if camera is None
        else (0.5 * camera.width / camera.fx, 0.5 * camera.height / camera.fy)
    )
    spread = 1.4 * rng.uniform(-1, 1, (count, 2)) * np.abs(z)[:, None]
    local = np.concatenate([spread * np.array([half_x, half_y]), z[:, None]], axis=1)
    if camera is not None:
        rotation, shift = camera.world_to_camera[:3, :3], camera.world_to_camera[:3, 3]
        local = (local - shift) @ rotation
    log_scales = rng.uniform(np.log(2e-3), np.log(0.25), (count, 1)) + rng.uniform(
        np.log(0.05), 0.0, (count, 3)
    )
    columns = (
        local,
        rng.standard_normal((count, 4)),
        log_scales,
        rng.uniform(-7, 7, count),
        0.8 * rng.standard_normal((count, (sh_degree + 1) ** 2, 3)),
    )
    return _splats(columns)
