# SPDX-License-Identifier: Apache-2.0
"""Who used which views: counted from the ledgers of every job that opens labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from splatcert.certificate.content.record import LabelUse, Record
from splatcert.certificate.store import VIEWS, read_content
from splatcert.conformal.splits import calibration_size, draw_splits
from splatcert.difficulty.views_file import SceneViews, Views
from splatcert.scene.roles import LabelLedger
from splatcert.storage.schema import from_plain, read_json, to_plain
from splatcert.storage.whole import write_text_whole
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.synthetic.capture import make_capture

Uses = Mapping[str, Sequence[LabelUse]]
"""Label uses by scene."""


def open_sources(bench: Bench, scene: str, table: SceneViews, views: Views) -> list[LabelUse]:
    """Enter the views of a source scene that a predictor is about to learn from."""
    names = table.views(views).names
    if views == "held-out":
        if bench.entry(scene).made is not None and not bench.capture(scene).exists():
            make_capture(bench, scene)  # an earlier instalment made it, on another machine
        held_out = bench.load(scene).held_out
        held_out.reveal("source", names, by="bench learn")
        return list(held_out.ledger.entries)
    ledger = LabelLedger()  # training photographs are nobody's secret, but they are counted
    return [ledger.record("source", "bench learn", names)]


def save_ledger(uses: Mapping[str, Uses], path: Path) -> None:
    """Write the labels that the predictor of each target learned from."""
    plain = {
        target: {scene: [to_plain(use) for use in known] for scene, known in learned.items()}
        for target, learned in uses.items()
    }
    write_text_whole(path, json.dumps(plain) + "\n")


def load_ledger(path: Path, target: str) -> dict[str, list[LabelUse]]:
    """The labels that the predictor of a target learned from, by scene."""
    plain = read_json(path, "ledger of labels")[target]
    return {scene: [from_plain(LabelUse, use) for use in uses] for scene, uses in plain.items()}


def save_study_ledger(entries: Sequence[LabelUse], fixed: int, path: Path) -> None:
    """Write the labels that a study used, and how many uses came before its scales were fixed."""
    plain = {"fixed": fixed, "entries": [to_plain(use) for use in entries]}
    write_text_whole(path, json.dumps(plain) + "\n")


def load_study_ledger(path: Path) -> tuple[list[LabelUse], int]:
    """Read what `save_study_ledger` wrote."""
    plain = read_json(path, "ledger of labels")
    return [from_plain(LabelUse, use) for use in plain["entries"]], int(plain["fixed"])


def access_facts(model: Model, pool: str, used: Sequence[str]) -> dict[str, float]:
    """Views of each group that supplied images, poses and features, or informed a choice.

    Counted from the ledgers of certify, of the target's predictor in this pool, of the study and
    of the jobs in `used`, "audit" and "guided", the latter with its guide. A test label counts as
    supplied if anybody had it before every scale was fixed.
    """
    record = read_content(model.certificate)[1]
    views = SceneViews.load(model.certificate / VIEWS)
    ledgers = {"audit": model.audit_ledger, "guided": model.guided_ledger}
    learned = load_ledger(model.bench.ledger(pool), model.scene)
    if "guided" in used:
        for scene, uses in load_ledger(model.bench.guide_ledger(pool), model.scene).items():
            learned.setdefault(scene, []).extend(uses)
    paths = [model.study_ledger, *(ledgers[name] for name in used)]
    studied = joined([load_study_ledger(path) for path in paths])
    return count_access(model.scene, record, views, learned, studied)


def joined(ledgers: Sequence[tuple[Sequence[LabelUse], int]]) -> tuple[list[LabelUse], int]:
    """Ledgers of several jobs as one: what each used before its scales were fixed comes first."""
    early = [use for entries, fixed in ledgers for use in entries[:fixed]]
    return [*early, *(use for entries, fixed in ledgers for use in entries[fixed:])], len(early)


def count_access(
    target: str,
    record: Record,
    views: SceneViews,
    learned: Uses,
    studied: tuple[Sequence[LabelUse], int],
) -> dict[str, float]:
    """The same from ledgers: `studied` is the study's, and its entries before scales were fixed."""
    entries, fixed = studied
    held_out = [view.name for view in record.calibration]
    split = draw_splits(len(held_out), calibration_size(len(held_out)), 1)[0]
    calibrating = {name for name, chosen in zip(held_out, split, strict=True) if chosen}
    testing = {*held_out} - calibrating
    chose = _views(learned.get(target, ()))
    early = _views(record.labels.ledger[: record.labels.handed_out_before])
    early |= _views(entries[:fixed]) | chose
    opened = _views(entries[fixed:])
    described = {*views.held_out.names}
    used = {(scene, name) for scene in learned for name in _views(learned[scene])}
    training = {view.name for view in record.training}
    rows = {
        "training": (
            {view.name for view in record.training if view.image},
            {view.name for view in record.training if view.pose},
            {*views.training.names},
            training & chose,
        ),
        "source": (used, used, used, used),
        "calibration": (
            calibrating & opened,
            calibrating,
            calibrating & described,
            calibrating & chose,
        ),
        "test": (
            testing & early,
            testing,
            testing & described,
            testing & chose,
        ),
    }
    kinds = ("image", "pose", "features", "selection")
    return {
        f"access.{group}.{kind}": float(len(names))
        for group, counted in rows.items()
        for kind, names in zip(kinds, counted, strict=True)
    }


def _views(entries: Sequence[LabelUse]) -> set[str]:
    return {name for entry in entries for name in entry.views}
