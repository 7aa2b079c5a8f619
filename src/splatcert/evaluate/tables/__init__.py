# SPDX-License-Identifier: Apache-2.0
"""Each table of the evaluation is one function from a bench; here they are in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from splatcert.evaluate.bench_studies import BenchStudies
from splatcert.evaluate.table import Table
from splatcert.evaluate.tables import cost, coverage, factors, protocol, theory, transfer, width

TABLES: Mapping[str, Callable[[BenchStudies], Table]] = {
    "manifest": protocol.manifest,
    "validity": coverage.validity,
    "curve": coverage.curve,
    "panel-a": width.panel_a,
    "panel-a-all": width.panel_a_all,
    "paired": width.paired,
    "per-scene-main": width.per_scene_main,
    "ablation": factors.ablation,
    "ranking": factors.ranking,
    "norm": factors.normalisation,
    "transfer": transfer.transfer,
    "per-scene": transfer.per_scene,
    "centre": transfer.centre,
    "backbone": transfer.backbone,
    "targets": transfer.targets,
    "sensitivity": protocol.sensitivity,
    "calibration": protocol.calibration_sizes,
    "audit": theory.identities,
    "decomposition": theory.decomposition,
    "visibility": cost.visibility,
    "packing": cost.packing,
    "access": protocol.access,
}
"""By name, in the order of the page: what depends on the stored arrays alone."""

TIMES: Mapping[str, Callable[[BenchStudies], Table]] = {
    "time-latency": cost.latency,
    "time-training": cost.training,
}
"""What another run or another machine would give otherwise."""
