# SPDX-License-Identifier: Apache-2.0
"""Source captures of a guide: views with their photographs, asked as if they were new.

Training views are asked without their own photograph. Where only they are given, every source
capture can still be certified with the guide that is learned from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.hashes import Mark, label_hash, photo_file_hash, photo_mark, place_mark
from splatcert.difficulty.views_file import Views
from splatcert.field.fitted_scene import FittedScene
from splatcert.progress import Progress, each, quiet
from splatcert.raster.render import Backend
from splatcert.scales.guided_features import hole, planes
from splatcert.scales.training_views import TrainingSide
from splatcert.scene.roles import LabelledView, SourceView, require_labels
from splatcert.witnesses.album import Album, render_maps

MOST_VIEWS, PIXELS = 64, 4000
"""Views of a capture, evenly chosen, and pixels of each, at random."""


@dataclass(frozen=True, eq=False)
class GuideViews:
    """Pixels of some views: maps, and how the render differs from the photograph."""

    cameras: tuple[Camera, ...]
    """[V]."""
    maps: Tensor
    """In the order of `FEATURES`, [V, P, F]."""
    difference: Tensor
    """Photograph minus render, [V, P, 3]."""
    drift: Tensor
    """Mean signed residual of the witnesses, [V, P, 3]."""
    hole: Tensor
    """What is added to the scale where the model shows nothing, [V, P]."""
    field_means: NDArray[np.float64]
    """Mean residual field, [V]."""

    @property
    def residual(self) -> Tensor:
        """Largest difference over the channels, [V, P]."""
        return self.difference.abs().amax(-1)


@dataclass(frozen=True, eq=False)
class GuideSource:
    """One source capture."""

    name: str
    kind: Views
    """Training views are asked without their own photograph; held-out ones must be free to use."""
    views: GuideViews
    """The views that a guide is fitted to."""
    marks: dict[str, str]
    """Marks of its photographs, by role and name."""


def guide_source(
    name: str,
    side: TrainingSide,
    scene: FittedScene,
    album: Album,
    held_out: Sequence[SourceView] = (),
    on: Progress = quiet,
) -> GuideSource:
    """A capture that has been fitted: its held-out views if given, else training views."""
    marks = {f"training {view.name}": _mark(view) for view in side.views}
    if held_out:
        labelled = [require_labels(view, SourceView) for view in held_out]
        marks |= {f"held-out {view.name}": _mark(view) for view in labelled}
        known = sample_views(labelled, scene, album, side.backend, on)
        return GuideSource(name, "held-out", known, marks)
    chosen = np.linspace(0, len(side.views) - 1, min(MOST_VIEWS, len(side.views)))
    views = [side.views[int(k)] for k in chosen.round()]
    known = sample_views(views, scene, album, side.backend, on)
    return GuideSource(name, "training", known, marks)


def sample_views(
    views: Sequence[LabelledView],
    scene: FittedScene,
    album: Album,
    backend: Backend,
    on: Progress = quiet,
) -> GuideViews:
    """The same number of random counted pixels of every view that has any."""
    rows, means, cameras = [], [], []
    for at, view in enumerate(each(views, "asking about views", on)):
        found = render_maps(scene, view.camera, backend)
        told = album.ask(view.camera, found)
        photo = require_labels(view).image()
        counted = view.mask().ravel().nonzero()[:, 0] if view.has_mask else None
        total = photo[..., 0].numel() if counted is None else len(counted)
        if not total:
            continue
        pick = torch.randint(total, (PIXELS,), generator=torch.Generator().manual_seed(at))
        pick = pick if counted is None else counted[pick]
        maps = torch.stack(
            [plane.cpu().ravel()[pick] for plane in planes(found.field.cpu(), told)], dim=-1
        )
        difference = (photo - found.center.cpu()).reshape(-1, 3)[pick]
        drift = told.drift.permute(1, 2, 0).reshape(-1, 3)[pick]
        unseen = hole(found.opacity.cpu().ravel()[pick], scene.field.prior)
        rows.append((maps, difference, drift, unseen))
        means.append(found.moments[2])
        cameras.append(view.camera)
    columns = (torch.stack(column) for column in zip(*rows, strict=True))
    return GuideViews(tuple(cameras), *columns, field_means=np.array(means))


def _mark(view: LabelledView) -> str:
    file = photo_file_hash(view)
    photo = photo_mark(label_hash(view) if file is None else "", file)
    return str(Mark(photo, place_mark(view.camera)))
