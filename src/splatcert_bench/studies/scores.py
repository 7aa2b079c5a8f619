# SPDX-License-Identifier: Apache-2.0
"""Scores of every map on the labels of held-out views: the numbers that tables use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from splatcert.conformal.maps import TENTHS, ViewMaps, rgb_residual, tenths_of, view_maps
from splatcert.conformal.pooled import native_multiplier
from splatcert.conformal.ranks import ceil_rank, order_statistics
from splatcert.difficulty.factor import LAMBDA_GRID, shrink
from splatcert.scene.roles import EvaluationView, require_labels
from splatcert_bench.baselines.baseline import Reading
from splatcert_bench.baselines.gavis import KAPPAS
from splatcert_bench.run.entries import ENSEMBLE, FULL_ENSEMBLE
from splatcert_bench.statistics.compared_scales import WIDE_SHAPE
from splatcert_bench.statistics.ranking import Errors, rank_by
from splatcert_bench.studies.batch import FIELD, Batch, Shown, shrunk
from splatcert_bench.studies.counts import BINS, TENTH_EDGES, count_ratios, count_tenths
from splatcert_bench.studies.study import SHAPE, MapScores

Array = NDArray[np.float64]
PER_VIEW = "-pv"
"""Suffix of maps that are normalised within each view."""
COUNTED = (SHAPE, FIELD, ENSEMBLE, FULL_ENSEMBLE)
"""Maps whose ratios are counted, for pooled calibration and the coverage curve."""
BY_TENTHS = (
    *(SHAPE, WIDE_SHAPE, FIELD, ENSEMBLE, FULL_ENSEMBLE),
    *(f"gavis-{kappa}" for kappa in KAPPAS),
)
"""Maps whose ratios are counted by tenths of the half-width."""


@dataclass(frozen=True, eq=False)
class Label:
    """One photograph compared with one render."""

    residual: Array
    """[H, W]."""
    mask: NDArray[np.bool_] | None
    psnr: float
    pixels: int

    @classmethod
    def of(cls, view: EvaluationView, centre: Tensor) -> Label:
        """Compare a photograph with a render, at the render's resolution."""
        size = centre.shape[0], centre.shape[1]
        labelled = require_labels(view, EvaluationView)
        image = shrunk(labelled.image().cpu(), size).numpy()
        mask = None
        if labelled.has_mask:
            # An averaged pixel counts only if all of it counts.
            mask = shrunk(labelled.mask().cpu().float(), size).numpy() > 0.999
        residual = rgb_residual(image, centre.numpy())
        difference = image - centre.numpy()
        counted = difference if mask is None else difference[mask]
        squared = float(np.square(counted).mean(dtype=np.float64))
        psnr = -10 * float(np.log10(max(squared, 1e-12)))
        return cls(residual, mask, psnr, counted.size // 3)

    def counted(self, values: NDArray[np.generic]) -> Array:
        """The values of a map where pixels count, [n]."""
        return self.chosen(values).astype(np.float64)

    def chosen(self, values: NDArray[np.generic]) -> NDArray[Any]:
        """The same in the map's own precision."""
        return values.ravel() if self.mask is None else values[self.mask]

    @cached_property
    def errors(self) -> Errors:
        """Residuals where pixels count, ready to be ranked."""
        return Errors(self.counted(self.residual))

    def under(self, scale: NDArray[np.float32]) -> ViewMaps:
        """Residual and scale where pixels count."""
        if not 0 < scale.min() <= scale.max() < np.inf:
            view_maps(self.residual, scale, self.mask)  # says what is wrong
        return ViewMaps(self.errors.values, self.counted(scale))


@dataclass(frozen=True, eq=False)
class Scored:
    """All maps of a batch, scored."""

    names: tuple[str, ...]
    pixels: NDArray[np.int64]
    psnr: Array
    field_means: Array
    maps: Mapping[str, MapScores]
    counts: Mapping[str, NDArray[np.uint32]]
    """Ratio counts of the maps in COUNTED, [V, lambdas, BINS]."""
    tenths: Mapping[str, NDArray[np.uint32]]
    """The same by tenths of the half-width, of the maps that tables compare."""


def score_batch(
    batch: Batch,
    labelled: Sequence[EvaluationView],
    betas: Sequence[Fraction],
    *,
    count: bool = True,
) -> Scored:
    """Every map at every shrinkage and level, normalised by scene and by view.

    With `count`, also the ratios of the maps that tables pool or split by half-width.
    """
    units = batch.units()
    tables = {name: _Table.empty(name, len(labelled), betas, count) for name in _variants(units)}
    labels = []
    for row, view in enumerate(labelled):
        shown = batch.views[view.name]
        label = Label.of(view, shown.centre)
        labels.append(label)
        flat = _Flat.of(label, betas)
        for name, table in tables.items():
            raw = name.removesuffix(PER_VIEW)
            reading = batch.readings.get(raw) if raw == name else None
            table.fill(row, shown, label, units[raw], reading, flat)
        _copy_rankings(tables, row)
    return Scored(
        names=tuple(view.name for view in labelled),
        pixels=np.array([label.pixels for label in labels], dtype=np.int64),
        psnr=np.array([label.psnr for label in labels]),
        field_means=np.array([batch.views[view.name].means[FIELD] for view in labelled]),
        maps={
            name: table.scores(1.0 if name.endswith(PER_VIEW) else units[name], batch.readings)
            for name, table in tables.items()
        },
        counts={name: table.counts for name, table in tables.items() if table.counts.size},
        tenths={name: table.tenths for name, table in tables.items() if table.tenths.size},
    )


def _variants(names: Mapping[str, float]) -> Iterator[str]:
    for name in names:
        yield name
        yield name + PER_VIEW


def _copy_rankings(tables: Mapping[str, _Table], row: int) -> None:
    """Copy rankings, because a per-view unit does not change the order of pixels."""
    for name, table in tables.items():
        if name.endswith(PER_VIEW):
            other = tables[name.removesuffix(PER_VIEW)]
            table.ause[row], table.spearman[row] = other.ause[row], other.spearman[row]


@dataclass(frozen=True, eq=False)
class _Flat:
    """A view under the constant scale, which every map is when fully shrunk."""

    betas: Sequence[Fraction]
    ranks: Sequence[int]
    ratios: Array
    """The residuals themselves."""
    scores: Array
    counts: NDArray[np.uint32]
    tenths: NDArray[np.uint32]

    @classmethod
    def of(cls, label: Label, betas: Sequence[Fraction]) -> _Flat:
        ranks = [ceil_rank(label.pixels, 1 - beta) for beta in betas]
        residual = label.errors.values
        return cls(
            betas=betas,
            ranks=ranks,
            ratios=residual,
            scores=order_statistics(residual, ranks),
            counts=count_ratios(residual),
            tenths=count_tenths(residual, np.zeros(residual.size, dtype=np.intp)),
        )


@dataclass(eq=False)
class _Table:
    """The numbers of one map, filled view by view."""

    name: str
    values: Array
    """R_v, [V, betas, lambdas]."""
    means: Array
    ause: Array
    spearman: Array
    native: NDArray[np.int64]
    counts: NDArray[np.uint32]
    tenths: NDArray[np.uint32]

    @classmethod
    def empty(cls, name: str, views: int, betas: Sequence[Fraction], count: bool) -> _Table:
        bins = BINS if count and name in COUNTED else 0
        steps = len(TENTH_EDGES) if count and name in BY_TENTHS else 0
        return cls(
            name=name,
            values=np.full((views, len(betas), len(LAMBDA_GRID)), np.nan),
            means=np.full(views, np.nan),
            ause=np.full(views, np.nan),
            spearman=np.full(views, np.nan),
            native=np.zeros((views, len(betas)), dtype=np.int64),
            counts=np.zeros((views, len(LAMBDA_GRID), bins), dtype=np.uint32),
            tenths=np.zeros((views, len(LAMBDA_GRID), TENTHS, steps), dtype=np.uint32),
        )

    def fill(
        self,
        row: int,
        shown: Shown,
        label: Label,
        unit: float,
        reading: Reading | None,
        flat: _Flat,
    ) -> None:
        per_view = self.name.endswith(PER_VIEW)
        raw = shown.maps[self.name.removesuffix(PER_VIEW)]
        own = shown.means[self.name.removesuffix(PER_VIEW)] if per_view else unit
        plain, residual = label.counted(raw.numpy()), label.errors.values
        for at, weight in enumerate(LAMBDA_GRID):
            # Fully shrunk, every map is the constant one.
            maps = label.under(shrink(raw, own, weight).numpy()) if weight else None
            ratios = flat.ratios if maps is None else maps.ratios()
            values = flat.scores if maps is None else order_statistics(ratios, flat.ranks)
            self.values[row, :, at] = values
            if self.counts.size:
                self.counts[row, at] = flat.counts if maps is None else count_ratios(ratios)
            if self.tenths.size and maps is None:
                self.tenths[row, at] = flat.tenths
            elif self.tenths.size and maps is not None:
                self.tenths[row, at] = count_tenths(ratios, tenths_of(maps.scale))
        self.means[row] = plain.mean() / own
        if not per_view:
            ranked = rank_by(label.errors, label.chosen(raw.numpy()))
            self.ause[row], self.spearman[row] = ranked
        if reading is not None:
            multipliers = [native_multiplier(reading, beta) for beta in flat.betas]
            self.native[row] = [int((residual <= m * plain).sum()) for m in multipliers]

    def scores(self, unit: float, readings: Mapping[str, Reading | None]) -> MapScores:
        reading = None if self.name.endswith(PER_VIEW) else readings.get(self.name)
        native = self.native if reading else np.empty((0, 0), dtype=np.int64)
        return MapScores(
            scores=self.values,
            means=self.means,
            unit=unit,
            ause=self.ause,
            spearman=self.spearman,
            reading=reading or "",
            native=native,
        )
