# SPDX-License-Identifier: Apache-2.0
"""View factors of every pool of source scenes: learned, applied and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from splatcert.certificate.content.record import LabelUse
from splatcert.certificate.store import VIEWS
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.predictor import ViewPredictor, load_predictor
from splatcert.difficulty.rule import FactorRule, raw_predictions
from splatcert.difficulty.views_file import SceneViews
from splatcert.pipeline import learn
from splatcert.storage.whole import output_folder
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.run.settings import MAIN_POOL, OUT_OF_FOLD, PAPER, ridge_of
from splatcert_bench.studies.access import access_facts, open_sources, save_ledger
from splatcert_bench.studies.batch import ENSEMBLE_MEAN, MODEL
from splatcert_bench.studies.study import Prediction
from splatcert_bench.studies.study_file import load_audit, load_study, save_study


def learn_pool(bench: Bench, pool: str) -> None:
    """Learn one predictor per target of a pool, from views of its sources."""
    known: dict[str, SceneViews] = {}
    learned: dict[tuple[str, ...], ViewPredictor] = {}
    opened: dict[str, list[LabelUse]] = {}
    uses: dict[str, dict[str, list[LabelUse]]] = {}
    for target, sources in bench.config.pools()[pool].items():
        for scene in sources:
            if scene not in known:
                known[scene] = source_views(bench, pool, scene)
        if sources not in learned:
            config = bench.config.learning(pool)
            learned[sources] = learn([known[s] for s in sources], config, bench.field(pool))
            opened |= {
                scene: open_sources(bench, scene, known[scene], config.views)
                for scene in sources
                if scene not in opened
            }
        path = bench.predictor(pool, target)
        output_folder(path.parent, inside=bench.out)
        learned[sources].save(path)
        card = learned[sources].card
        uses[target] = {row["scene"]: opened[row["scene"]] for row in card["scenes"]}
    save_ledger(uses, bench.ledger(pool))


def source_views(bench: Bench, pool: str, scene: str) -> SceneViews:
    """The per-view numbers of a source scene, under its name in this bench."""
    model = bench.main(scene)
    path = model.certificate_at(ridge_of(pool)) / VIEWS
    if pool in (OUT_OF_FOLD, PAPER):
        path = model.fold_views
    return replace(SceneViews.load(path), scene=scene)


@dataclass(frozen=True, eq=False)
class Applied:
    """A predictor on the query batch of a target, before labels."""

    predictor: ViewPredictor
    rule: FactorRule
    ridge: float | None
    """Ridge of the field that it was learned on; None for that of `[field]`."""
    raw: NDArray[np.float64]
    factors: NDArray[np.float64]


def applied_predictors(
    model: Model, pools: Sequence[str], names: Sequence[str]
) -> dict[str, Applied]:
    """The predictors of these pools on a target's held-out views, from stored descriptors."""
    found = {}
    for ridge in model.ridges:
        views = SceneViews.load(model.certificate_at(ridge) / VIEWS)
        rows = views.held_out.descriptors[views.held_out.rows_of(names)]
        for pool in [pool for pool in pools if ridge_of(pool) == ridge]:
            predictor = load_predictor(model.bench.predictor(pool, model.scene))
            rule = FactorRule.freeze(predictor, views.training.descriptors, rows, "deployed")
            raw = raw_predictions(predictor, rule.units, rows)
            found[pool] = Applied(predictor, rule, ridge, raw, rule.factors(rows))
    return found


def add_predictions(
    model: Model, pools: Sequence[str], measured: Sequence[str], guided: bool
) -> None:
    """Add the view factors of these pools to a model's studies, in the unit that is deployed.

    Renders nothing. What the job `audit` measured is added for the pools in `measured`; labels
    used by it, and by the guided scale if it has been scored, are counted.
    """
    bench, names = model.bench, load_study(model.raw_study / f"{model.study_key(MODEL)}.npz").names
    applied = applied_predictors(model, pools, names)
    audited = load_audit(model.audit) if measured else {}
    unknown = np.empty((0, 0)), np.empty(0)
    predictions = {}
    for pool, one in applied.items():
        scores, means = audited.get(pool, unknown) if pool in measured else unknown
        predictions[pool] = Prediction(
            raw=one.raw,
            factors=one.factors,
            lambda_a=one.predictor.lambda_a,
            lambda_b=one.predictor.lambda_b,
            sources=bench.config.pools()[pool][model.scene],
            ridge=one.predictor.ridge,
            width=left_out_width(one.predictor),
            scores=scores,
            means=means,
        )
    facts = {}
    if MAIN_POOL in applied:
        used = [name for name, was in (("audit", measured), ("guided", guided)) if was]
        facts = access_facts(model, MAIN_POOL, used)
    _save(model, predictions, applied, facts)


def left_out_width(predictor: ViewPredictor) -> float:
    """Width relative to the constant scale on sources left out, at the chosen shrinkages.

    Unknown if it learned from training views, whose widths do not compare with new ones.
    """
    if predictor.card["views"] != "held-out":
        return float("nan")
    widths = predictor.card["relative_width"][f"lambda_b={predictor.lambda_b}"]
    return float(widths[LAMBDA_GRID.index(predictor.lambda_a)])


def _save(
    model: Model,
    predictions: Mapping[str, Prediction],
    applied: Mapping[str, Applied],
    facts: Mapping[str, float],
) -> None:
    """Write the complete studies next to their ratios and pictures."""
    folder = model.bench.out / "studies"
    output_folder(folder)
    hashes = {f"predictor {pool}": one.predictor.sha256 for pool, one in applied.items()}
    for path in [model.raw_study / f"{model.study_key(c)}.npz" for c in (MODEL, ENSEMBLE_MEAN)]:
        if not path.is_file():
            continue
        study = load_study(path)
        given = dict(predictions)
        if study.centre != MODEL:  # scores of the same factors differ around another centre
            given = {
                pool: replace(one, scores=np.empty((0, 0)), means=np.empty(0))
                for pool, one in predictions.items()
            }
        study = replace(
            study,
            predictions=given,
            hashes={**study.hashes, **hashes},
            facts={**study.facts, **facts},
        )
        save_study(study, folder / path.name)
