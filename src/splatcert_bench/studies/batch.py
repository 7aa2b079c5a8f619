# SPDX-License-Identifier: Apache-2.0
"""The query batch of a study: renders and maps of every held-out view, without labels.

Everything that sets a scale happens here: the maps, and the constant per scene that divides
each of them (eq:baseline-normalization). The batch is hashed before any label is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from splatcert.camera import Camera
from splatcert.certificate.hashes import joint_hash, map_hash
from splatcert.difficulty.descriptor import EPSILON0
from splatcert.difficulty.factor import unit_of
from splatcert.scene.roles import QueryView
from splatcert.scene.scene import Scene
from splatcert_bench.baselines.baseline import Baseline, Fitted, Reading
from splatcert_bench.baselines.ensemble import Ensemble
from splatcert_bench.baselines.gsu import ResidualMap
from splatcert_bench.baselines.named import BaselineError
from splatcert_bench.run.entries import ENSEMBLE

FIELD = "gsu"
"""The residual field b, which our shape is computed from; every study has it."""
MODEL, ENSEMBLE_MEAN = "model", "ensemble-mean"
"""Centres of the boxes."""


@dataclass(frozen=True, eq=False)
class Shown:
    """One held-out view, rendered."""

    camera: Camera
    centre: Tensor
    """[H, W, 3], in [0, 1]."""
    maps: Mapping[str, Tensor]
    """Positive, [H, W], by name."""
    means: Mapping[str, float]
    """Mean of each map over the whole image."""
    descriptor: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """All held-out views under one centre."""

    centre: str
    views: Mapping[str, Shown]
    """By name, in order."""
    readings: Mapping[str, Reading | None]
    """What each map means without calibration."""

    def units(self) -> dict[str, float]:
        """c_U of every map: its mean within each view, averaged over views."""
        first = next(iter(self.views.values()))
        return {n: unit_of(view.means[n] for view in self.views.values()) for n in first.maps}

    def hash(self) -> str:
        """One hash over every render and map."""
        return joint_hash(
            map_hash(tensor)
            for view in self.views.values()
            for tensor in (view.centre, *(view.maps[name] for name in sorted(view.maps)))
        )


def queries(scene: Scene) -> list[QueryView]:
    """The held-out views that have a photograph, without it."""
    return [scene.held_out[name] for name in scene.held_out.with_photo]


def query_batch(scene: Scene, fitted: Fitted, baselines: Mapping[str, Baseline]) -> Batch:
    """Render every held-out camera with every method, around the model's own render."""
    views = {view.name: _show(view, fitted, baselines) for view in queries(scene)}
    readings: dict[str, Reading | None] = {FIELD: ResidualMap.reading}
    readings |= {name: getattr(one, "reading", None) for name, one in baselines.items()}
    return Batch(MODEL, views, readings)


def _show(view: QueryView, fitted: Fitted, baselines: Mapping[str, Baseline]) -> Shown:
    query = fitted.scene.query(view.camera, backend=fitted.backend)
    maps = {FIELD: query.field.cpu()}
    for name, baseline in baselines.items():
        maps[name] = _checked(name, view, baseline.map(view.camera).cpu())
    # Exactly the mean that certificates divide the field by.
    means = means_of(maps) | {FIELD: query.field_mean}
    return Shown(view.camera, query.center.cpu(), maps, means, query.descriptor)


def means_of(maps: Mapping[str, Tensor]) -> dict[str, float]:
    """Mean of each map."""
    return {name: float(values.double().mean()) for name, values in maps.items()}


def _checked(name: str, view: QueryView, values: Tensor) -> Tensor:
    """Check that a map can be a scale; a user's own baseline may return anything."""
    size = view.camera.height, view.camera.width
    good = (values > 0) & values.isfinite()
    if tuple(values.shape) != size or not bool(good.all()):
        bad = int((~good).sum()) if values.numel() else 0
        raise BaselineError(
            f"the map {name!r} of view {view.name!r} has shape {list(values.shape)} and {bad} "
            f"values that are not positive and finite; expected {list(size)} and none.\n"
            "  Correct its map method; a small floor such as 1e-3 keeps the map positive."
        )
    return values.float()


def around_ensemble_mean(scene: Scene, batch: Batch, ensemble: Ensemble) -> Batch:
    """The batch with the members' mean render as its centre, at the members' resolution.

    The predictive-centre control: our shape and the ensemble's deviation around the same image.
    If members are smaller than the main model, the field is averaged down.
    """
    views = {}
    for view in queries(scene):
        shown, moments = batch.views[view.name], ensemble.moments(view.camera)
        size = moments.deviation.shape[0], moments.deviation.shape[1]
        maps = {
            FIELD: shrunk(shown.maps[FIELD], size),
            ENSEMBLE: moments.deviation.clamp(min=EPSILON0),
        }
        views[view.name] = replace(shown, centre=moments.mean, maps=maps, means=means_of(maps))
    return Batch(ENSEMBLE_MEAN, views, {name: batch.readings[name] for name in (FIELD, ENSEMBLE)})


def shrunk(image: Tensor, size: tuple[int, int]) -> Tensor:
    """An image [H, W] or [H, W, C] averaged down to `size`; unchanged if it already has it."""
    if tuple(image.shape[:2]) == size:
        return image
    planes = image[None, None] if image.ndim == 2 else image.permute(2, 0, 1)[None]
    reduced = interpolate(planes, size, mode="area")[0]
    return reduced[0] if image.ndim == 2 else reduced.permute(1, 2, 0).contiguous()


def timed_cameras(scene: Scene, count: int) -> list[Camera]:
    """A few held-out cameras, evenly spread."""
    cameras = scene.held_out.cameras
    places = np.linspace(0, len(cameras) - 1, min(count, len(cameras)))
    return [cameras[round(float(place))] for place in places]
