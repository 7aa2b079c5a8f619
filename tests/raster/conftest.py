# SPDX-License-Identifier: Apache-2.0
"""A gsplat that runs on the CPU, for the Python side of the `cuda` back end.

Each function first binds its arguments to the signature of the installed gsplat (or,
for functions that only 1.6 has, to the signature its source gives them), so a call that
the real package would refuse fails here too. What they compute follows gsplat's layout:
one camera, tile lists sorted by depth, only compiled numbers of channels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster import reference
from splatcert.splats.gaussians import Splats

NEW_IN_1_6 = {
    "isect_tiles": (
        "means2d radii depths tile_size tile_width tile_height sort segmented packed n_images "
        "image_ids gaussian_ids conics opacities"
    ),
    "rasterize_num_contributing_gaussians": (
        "means2d conics opacities tile_offsets flatten_ids image_width image_height tile_size"
    ),
    "rasterize_contributing_gaussian_ids": (
        "means2d conics opacities tile_offsets flatten_ids image_width image_height tile_size "
        "num_contributing_gaussians"
    ),
}
CHANNELS = {
    "1.5.3": {1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 512, 513},
    "1.6.0": {1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 21, 23, 24, 32, 33, 64, 65, 128, 129, 256, 257},
}


def published_signature(name: str, version: str) -> inspect.Signature:
    """Parameters of a gsplat function, from the installed package where it has them."""
    if version == "1.6.0" and name in NEW_IN_1_6:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = NEW_IN_1_6[name].split()
        return inspect.Signature([inspect.Parameter(n, kind, default=None) for n in names])
    return inspect.signature(getattr(pytest.importorskip("gsplat"), name))


class FakeKernels:
    """What the kernels compute, slowly; `calls` records every call's arguments."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.cap = reference.ALPHA_CAP if version == "1.6.0" else 0.999
        self.calls: list[tuple[str, dict]] = []

    def fully_fused_projection(self, **a) -> tuple:
        # Gaussians enter the reference as it takes them: logarithms and logits.
        splats = Splats(
            means=a["means"],
            quats=a["quats"],
            log_scales=a["scales"].log(),
            logit_opacities=a["opacities"].logit(),
            sh=a["means"].new_zeros(len(a["means"]), 1, 3),
        )
        K, pose = a["Ks"][0].double(), a["viewmats"][0].double().numpy()
        camera = Camera(
            world_to_camera=pose,
            fx=float(K[0, 0]),
            fy=float(K[1, 1]),
            cx=float(K[0, 2]),
            cy=float(K[1, 2]),
            width=a["width"],
            height=a["height"],
        )
        found = reference.project(splats, camera)
        compensations = None
        if a["calc_compensations"]:
            sharp = found.covariances - a["eps2d"] * torch.eye(2)
            ratio = torch.linalg.det(sharp) / torch.linalg.det(found.covariances)
            compensations = ratio.clamp(min=reference.COMPENSATION_FLOOR).sqrt()[None]
        drawn = found.drawn(camera)
        variances = found.covariances.diagonal(dim1=1, dim2=2)
        radii = (3.33 * variances.sqrt()).ceil().nan_to_num(0, 0, 0) * drawn[:, None]
        inverse = torch.linalg.inv(
            torch.where(drawn[:, None, None], found.covariances, torch.eye(2))
        )
        conics = torch.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]], dim=1)
        # The real kernels leave what they skip uninitialised.
        means2d = torch.where(drawn[:, None], found.centres, torch.nan)
        depths = torch.where(drawn, found.depths, torch.nan)
        return radii.int()[None], means2d[None], depths[None], conics[None], compensations

    def isect_tiles(self, **a) -> tuple[Tensor, Tensor, Tensor]:
        assert a["n_images"] == 1 and a["sort"] and not a["packed"]
        size, across = a["tile_size"], a["tile_width"]
        means2d, radii, depths = a["means2d"][0], a["radii"][0], a["depths"][0]
        ids, found = [], []
        for gaussian in range(len(means2d)):
            if not (radii[gaussian] > 0).all():
                continue
            low = ((means2d[gaussian] - radii[gaussian]) / size).floor().int().clamp(min=0)
            high = ((means2d[gaussian] + radii[gaussian]) / size).ceil().int()
            for y in range(low[1], min(int(high[1]), a["tile_height"])):
                for x in range(low[0], min(int(high[0]), across)):
                    ids.append((y * across + x, float(depths[gaussian])))
                    found.append(gaussian)
        order = sorted(range(len(ids)), key=ids.__getitem__)
        tiles = torch.tensor([ids[k][0] for k in order], dtype=torch.int64)
        return torch.zeros(0), tiles, torch.tensor([found[k] for k in order], dtype=torch.int32)

    def isect_offset_encode(self, **a) -> Tensor:
        tiles = torch.arange(a["tile_width"] * a["tile_height"])
        starts = torch.searchsorted(a["isect_ids"], tiles)
        return starts.reshape(1, a["tile_height"], a["tile_width"]).int()

    def rows(self, a: dict, offsets: Tensor) -> list[tuple[int, Tensor, Tensor]]:
        """Of each pixel: its number, the Gaussians of its tile, their weights."""
        width, height, size = a["image_width"], a["image_height"], a["tile_size"]
        flat = a["flatten_ids"].long()
        ends = [*offsets.flatten().tolist()[1:], len(flat)]
        result = []
        for tile, (start, end) in enumerate(zip(offsets.flatten().tolist(), ends, strict=True)):
            gaussians = flat[start:end]
            x0, y0 = tile % offsets.shape[2] * size, tile // offsets.shape[2] * size
            y, x = torch.meshgrid(
                torch.arange(y0, min(y0 + size, height)),
                torch.arange(x0, min(x0 + size, width)),
                indexing="ij",
            )
            pixels = torch.stack([x.flatten(), y.flatten()], dim=1)
            d = pixels[:, None] + 0.5 - a["means2d"][0][gaussians]
            c = a["conics"][0][gaussians]
            sigma = 0.5 * (c[:, 0] * d[..., 0] ** 2 + c[:, 2] * d[..., 1] ** 2)
            sigma = sigma + c[:, 1] * d[..., 0] * d[..., 1]
            raw = a["opacities"][0][gaussians] * torch.exp(-sigma)
            alpha, before, after = reference.transmit(raw.clamp(max=self.cap))
            weights = alpha * before * (after > reference.STOP_TRANSMITTANCE)
            for k, (column, row) in enumerate(pixels.tolist()):
                result.append((row * width + column, gaussians, weights[k]))
        return sorted(result, key=lambda item: item[0])

    def rasterize_to_pixels(self, **a) -> tuple[Tensor, Tensor]:
        channels = a["colors"].shape[2]
        if channels not in CHANNELS[self.version]:
            raise ValueError(f"Unsupported number of color channels: {channels}")
        assert a["backgrounds"] is None and not a["packed"]
        rows = self.rows(a, a["isect_offsets"])
        image = torch.stack([weights @ a["colors"][0][ids] for _, ids, weights in rows])
        alpha = torch.stack([weights.sum() for _, _, weights in rows])
        shape = (1, a["image_height"], a["image_width"], -1)
        return image.reshape(shape), alpha.reshape(shape)

    def rasterize_to_indices_in_range(self, **a) -> tuple[Tensor, Tensor, Tensor]:
        assert a["range_end"] * a["tile_size"] ** 2 >= len(a["flatten_ids"])
        assert (a["transmittances"] == 1).all()
        listed = [
            (gaussian, pixel)
            for pixel, gaussians, weights in self.rows(a, a["isect_offsets"])
            for gaussian in gaussians[weights > 0].tolist()
        ]
        table = torch.tensor(listed, dtype=torch.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1], torch.zeros(len(table), dtype=torch.int64)

    def rasterize_num_contributing_gaussians(self, **a) -> tuple[Tensor, Tensor]:
        rows = self.rows(a, a["tile_offsets"])
        shape = (1, a["image_height"], a["image_width"])
        counts = torch.tensor([int((weights > 0).sum()) for _, _, weights in rows])
        alpha = torch.stack([weights.sum() for _, _, weights in rows])
        return counts.int().reshape(shape), alpha.reshape(shape)

    def rasterize_contributing_gaussian_ids(self, **a) -> tuple[Tensor, Tensor]:
        most = int(a["num_contributing_gaussians"].max())
        ids = torch.full((1, a["image_height"] * a["image_width"], most), -1)
        listed = torch.zeros(ids.shape)
        for pixel, gaussians, weights in self.rows(a, a["tile_offsets"]):
            kept = weights > 0
            ids[0, pixel, : kept.sum()] = gaussians[kept]
            listed[0, pixel, : kept.sum()] = weights[kept].float()
        shape = (1, a["image_height"], a["image_width"], most)
        return ids.int().reshape(shape), listed.reshape(shape)


OLD_FUNCTIONS = (
    "fully_fused_projection",
    "isect_tiles",
    "isect_offset_encode",
    "rasterize_to_pixels",
    "rasterize_to_indices_in_range",
)


def fake_gsplat(version: str) -> SimpleNamespace:
    """A module-like gsplat of that version; `.kernels` holds its record of calls."""
    kernels = FakeKernels(version)

    def checked(name: str) -> Callable:
        signature = published_signature(name, version)

        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            kernels.calls.append((name, kwargs))
            bound.apply_defaults()
            return getattr(kernels, name)(**bound.arguments)

        call.__signature__ = signature
        return call

    names = (*OLD_FUNCTIONS, *(NEW_IN_1_6 if version == "1.6.0" else ()))
    functions = {name: checked(name) for name in names}
    return SimpleNamespace(__version__=version, kernels=kernels, **functions)


@pytest.fixture(params=["1.5.3", "1.6.0"])
def gsplat_on_cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """The `cuda` back end on the fake, with the CPU for its device."""
    from splatcert.raster import cuda

    fake = fake_gsplat(request.param)
    monkeypatch.setattr(cuda, "installed_gsplat", lambda: fake)
    monkeypatch.setattr(cuda, "_device", lambda splats: torch.device("cpu"))
    return fake
