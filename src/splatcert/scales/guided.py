# SPDX-License-Identifier: Apache-2.0
"""The guided scale: what training photographs say about each new view.

The pixels of a query are compared with the training photographs that saw the same surface.
From these comparisons and the residual field, weights learned on other captures make the scale.
The corrected centre adds their mean residual to the render, as far as it can be trusted. Everything
is frozen before labels are opened, and a photograph never speaks about its own view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from torch import Tensor

from splatcert.camera import Camera
from splatcert.certificate.content.record import Center, Holes, ScaleRecord
from splatcert.difficulty.guided.guide import Guide, shipped_guide
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.field.fitted_scene import FittedScene, Query
from splatcert.progress import Progress, quiet
from splatcert.raster.gpu.query import DeviceMaps
from splatcert.raster.query_maps import QueryMaps, widened
from splatcert.raster.render import Backend
from splatcert.scales.guided_features import flattened, flattening, guided_map
from splatcert.scales.scale import Array, Photos, Rule, Scale, Seen
from splatcert.witnesses.album import Album, render_maps
from splatcert.witnesses.maps import GuidedMap

NO_WITNESS = (
    "no training photograph shows what this camera sees: the residual field alone sets its boxes"
)


@dataclass(frozen=True, eq=False)
class GuidedScale(Scale):
    """A scale from training photographs, with the render or a corrected picture as the centre."""

    guide: Guide = field(default_factory=shipped_guide)
    """Weights, frozen on source captures."""
    center: Center = "render"  # pyright: ignore[reportIncompatibleVariableOverride]
    album: Album | None = None
    """The training photographs; None before the scale is fitted."""
    holes: Holes = "wide"
    name: str = "guided"
    needs_photos: bool = True

    @property
    def card(self) -> Mapping[str, Any] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the guide was learned from."""
        return self.guide.card

    def prepared(
        self, views: Photos, scene: FittedScene, backend: Backend, on: Progress = quiet
    ) -> GuidedScale:
        """The same scale with its photographs."""
        return replace(self, album=Album.of(views, scene, backend, on))

    def look(self, scene: FittedScene, camera: Camera, backend: Backend) -> Query:
        """Picture and scale of one camera; the residual field where no photograph shows it."""
        if self.album is None:
            raise TypeError("a guided scale must be prepared with its photographs first")
        maps = render_maps(scene, camera, backend)
        found = self.made(camera, maps)
        query = scene.described(camera, maps, "paper" if found.told else self.holes)
        return self.judged(query, maps, found, scene.field.prior)

    def made(self, camera: Camera, maps: QueryMaps) -> GuidedMap:
        """The scale that the nearest photographs and the field make of a rendered camera."""
        assert self.album is not None
        if isinstance(maps, DeviceMaps):
            return guided_map(maps.field.cpu(), self.album.ask(camera, maps), self.guide)
        return self.album.scale(camera, maps, self.guide, correct=self.center == "corrected")

    def judged(self, query: Query, maps: QueryMaps, found: GuidedMap, prior: float) -> Query:
        """A query with the scale and the centre that follow from what its witnesses say.

        Where the model shows nothing, (1 - alpha)^2 of the prior is added.
        """
        if not found.told:
            return replace(query, remark=NO_WITNESS)
        if self.holes == "wide":
            flat = flattening(found.mean)
            values, mean = widened(found.scale, maps.opacity, prior, *flat, squared=True)
        else:
            values, mean = flattened(found.scale, found.mean), found.mean
        query = replace(query, field=values.to(maps.field), field_mean=mean)
        if self.center == "corrected" and found.correction is not None:
            return replace(query, center=corrected(maps.center, found.correction))
        return query

    @property
    def rule(self) -> Rule:
        """How a view's factor follows from its mean scale."""
        rule = GuidedRule(guide=self.guide)
        return Rule(Fraction(1), lambda query: rule.factor(query.field_mean), rule.parameters())

    def settle(self, training: Seen, batch: Array) -> Rule:
        """The rule of the guide: nothing in it depends on the capture."""
        return self.rule

    def stored_rule(self, record: ScaleRecord) -> Rule:
        """The rule stored in a certificate."""
        return replace(self, guide=GuidedRule.of(record.parameters).guide).rule


def corrected(render: Tensor, correction: Tensor) -> Tensor:
    """The render plus what its witnesses add [3, H, W], in [0, 1], [H, W, 3]."""
    return (render + correction.permute(1, 2, 0).to(render)).clamp(0, 1)
