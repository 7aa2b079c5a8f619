# SPDX-License-Identifier: Apache-2.0
"""What is to be certified, and how: passed along unchanged through all phases."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from splatcert.certificate.hashes import renderer_of, splats_hash
from splatcert.certificate.measure import BETAS
from splatcert.certificate.record import ModelRecord, RendererRecord
from splatcert.config import CertifyConfig
from splatcert.conformal.levels import parse_level
from splatcert.field.fit import Report
from splatcert.raster.render import Backend
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked for, and of what."""

    scene: Scene
    splats: Splats
    config: CertifyConfig
    backend: Backend = "cpu"
    report: Report | None = None

    @cached_property
    def alpha(self) -> Fraction:
        """A new view may fall short with at most this probability, exactly."""
        return parse_level(self.config.alpha, "alpha")

    @cached_property
    def beta(self) -> Fraction:
        """Share of a view's pixels that may miss, exactly."""
        return parse_level(self.config.beta, "beta")

    @cached_property
    def betas(self) -> tuple[Fraction, ...]:
        """Every beta at which scores are kept."""
        return tuple(sorted({*BETAS, self.beta}))

    @cached_property
    def model(self) -> ModelRecord:
        """The splats by content."""
        return ModelRecord(
            splats=splats_hash(self.splats),
            gaussians=len(self.splats),
            sh_degree=self.splats.sh_degree,
            antialiased=self.splats.antialiased,
        )

    @cached_property
    def renderer(self) -> RendererRecord:
        """The renderer by name, version and constants."""
        known: dict[str, Any] = renderer_of(self.backend)
        return RendererRecord(backend=self.backend, **known, background=self.config.background)

    def tell(self, doing: str, done: int, total: int) -> None:
        """Report progress to whoever listens."""
        if self.report is not None:
            self.report(doing, done, total)
