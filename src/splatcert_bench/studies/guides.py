# SPDX-License-Identifier: Apache-2.0
"""Guides of the guided scale: pixels of every scene collected once, one guide per target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from splatcert.camera import Camera
from splatcert.capture import Capture
from splatcert.certificate.content.record import LabelUse
from splatcert.difficulty.guided.guide import Guide
from splatcert.difficulty.views_file import Views
from splatcert.scales.guide_learning import fit_guide, learn_guide
from splatcert.scales.guide_sources import GuideSource, GuideViews, guide_source
from splatcert.storage.arrays import UNUSABLE, Arrays, read_archive, unusable, write_archive
from splatcert.storage.schema import from_plain, to_plain
from splatcert.storage.whole import output_folder
from splatcert.witnesses.album import Album
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.studies.access import save_ledger
from splatcert_bench.studies.make_study import fitted_model

TENSORS = ("maps", "difference", "drift", "hole")
KINDS: dict[str, Views] = {name: name for name in get_args(Views)}
MAX_BYTES = 1 << 30
"""Largest archive that is read; a view takes 80 kilobytes."""


def collect_source(model: Model) -> None:
    """Store what guides of other scenes learn from this one.

    Held-out photographs are opened only if predictors learn from them too.
    """
    config, scene = model.bench.config, model.bench.load(model.scene)
    _, fitted = fitted_model(model, scene)
    album = Album.of(scene.training, fitted.scene, fitted.backend)
    capture = Capture(
        scene=scene,
        splats=fitted.scene.splats,
        unseen_by="model",
        background=config.train.background,
    )
    side = capture.training_side(config.field, fitted.backend, ())
    labelled, held_out = (), scene.held_out
    if config.learn.views == "held-out":
        labelled = held_out.reveal("source", held_out.with_photo, by="bench guide")
    else:
        held_out.ledger.record("source", "bench guide", scene.training.names)
    source = guide_source(model.scene, side, fitted.scene, album, labelled)
    save_source(source, held_out.ledger.entries, model.guide_source)


def learn_guides(bench: Bench, pool: str) -> None:
    """Learn one guide per target of a pool, from its sources alone.

    Two scenes left out give one guide, whichever of them is the target, so fits are shared.
    """
    fit = lru_cache(maxsize=None)(fit_guide)
    known: dict[str, GuideSource] = {}
    opened: dict[str, list[LabelUse]] = {}
    learned: dict[tuple[str, ...], Guide] = {}
    uses: dict[str, dict[str, list[LabelUse]]] = {}
    for target, sources in bench.config.pools()[pool].items():
        for scene in sources:
            if scene not in known:
                main = bench.main(scene)
                known[scene], opened[scene] = load_source(main.guide_source)
        if sources not in learned:
            learned[sources] = learn_guide([known[name] for name in sources], fit)
        path = bench.guide(pool, target)
        output_folder(path.parent, inside=bench.out)
        learned[sources].save(path)
        uses[target] = {scene: opened[scene] for scene in sources}
    save_ledger(uses, bench.guide_ledger(pool))


def save_source(source: GuideSource, uses: Sequence[LabelUse], path: Path) -> None:
    """Write a source, and the labels it used, as an archive without Python objects."""
    marks = json.dumps(source.marks, sort_keys=True)
    cameras = [json.dumps(camera.to_plain()) for camera in source.views.cameras]
    arrays: dict[str, Any] = {
        "name": np.array(source.name),
        "kind": np.array(source.kind),
        "marks": np.array(marks),
        "uses": np.array(json.dumps([to_plain(use) for use in uses])),
        "cameras": np.array(cameras),
        "field_means": source.views.field_means,
    }
    arrays |= {name: getattr(source.views, name).numpy() for name in TENSORS}
    write_archive(path, arrays)


def load_source(path: Path) -> tuple[GuideSource, list[LabelUse]]:
    """Read an archive that `save_source` wrote."""
    arrays = read_archive(path, "a source of guides", MAX_BYTES)
    try:
        kind = KINDS[str(arrays["kind"])]
        marks = json.loads(str(arrays["marks"]))
        uses = [from_plain(LabelUse, use) for use in json.loads(str(arrays["uses"]))]
        return GuideSource(str(arrays["name"]), kind, _views(arrays), marks), uses
    except UNUSABLE as error:
        raise unusable(path, "a source of guides", error) from error


def _views(arrays: Arrays) -> GuideViews:
    cameras = [Camera.from_plain(**json.loads(str(text))) for text in arrays["cameras"]]
    tensors = {name: torch.from_numpy(arrays[name]) for name in TENSORS}
    return GuideViews(tuple(cameras), **tensors, field_means=arrays["field_means"])
