# SPDX-License-Identifier: Apache-2.0
"""The guided scale on the held-out views of one model, with the guide of every pool.

A view is rendered once for all guides. As in `certify`, every scale of the batch is hashed before
labels are opened, and the maps that are scored must be the hashed ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.certificate.hashes import map_hash
from splatcert.conformal.calibrate import view_scores
from splatcert.conformal.maps import tenths_of, view_maps
from splatcert.conformal.ranks import rank_correlation
from splatcert.difficulty.guided.guide import load_guide
from splatcert.field.fitted_scene import Query
from splatcert.scales.guided import GuidedScale
from splatcert.scales.scale import Rule, ScaledView
from splatcert.scene.roles import EvaluationView
from splatcert.scene.scene import TrainingViews
from splatcert.storage.whole import output_folder, write_text_whole
from splatcert.training.losses import ssim
from splatcert.witnesses.album import Album, render_maps
from splatcert_bench.baselines.baseline import Fitted
from splatcert_bench.baselines.ensemble import Ensemble
from splatcert_bench.run.entries import ENSEMBLE
from splatcert_bench.run.layout import Model
from splatcert_bench.run.settings import MAIN_POOL
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED
from splatcert_bench.statistics.ranking import ause
from splatcert_bench.studies.access import save_study_ledger
from splatcert_bench.studies.batch import ENSEMBLE_MEAN, MODEL, queries, shrunk, timed_cameras
from splatcert_bench.studies.checks import guided_latency
from splatcert_bench.studies.counts import count_ratios, count_tenths
from splatcert_bench.studies.make_study import betas_of, fitted_model, members_of
from splatcert_bench.studies.scores import Label
from splatcert_bench.studies.study import GuidedScores
from splatcert_bench.studies.study_file import save_guided

Scales = Mapping[str, GuidedScale]
"""By name in a study: method and pool."""


class _Frozen(NamedTuple):
    """A scale of one view before labels."""

    field: str
    factor: float


@dataclass(frozen=True)
class _Row:
    """One view under one scale."""

    scores: NDArray[np.float64]
    mean: float
    ause: float
    spearman: float
    psnr: float
    ssim: float
    tenths: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    """Empty if no table pools this scale."""


def score_guided(model: Model) -> None:
    """Score the guided scale of every pool, around the render and the corrected centre."""
    bench, scene = model.bench, model.bench.load(model.scene)
    _, fitted = fitted_model(model, scene)
    fitted = replace(fitted, **members_of(model))
    scales = guided_scales(model, fitted, scene.training)
    rules = {name: scale.rule for name, scale in scales.items()}
    fixed = {
        view.name: {
            name: _Frozen(map_hash(one.field), one.factor)
            for name, one in _looks(scales, rules, fitted, view.camera)
        }
        for view in queries(scene)
    }

    before = len(scene.held_out.ledger.entries)
    labelled = scene.held_out.reveal("evaluation", scene.held_out.with_photo, by="bench guided")
    save_study_ledger(scene.held_out.ledger.entries, before, model.guided_ledger)
    counted = [f"{method} {MAIN_POOL}" for method in (GUIDED, CORRECTED) if model.is_main]
    compared = ENSEMBLE in bench.config.study.methods and fitted.members is not None
    ensemble = Ensemble(fitted) if compared else None
    rows: dict[str, dict[str, list[_Row]]] = {MODEL: {}, ENSEMBLE_MEAN: {}}
    for view in labelled:
        mean = None if ensemble is None else ensemble.moments(view.camera).mean
        for name, one in _looks(scales, rules, fitted, view.camera):
            if _Frozen(map_hash(one.field), one.factor) != fixed[view.name][name]:
                raise RuntimeError(f"the guided scale of {view.name!r} has changed before scoring")
            rows[MODEL].setdefault(name, []).append(_row(view, one, model, name in counted))
            if mean is not None and one_is_around_the_render(name):
                around = _row(view, replace(one, center=mean), model)
                rows[ENSEMBLE_MEAN].setdefault(name, []).append(around)
    pools = bench.config.pools()
    output_folder(bench.out / "studies")
    for centre, found in rows.items():
        known = {
            n: _scores(scales[n], pools[n.split()[1]][model.scene], r) for n, r in found.items()
        }
        if known:
            save_guided(known, bench.out / "studies" / f"{model.study_key(centre)}.guided.npz")
    cameras = timed_cameras(scene, bench.config.study.timed_views)
    first = next(iter(scales)).split()[1]  # guides differ by what they learned, not in their work
    timed = {method: scales[f"{method} {first}"] for method in (GUIDED, CORRECTED)}
    times = guided_latency(fitted, cameras, bench.config.study.repeats, timed)
    write_text_whole(model.guided_times, json.dumps(times, indent=1) + "\n")


def one_is_around_the_render(name: str) -> bool:
    """Whether a scale's centre may be replaced by another picture."""
    return name.startswith(f"{GUIDED} ")


def guided_scales(model: Model, fitted: Fitted, training: TrainingViews) -> Scales:
    """The guided scale of every pool that has this target, ready to look."""
    bench = model.bench
    album = Album.of(training, fitted.scene, fitted.backend)
    found = {}
    for pool, targets in bench.config.guide_pools().items():
        if model.scene in targets:
            guide = load_guide(bench.guide(pool, model.scene))
            plain = GuidedScale(guide, "render", album)
            found[f"{GUIDED} {pool}"] = plain
            found[f"{CORRECTED} {pool}"] = replace(plain, center="corrected")
    return found


def _judged(scales: Scales, fitted: Fitted, camera: Camera) -> Iterator[tuple[str, Query]]:
    """A camera under every scale, rendered once."""
    maps = render_maps(fitted.scene, camera, fitted.backend)
    prior = fitted.scene.field.prior
    for name, scale in scales.items():
        query = fitted.scene.described(camera, maps, scale.holes)
        yield name, scale.judged(query, maps, scale.made(camera, maps), prior)


def _looks(
    scales: Scales, rules: Mapping[str, Rule], fitted: Fitted, camera: Camera
) -> Iterator[tuple[str, ScaledView]]:
    for name, query in _judged(scales, fitted, camera):
        rule = rules[name]
        yield name, ScaledView.of(query, rule.factor_of(query), rule.lambda_b)


def _row(view: EvaluationView, one: ScaledView, model: Model, count: bool = False) -> _Row:
    """Compare one photograph with one picture and its scale, at the picture's resolution."""
    centre = one.center.cpu()
    size = centre.shape[0], centre.shape[1]
    label = Label.of(view, centre)
    scale = shrunk(one.factor * one.shape().cpu().double(), size).numpy()
    maps = view_maps(label.residual, scale, label.mask)
    ratios, residual, counted = maps.ratios(), label.counted(label.residual), label.counted(scale)
    return _Row(
        scores=view_scores(label.residual, scale, betas_of(model), label.mask),
        mean=float(counted.mean()),
        ause=ause(residual, counted),
        spearman=rank_correlation(residual, counted),
        psnr=label.psnr,
        ssim=ssim(centre, shrunk(view.image().cpu(), size)),
        tenths=count_tenths(ratios, tenths_of(maps.scale)),
        counts=count_ratios(ratios) if count else np.empty(0, dtype=np.uint32),
    )


def _scores(scale: GuidedScale, sources: tuple[str, ...], rows: Sequence[_Row]) -> GuidedScores:
    guide = scale.guide
    return GuidedScores(
        scores=np.array([row.scores for row in rows]),
        means=np.array([row.mean for row in rows]),
        ause=np.array([row.ause for row in rows]),
        spearman=np.array([row.spearman for row in rows]),
        psnr=np.array([row.psnr for row in rows]),
        ssim=np.array([row.ssim for row in rows]),
        tenths=np.array([row.tenths for row in rows]),
        sources=sources,
        power=guide.power,
        counts=np.array([row.counts for row in rows]),
    )
