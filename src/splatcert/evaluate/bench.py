# SPDX-License-Identifier: Apache-2.0
"""All studies of a bench together: every backbone, every centre, every scene."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from splatcert.evaluate.evidence import Evidence, MissingError, Protocol
from splatcert.evaluate.pictures import ViewPicture
from splatcert.evaluate.ratios import RatioCounts
from splatcert.evaluate.study import Study

BACKBONE, CENTRE = "fastgs", "model"
FAMILIES = ("Tanks & Temples", "Deep Blending", "Mip-NeRF 360")
"""The paper's, in its order; others follow."""


@dataclass(frozen=True, eq=False)
class Bench:
    """What the tables are made from."""

    studies: tuple[Study, ...]
    ratios: Mapping[str, RatioCounts] = field(default_factory=dict)
    """By key of the study."""
    pictures: tuple[ViewPicture, ...] = ()
    protocol: Protocol = field(default_factory=Protocol)

    def evidence(self, backbone: str = BACKBONE, centre: str = CENTRE) -> Evidence:
        """The studies of one density rule and centre.

        Choices are always made on studies of the main ones: another backbone or centre takes
        over what was chosen, as it takes over the predictor.
        """
        chosen = self._of(backbone, centre)
        if not chosen:
            raise MissingError(f"there is no study of backbone {backbone!r} and centre {centre!r}")
        sources = {study.scene: study for study in self._of(BACKBONE, CENTRE)}
        return Evidence(chosen, sources, protocol=self.protocol)

    @property
    def main(self) -> Evidence:
        """The main results."""
        return self.evidence()

    def counts(self, study: Study) -> RatioCounts:
        """Counted ratios of a study."""
        if study.key not in self.ratios:
            raise MissingError(f"the ratios of study {study.key} were not kept")
        return self.ratios[study.key]

    def _of(self, backbone: str, centre: str) -> tuple[Study, ...]:
        found = [s for s in self.studies if (s.backbone, s.centre) == (backbone, centre)]
        return tuple(sorted(found, key=_order))


def _order(study: Study) -> tuple[int, str, str]:
    known = FAMILIES.index(study.family) if study.family in FAMILIES else len(FAMILIES)
    return known, study.family, study.scene
