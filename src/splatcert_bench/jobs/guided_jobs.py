# SPDX-License-Identifier: Apache-2.0
"""The jobs of the guided scale: a source per scene, guides per pool, scores per model."""

from __future__ import annotations

from splatcert.storage.schema import to_plain
from splatcert_bench.run.fingerprint import Task
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.studies.guides import collect_source, learn_guides
from splatcert_bench.studies.score_guided import score_guided
from splatcert_bench.studies.study_file import VERSION

SOURCE, RECIPE = 4, 3
"""Versions of what is collected from a scene, and of the recipe of guides."""


def guide_tasks(bench: Bench) -> list[Task]:
    """Sources and guides, in an order in which they can run."""
    pools = bench.config.guide_pools()
    wanted = {scene for rows in pools.values() for names in rows.values() for scene in names}
    sources = [model for model in bench.models() if model.is_main and model.scene in wanted]
    return [*map(_source, sources), *(_guides(bench, pool) for pool in pools)]


def _source(model: Model) -> Task:
    return Task(
        name=f"{model.label}/guide-source",
        stage="guide-source",
        function=collect_source,
        arguments=(model,),
        settings={"version": SOURCE, "views": model.bench.config.learn.views},
        outputs=(model.guide_source,),
        after=(f"{model.label}/certify",),
        passing=True,
    )


def _guides(bench: Bench, pool: str) -> Task:
    targets = bench.config.pools()[pool]
    sources = sorted({scene for names in targets.values() for scene in names})
    return Task(
        name=f"guide/{pool}",
        stage="guide",
        function=learn_guides,
        arguments=(bench, pool),
        settings={"version": RECIPE, "targets": to_plain(targets)},
        outputs=(bench.guide_ledger(pool), *(bench.guide(pool, target) for target in targets)),
        after=tuple(f"{scene}/guide-source" for scene in sources),
    )


def guided_scores(model: Model, centres: list[str], members: tuple[str, ...]) -> list[Task]:
    """The job that scores the guided scales of a model, if it is a target of any guide."""
    config, pools = model.bench.config, guides_of(model)
    if not pools:
        return []
    keys = [model.study_key(centre) for centre in centres]
    return [
        Task(
            name=f"{model.label}/guided",
            stage="guided",
            function=score_guided,
            arguments=(model,),
            settings={"version": VERSION, "betas": list(config.study.betas), "pools": pools},
            outputs=(
                *(model.bench.out / "studies" / f"{key}.guided.npz" for key in keys),
                model.guided_ledger,
                model.guided_times,
            ),
            dated=(model.guided_times,),
            after=(f"{model.label}/certify", *members, *(f"guide/{pool}" for pool in pools)),
        )
    ]


def guides_of(model: Model) -> list[str]:
    """The pools with a guide for a model's scene."""
    rows = model.bench.config.guide_pools()
    return [pool for pool, targets in rows.items() if model.scene in targets]
