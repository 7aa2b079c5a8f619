# SPDX-License-Identifier: Apache-2.0
"""Blender datasets: one `transforms_{train,val,test}.json` a split, photos with alpha."""

from __future__ import annotations

from pathlib import Path

from splatcert.scene.dataset import Dataset, Part, Shot
from splatcert.scene.json_file import TransformsError, load_json
from splatcert.scene.paths import listed
from splatcert.scene.transforms import SizeOf, read_frames

SPLITS = ("train", "test", "val")


def read_blender(root: Path, size_of: SizeOf) -> Dataset:
    """Training photos from `train`, held-out ones from `test`, or `val` where there is no test.

    `val` beside `test` is left unused: it belongs to neither side of the
    published comparisons.
    """
    by_split: dict[str, dict[str, Shot]] = {}
    usual = None
    for name in SPLITS:
        path = root / f"transforms_{name}.json"
        if path.is_file():
            frames = read_frames(load_json(path), size_of, usual)
            by_split[name] = {shot.name: shot for shot in frames}
            usual = usual or frames[0].lens.size
    train = by_split["train"]
    held_out = by_split.get("test") or by_split.get("val") or {}
    if both := sorted(train.keys() & held_out.keys()):
        raise TransformsError(
            f"{len(both)} photos are both for training and held out: {listed(both)}.\n"
            f"  In the transforms files of {root}.\n"
            "  A photo that was trained on says nothing about new views: remove it from one list."
        )
    shots: dict[str, Shot] = {**by_split.get("val", {}), **held_out, **train}
    split: dict[str, Part] = dict.fromkeys(shots, "unused")
    split.update(dict.fromkeys(held_out, "held out"))
    split.update(dict.fromkeys(train, "training"))
    return Dataset(
        format="blender",
        root=root,
        source=root / "transforms_train.json",
        shots=tuple(sorted(shots.values(), key=lambda shot: shot.name)),
        split=split,
    )
