# SPDX-License-Identifier: Apache-2.0
"""All studies of a bench: every backbone, every centre, every scene."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from splatcert.conformal.splits import calibration_size
from splatcert.storage.whole import ArtefactError
from splatcert_bench.statistics.choices import MissingError, Protocol
from splatcert_bench.statistics.evidence import Evidence
from splatcert_bench.studies.counts import RatioCounts, ViewPicture
from splatcert_bench.studies.study import Study
from splatcert_bench.studies.study_file import load_guided, load_study

MODEL = "model"
"""The centre of the main results: one model's render."""
FAMILIES = ("Tanks & Temples", "Deep Blending", "Mip-NeRF 360")
"""The paper's families in its order; others come after them."""
PREFERRED = "playroom"
"""The scene of the first figure, if it is listed; chosen before any result was seen."""
SHOWN = 3
"""Scenes of the second figure."""
Entry = TypeVar("Entry")


@dataclass(frozen=True, eq=False)
class BenchStudies:
    """The input of every table."""

    studies: tuple[Study, ...]
    ratios: Mapping[str, RatioCounts] = field(default_factory=dict)
    """By key of study."""
    pictures: tuple[ViewPicture, ...] = ()
    protocol: Protocol = field(default_factory=Protocol)

    @property
    def backbones(self) -> tuple[str, ...]:
        """How models were trained: main models by their density rule, others by their name."""
        return tuple(sorted({study.backbone for study in self.studies}))

    @property
    def backbone(self) -> str:
        """That of the main results: FastGS, or that of the first study."""
        known = [study.backbone for study in self.studies]
        return "fastgs" if "fastgs" in known or not known else known[0]

    def evidence(self, backbone: str | None = None, centre: str = MODEL) -> Evidence:
        """The studies of one backbone and centre.

        Shrinkages are always chosen on studies of the main backbone and centre: other ones
        inherit the choice, as they inherit the predictor.
        """
        rule = backbone or self.backbone
        chosen = self._of(rule, centre)
        if not chosen:
            raise MissingError(f"there is no study of backbone {rule!r} and centre {centre!r}")
        sources = {study.scene: study for study in self._of(self.backbone, MODEL)}
        return Evidence(chosen, sources, protocol=self.protocol)

    @property
    def main(self) -> Evidence:
        """The main results."""
        return self.evidence()

    def counts(self, study: Study) -> RatioCounts:
        """Counted ratios of a study."""
        if study.key not in self.ratios:
            raise MissingError(f"the ratios of study {study.key} were not stored")
        counts = self.ratios[study.key]
        if any(len(counted) != len(study) for counted in counts.maps.values()):
            raise MissingError(f"the ratios of study {study.key} do not match its views")
        return counts

    def _of(self, backbone: str, centre: str) -> tuple[Study, ...]:
        found = [s for s in self.studies if (s.backbone, s.centre) == (backbone, centre)]
        return tuple(sorted((s for s in found if not too_small(s)), key=_order))


def too_small(study: Study) -> bool:
    """Whether a study has too few held-out views to be split."""
    return len(study) <= calibration_size(len(study))


def _order(study: Study) -> tuple[int, str, str]:
    return page_order((study.family, study.scene))


def page_order(entry: tuple[str, str]) -> tuple[int, str, str]:
    """Place of a family and scene on the page."""
    family, scene = entry
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), family, scene


def spread(
    entries: Sequence[Entry], count: int, family: Callable[[Entry], str] = itemgetter(0)
) -> list[Entry]:
    """Up to `count` entries, from as many families as possible."""
    seen: Counter[str] = Counter()
    ranked = []
    for entry in entries:
        seen[family(entry)] += 1
        ranked.append((seen[family(entry)], len(ranked), entry))
    return [entry for _, _, entry in sorted(ranked, key=lambda one: one[:2])[:count]]


def _with_guided(path: Path, guided: Collection[str] | None) -> Study:
    """A study, with its guided scales if they were scored."""
    beside = path.with_name(f"{path.name.removesuffix('.npz')}.guided.npz")
    study = load_study(path)
    wanted = beside.is_file() and (guided is None or study.key in guided)
    return replace(study, guided=load_guided(beside)) if wanted else study


def read_studies(
    folder: Path,
    protocol: Protocol,
    keys: Collection[str],
    guided: Collection[str] | None = None,
) -> BenchStudies:
    """Load the studies with these keys, and their ratios and pictures, from a folder.

    Other files in it belong to scenes that the bench no longer lists, and guided scales of other
    keys than `guided`, if given, to an earlier run.
    """
    listed = tuple(f"{key}." for key in keys)
    every = [path for path in sorted(folder.glob("*.npz")) if path.name.startswith(listed)]
    ratios = [path for path in every if path.name.endswith(".ratios.npz")]
    pictures = [path for path in every if path.name.endswith(".picture.npz")]
    beside = (".ratios.npz", ".picture.npz", ".guided.npz")
    studies = [path for path in every if not path.name.endswith(beside)]
    if not studies:
        raise ArtefactError(f"there is no study in {folder}.\n  Run splatcert bench first.")
    counted = [RatioCounts.load(path) for path in ratios]
    return BenchStudies(
        studies=tuple(_with_guided(path, guided) for path in studies),
        ratios={counts.study: counts for counts in counted},
        pictures=tuple(ViewPicture.load(path) for path in pictures),
        protocol=protocol,
    )
