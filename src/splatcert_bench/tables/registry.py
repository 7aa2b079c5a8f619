# SPDX-License-Identifier: Apache-2.0
"""Every table of the evaluation by name, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.tables import chosen, cost, coverage, factors, protocol, shift, transfer, width
from splatcert_bench.tables.table import Table

TABLES: Mapping[str, Callable[[BenchStudies], Table]] = {
    "manifest": protocol.manifest,
    "validity": coverage.validity,
    "curve": coverage.curve,
    "shift": shift.shift,
    "flags": shift.flags,
    "tenths": shift.tenths,
    "panel-a": width.panel_a,
    "panel-a-all": width.panel_a_all,
    "panel-full": width.panel_full,
    "paired-nested": width.paired_nested,
    "paired": width.paired,
    "paired-guided": width.paired_guided,
    "per-scene-main": width.per_scene_main,
    "ablation": factors.ablation,
    "pictures": chosen.pictures,
    "ranking": factors.ranking,
    "norm": factors.normalisation,
    "choices": chosen.choices,
    "transfer": transfer.transfer,
    "per-scene": transfer.per_scene,
    "centre": transfer.centre,
    "backbone": transfer.backbone,
    "variants": protocol.variants,
    "targets": transfer.targets,
    "sensitivity": protocol.sensitivity,
    "calibration": protocol.calibration_sizes,
    "calibration-few": protocol.few_calibration_views,
    "audit": factors.identities,
    "decomposition": factors.decomposition,
    "visibility": cost.visibility,
    "packing": cost.packing,
    "access": protocol.access,
}
"""By name, in the order of the page: tables that depend only on stored arrays."""
TIMES: Mapping[str, Callable[[BenchStudies], Table]] = {
    "time-latency": cost.latency,
    "time-training": cost.training,
}
"""Tables that depend on the run and the machine."""
