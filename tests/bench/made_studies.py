# SPDX-License-Identifier: Apache-2.0
"""Made studies: small residual maps whose difficulty is known, measured as real ones are."""

from __future__ import annotations

import zlib
from fractions import Fraction
from functools import cache

import numpy as np

from splatcert.conformal.calibrate import view_scores
from splatcert.conformal.maps import tenths_of
from splatcert.conformal.pooled import native_multiplier
from splatcert.difficulty.factor import LAMBDA_GRID, shape, shrink, unit_of, view_factor
from splatcert_bench.studies.counts import (
    RatioCounts,
    ViewPicture,
    count_ratios,
    count_tenths,
)
from splatcert_bench.studies.study import (
    DIRECTIONS,
    GROUPS,
    KINDS,
    GuidedScores,
    MapScores,
    Prediction,
    Study,
)

BETAS = tuple(Fraction(n, 20) for n in (1, 2, 4, 6, 8, 10))
FAMILIES = {
    "truck": "Tanks & Temples",
    "train": "Tanks & Temples",
    "drjohnson": "Deep Blending",
    "playroom": "Deep Blending",
    "bicycle": "Mip-NeRF 360",
    "bonsai": "Mip-NeRF 360",
    "garden": "Mip-NeRF 360",
}
STRICT = ("truck", "train", "drjohnson", "playroom")
MIXED = ("truck", "playroom", "bicycle", "garden")
FULL = ("truck", "playroom", "garden")
"""Scenes with an ensemble of members as large as the model."""
SIZE = (12, 16)


class MadeScene:
    """Views with residuals r = difficulty * where * noise, and maps that half know it."""

    def __init__(self, scene="truck", views=24, backbone="fastgs", centre="model"):
        self.scene, self.backbone, self.centre = scene, backbone, centre
        rng = self.rng = np.random.default_rng(zlib.crc32(f"{scene} {backbone}".encode()))
        self.names = tuple(f"{index:03}.jpg" for index in range(views))
        self.difficulty = rng.lognormal(-3, 0.4, views)
        where = rng.lognormal(0, 0.5, (views, *SIZE))
        noise = np.abs(rng.normal(size=(views, *SIZE)))
        self.residual = np.minimum(self.difficulty[:, None, None] * where * noise, 1)
        if centre != "model":
            self.residual *= 0.9
        level = self.difficulty[:, None, None]
        known = [rng.lognormal(0, spread, views)[:, None, None] for spread in (0.2, 0.15, 0.5)]
        blur = rng.lognormal(0, 0.3, (3, views, *SIZE))
        self.raw = {
            "gsu": level * known[0] * where * blur[0],
            "ensemble": 0.3 * level * known[1] * where * blur[1],
            "gsu@0.01": level * known[0] * where * blur[1],
            "gavis-1": 0.1 + 0.02 * blur[2],
            "gavis-64": 0.4 * known[2] * blur[2],
        }
        if scene in FULL and (backbone, centre) == ("fastgs", "model"):
            self.raw["ensemble-full"] = 0.3 * level * known[0] * where * blur[2]

    @cache  # noqa: B019, a test's scenes live as long as the test
    def study(self) -> Study:
        maps, turn = {}, np.linspace(0, 2 * np.pi, len(self.names), endpoint=False)
        for name, raw in self.raw.items():
            maps[name] = self._map(raw, unit_of(raw.mean(axis=(1, 2))), name)
            maps[f"{name}-pv"] = self._map(raw, None, name)
        return Study(
            scene=self.scene,
            family=FAMILIES.get(self.scene, "made"),
            backbone=self.backbone,
            centre=self.centre,
            names=self.names,
            betas=BETAS,
            pixels=np.full(len(self.names), SIZE[0] * SIZE[1]),
            psnr=-10 * np.log10(np.square(self.residual).mean(axis=(1, 2))),
            field_means=self.raw["gsu"].mean(axis=(1, 2)),
            maps=maps,
            predictions=self._predictions(),
            facts=self._facts(),
            settings={"resolution": f"{SIZE[1]}x{SIZE[0]}", "iterations": "0", "seed": "0"}
            | ({"full members": "10"} if "ensemble-full" in self.raw else {}),
            hashes={"splats": "ab" * 32},
            centres=np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1),
            strangeness=self.difficulty / self.difficulty.mean(),
            guided=self._guided(),
        )

    @cache  # noqa: B019
    def ratios(self) -> RatioCounts:
        counted, tenths = {}, {}
        for name in ("gsu", "ensemble", "gsu-pv", "gavis-1", "gavis-64"):
            raw = self.raw[name.removesuffix("-pv")]
            unit = None if name.endswith("-pv") else unit_of(raw.mean(axis=(1, 2)))
            views = [
                [(r, scaled(u, unit, value)) for value in LAMBDA_GRID]
                for r, u in zip(self.residual, raw, strict=True)
            ]
            tenths[name] = np.array(
                [[count_tenths((r / s).ravel(), tenths_of(s.ravel())) for r, s in v] for v in views]
            )
            if "gavis" not in name:
                counted[name] = np.array([[count_ratios(r / s) for r, s in v] for v in views])
        return RatioCounts(self.study().key, counted, tenths)

    def picture(self, view: int) -> ViewPicture:
        render = self.rng.integers(0, 256, (*SIZE, 3)).astype(np.uint8)
        field = self.raw["gsu"][view].astype(np.float32)
        residual = self.residual[view].astype(np.float32)
        return ViewPicture(self.study().key, self.names[view], render, field, residual)

    def _map(self, raw, unit, name) -> MapScores:
        scores = [
            np.stack([view_scores(r, scaled(u, unit, v), BETAS) for v in LAMBDA_GRID], axis=1)
            for r, u in zip(self.residual, raw, strict=True)
        ]
        units = unit or raw.mean(axis=(1, 2), keepdims=True)
        reading = {"ensemble": "gaussian", "gsu": "residual"}.get(name, "") if unit else ""
        native = np.empty((0, 0), dtype=np.int64)
        if reading:
            widths = [native_multiplier(reading, beta) * raw for beta in BETAS]
            native = np.stack([(self.residual <= w).sum(axis=(1, 2)) for w in widths], axis=1)
        return MapScores(
            scores=np.array(scores),
            means=(raw / units).mean(axis=(1, 2)),
            unit=unit or 1.0,
            ause=np.array([np.var(u) for u in raw]),
            spearman=np.array(
                [
                    np.corrcoef(u.ravel(), r.ravel())[0, 1]
                    for u, r in zip(raw, self.residual, strict=True)
                ]
            ),
            reading=reading,
            native=native,
        )

    def _predictions(self) -> dict[str, Prediction]:
        pools = {
            "pool": tuple(FAMILIES),
            "strict": STRICT,
            "mixed": MIXED,
            "same-family": (*STRICT, "bicycle"),
            "out-of-fold": tuple(FAMILIES),
            "one-model": tuple(FAMILIES),
            "paper": tuple(FAMILIES),
            "pool@0.01": tuple(FAMILIES),
        }
        return {
            name: self._prediction(tuple(s for s in sources if s != self.scene), place, name)
            for place, (name, sources) in enumerate(pools.items())
        }

    def _prediction(self, sources, place, pool) -> Prediction:
        rng = np.random.default_rng(place)
        raw = self.difficulty * rng.lognormal(0, 0.25 + 0.05 * place, len(self.names))
        lambda_a, lambda_b = Fraction(3, 4), Fraction(1, 2)
        factors = view_factor(raw, 1.1 * unit_of(raw), lambda_a)
        field = self.raw[pool.replace("pool", "gsu") if "@" in pool else "gsu"]
        deployed = [a * shape(u, lambda_b) for a, u in zip(factors, field, strict=True)]
        scores = [view_scores(r, s, BETAS) for r, s in zip(self.residual, deployed, strict=True)]
        means = np.array([s.mean() for s in deployed])
        recipe = lambda_a, lambda_b, sources, 10.0, 0.85 - 0.01 * place
        return Prediction(raw, factors, *recipe, np.array(scores), means)

    def _guided(self) -> dict[str, GuidedScores]:
        """A scale that knows more than the field, around the render and a better picture."""
        pools = {pool: one.sources for pool, one in self._predictions().items()}
        blur = np.random.default_rng(len(self.names)).lognormal(0, 0.2, self.residual.shape)
        scale = self.raw["gsu"] * blur
        found = {}
        for method, left in (("guided", 1.0), ("corrected", 0.9)):
            if method == "corrected" and self.centre != "model":
                continue
            residual = left * self.residual
            pairs = list(zip(residual, scale, strict=True))
            tenths = [count_tenths((r / s).ravel(), tenths_of(s.ravel())) for r, s in pairs]
            counts = np.array([count_ratios(r / s) for r, s in pairs])
            for pool in ("pool", "strict"):
                found[f"{method} {pool}"] = GuidedScores(
                    scores=np.array([view_scores(r, s, BETAS) for r, s in pairs]),
                    means=scale.mean(axis=(1, 2)),
                    ause=np.array([np.var(s) for s in scale]),
                    spearman=np.array([np.corrcoef(s.ravel(), r.ravel())[0, 1] for r, s in pairs]),
                    psnr=-10 * np.log10(np.square(residual).mean(axis=(1, 2))),
                    ssim=1 - residual.mean(axis=(1, 2)),
                    tenths=np.array(tenths),
                    sources=pools[pool],
                    power=1.5,
                    counts=counts if pool == "pool" else counts[:, :0],
                )
        return found

    def _facts(self) -> dict[str, float]:
        visible = (0.43, 0.42, 0.13, 0.23)
        access = {f"access.{group}.{kind}": 3.0 for group in GROUPS for kind in KINDS}
        facts = {f"visibility.64.{d}": v for d, v in zip(DIRECTIONS, visible, strict=True)}
        facts |= access | {"access.test.image": 0.0, "training_views": 168.0, "gaussians": 276e3}
        facts |= {"packing.maps": 0.0, "packing.features": 6e-8}
        facts |= {"latency.megapixels": 0.23, "latency.one_pass": 0.05, "latency.colour": 0.03}
        facts |= {"latency.four_passes": 0.12, "latency.ensemble": 0.3, "latency.guided": 0.06}
        facts |= {"latency.members.ensemble": 10.0, "seconds.ensemble": 3000.0}
        facts |= {"seconds.train": 300.0, "seconds.post": 60.0}
        return facts


def scaled(raw, unit, weight):
    """The map at one shrinkage: in units of the scene, or of its own mean."""
    return shape(raw, weight) if unit is None else shrink(raw, unit, weight)
