# SPDX-License-Identifier: Apache-2.0
"""A capture and its model, ready to be certified: the single entry point.

The guarantee requires photos that the model has not seen. A run of `splatcert train` lists
them; other trainers leave a rule in their settings, or nothing. A model's own account of its
training takes precedence over any option, in Python and on the command line.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from splatcert.certificate.content.record import (
    LoadRecord,
    ModelRecord,
    RendererRecord,
    SceneRecord,
    UnseenBy,
)
from splatcert.certificate.hashes import splats_hash
from splatcert.config import FieldConfig
from splatcert.errors import listed
from splatcert.raster.placement import PhotoFit, Placement, chosen_background, load_for_scene
from splatcert.raster.render import Backend, renderer_of
from splatcert.scales.training_views import TrainingSide
from splatcert.scene.load import read_photographs
from splatcert.scene.scene import Scene
from splatcert.scene.split import OWN_SPLIT, Holdout
from splatcert.splats.account import TrainedOnTheseError, TrainingAccount, account_of
from splatcert.splats.gaussians import Splats
from splatcert.splats.unseen import refuse_trained_on, split_unseen

Rgb = tuple[float, float, float]
BLACK: Rgb = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Capture:
    """Photographs, the model in their frame, and who says which of them it has not seen."""

    scene: Scene
    splats: Splats
    """The model in the frame of the scene."""
    unseen_by: UnseenBy
    """Who says that the model has not seen the held-out photos."""
    background: Rgb = BLACK
    background_from: str = "as asked"
    placement: Placement | None = None
    """How the model was brought into the scene's frame; None for arrays in memory."""
    account: TrainingAccount = field(default_factory=TrainingAccount)
    """The model's own account of its training."""
    own_split: bool = False
    """Whether the capture has its own split, which trainers follow."""

    @classmethod
    def in_memory(
        cls, scene: Scene, splats: Splats, *, unseen: Sequence[str], background: Rgb = BLACK
    ) -> Capture:
        """A capture from arrays in memory; `unseen` must name exactly the held-out views."""
        named, held_out = set(unseen), set(scene.held_out.names)
        if named != held_out:
            wrong = sorted(named ^ held_out)
            raise TrainedOnTheseError(
                f"`unseen` names {len(named)} views, but {len(held_out)} are held out; they differ "
                f"in {listed(wrong)}.\n"
                "  Only views that the model has not seen can calibrate. Hold out exactly those,\n"
                "  and name each of them in `unseen`."
            )
        account, own_split = TrainingAccount(), scene.details.get("split") == OWN_SPLIT
        if splats.origin is not None:
            account = account_of(splats.origin)
            seen = account.trained_on(tuple(scene.cameras), own_split=own_split)
            refuse_trained_on(scene, seen or ())
        return cls(
            scene=scene,
            splats=splats,
            unseen_by="user",
            background=background,
            account=account,
            own_split=own_split,
        )

    @property
    def split(self) -> str:
        """How held-out views were chosen, in words."""
        return str(self.scene.details.get("split", "as given"))

    @property
    def likeness(self) -> PhotoFit | None:
        """How well renders fit a few training photos, if already known."""
        return None if self.placement is None else self.placement.fit

    def training_side(
        self, config: FieldConfig, backend: Backend, betas: tuple[Fraction, ...]
    ) -> TrainingSide:
        """All data that a scale may be fitted on; it contains no held-out view."""
        return TrainingSide(
            splats=self.splats,
            views=self.scene.training,
            extent=self.scene.extent,
            background=self.background,
            backend=backend,
            field=config,
            model=self.model_record(),
            renderer=self.renderer_record(backend),
            betas=betas,
        )

    def record(self) -> SceneRecord:
        """A summary of the capture, for a certificate."""
        scene = self.scene
        sizes = Counter(f"{c.width}x{c.height}" for c in scene.cameras.values())
        return SceneRecord(
            name=scene.path.name,
            format=scene.format,
            split=self.split,
            held_out_by=self.unseen_by,
            sizes=dict(sorted(sizes.items())),
            extent=scene.extent,
            loaded=None if scene.format == "memory" else _load_record(scene.details),
        )

    def model_record(self) -> ModelRecord:
        """The splats, identified by content."""
        return ModelRecord(
            splats=splats_hash(self.splats),
            gaussians=len(self.splats),
            sh_degree=self.splats.sh_degree,
            antialiased=self.splats.antialiased,
        )

    def renderer_record(self, backend: Backend) -> RendererRecord:
        """The renderer's name, version and constants."""
        known: dict[str, Any] = renderer_of(backend)
        return RendererRecord(backend=backend, **known, background=self.background)


def open_capture(
    data: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    holdout: Holdout = "auto",
    images: str | None = None,
    resolution: int | str | None = None,
    background: Rgb | None = None,
    backend: Backend = "cpu",
    sparse: int | None = None,
    skip_missing: bool = False,
) -> Capture:
    """Open a capture and its model; the model's own list of training photos takes precedence.

    Args:
        data: Folder of photographs and poses, as `load_scene` reads it.
        model: Run of `splatcert train`, PLY, SPZ, SPLAT, SOG or GLB file, Inria folder, gsplat or
            nerfstudio run.
        holdout: Photos to calibrate on, as in `load_scene`. "auto": those the model's run kept
            out; where it does not say, the capture's own split, or every 8th photo.
        images: Folder of photographs, such as `images_4`.
        resolution: Longest side in pixels, or a factor. Default: as the model was trained.
        background: Colour behind the splats. Default: the model's, the capture's, or black.
        backend: Renderer that checks the model against a few training photos.
        sparse: N for the COLMAP model `sparse/N`. Default: the one the run was trained on, else the
            one with the most photos.
        skip_missing: Skip poses whose photo is missing. Default: as the run did.

    Held-out photos that the model was trained on are refused.
    """
    path = Path(model)
    account = account_of(path)
    photographs = read_photographs(
        data,
        images=images,
        resolution=resolution or account.long_side,
        sparse=account.sparse if sparse is None else sparse,
        skip_missing=skip_missing or account.skip_missing,
    )
    scene, unseen_by = split_unseen(photographs, holdout, account)
    why, colour = chosen_background(background, account.background, path, scene)
    placement = load_for_scene(path, scene, background=colour, backend=backend)
    return Capture(
        scene=scene,
        splats=placement.splats,
        unseen_by=unseen_by,
        background=colour,
        background_from=why,
        placement=placement,
        account=account,
        own_split=photographs.own_split,
    )


def as_capture(
    capture: Capture | Scene,
    splats: Splats | None,
    unseen: Sequence[str] | None,
    background: Rgb,
) -> Capture:
    """The arguments of `certify` as a capture."""
    if isinstance(capture, Capture):
        if splats is not None or unseen is not None:
            raise TypeError("an opened capture already has its splats and its split; pass it alone")
        return capture
    if splats is None or unseen is None:
        raise TypeError(
            "a scene is certified with its splats and `unseen`, the names of the held-out views "
            "that the model has not seen; open_capture(data, model) finds both from files"
        )
    return Capture.in_memory(capture, splats, unseen=unseen, background=background)


def _load_record(details: Mapping[str, Any]) -> LoadRecord:
    """The options of loading the photographs that affect pixels."""
    resolution, masks = details.get("resolution"), details.get("masks asked for")
    return LoadRecord(
        images=details.get("images"),
        resolution=None if resolution is None else str(resolution),
        background=details.get("background"),
        masks="off" if masks is False else masks,
        sparse=details.get("sparse"),
        skip_missing=bool(details.get("skip missing")),
    )
