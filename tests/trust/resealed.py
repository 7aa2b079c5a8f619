# SPDX-License-Identifier: Apache-2.0
"""Certificates that were changed and sealed again: anybody can compute the hashes in them.

Their readers find nothing wrong, so the commands themselves must bear what they say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from mutations import json_value
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from splatcert.certificate.content.record import Record
from splatcert.certificate.field_file import KEY
from splatcert.certificate.hashes import seal_of
from splatcert.certificate.store import field_inputs
from splatcert.storage.schema import from_plain
from splatcert.storage.whole import file_hash

MAIN, FIELD, VIEWS = "certificate.json", "field.safetensors", "views.npz"
Spoil = Callable[[Path], object]
Content = dict[str, Any]

LONG_NAME, SCRIPT = "x" * 5000, "<script>alert(1)</script>"
SEEDS = 12


def seal_again(it: Path) -> None:
    """Write the hashes that now fit, where the content still allows it."""
    content = json.loads((it / MAIN).read_text())
    try:
        record = from_plain(Record, content)
        seal_of(content)
    except (ValueError, TypeError):  # refused whatever its hashes are
        return
    inputs = field_inputs(record.model, record.training, record.renderer, record.config.field)
    with safe_open(it / FIELD, framework="np") as file:
        facts = json.loads(file.metadata()[KEY])
    text = json.dumps(facts | {"inputs": inputs}, sort_keys=True)
    save_file(load_file(it / FIELD), it / FIELD, metadata={KEY: text})
    content["files"] = {name: file_hash(it / name) for name in (FIELD, VIEWS)}
    content["seal"] = seal_of(content)
    (it / MAIN).write_text(json.dumps(content))


def changed(change: Callable[[Content], object]) -> Spoil:
    """A changed main file."""

    def spoil(it: Path) -> None:
        content = json.loads((it / MAIN).read_text())
        change(content)
        (it / MAIN).write_text(json.dumps(content))
        seal_again(it)

    return spoil


def entry(place: str, value: Any) -> Spoil:
    """One entry, given by its place such as `scene.extent`, has another value."""
    *path, last = place.split(".")

    def change(content: Content) -> None:
        for key in path:
            content = content[int(key)] if isinstance(content, list) else content[key]
        content[int(last) if isinstance(content, list) else last] = value

    return changed(change)


def every(role: str, **entries: Any) -> Spoil:
    """All views of a role have these entries."""
    return changed(lambda content: [view.update(entries) for view in content[role]])


def cameras(role: str, change: Callable[[int, Content], object]) -> Spoil:
    """The cameras of all views of a role are changed, told their number."""
    return changed(
        lambda content: [change(k, view["camera"]) for k, view in enumerate(content[role])]
    )


def numbers(change: Callable[[dict[str, np.ndarray]], object]) -> Spoil:
    """Other per-view numbers."""

    def spoil(it: Path) -> None:
        with np.load(it / VIEWS) as found:
            arrays = dict(found)
        change(arrays)
        with (it / VIEWS).open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        seal_again(it)

    return spoil


def tensors(change: Callable[[dict[str, np.ndarray]], object]) -> Spoil:
    """Another field."""

    def spoil(it: Path) -> None:
        with safe_open(it / FIELD, framework="np") as file:
            facts = file.metadata()
        arrays = load_file(it / FIELD)
        change(arrays)
        save_file(arrays, it / FIELD, metadata=facts)
        seal_again(it)

    return spoil


def _random_value(name: str, it: Path) -> None:
    path = it / MAIN
    path.write_bytes(json_value(path.read_bytes(), Random(name)))
    seal_again(it)


def _moved(k: int, camera: Content, far: float) -> None:
    pose = list(camera["world_to_camera"])
    pose[3], pose[7], pose[11] = far * (k + 1), -far * k, far
    camera["world_to_camera"] = pose


def _twice(rows: list[Content]) -> None:
    rows[1]["name"] = rows[0]["name"]


RESEALED: dict[str, Spoil] = {
    "extent-none": entry("scene.extent", 0.0),
    "extent-nan": entry("scene.extent", "nan"),
    "extent-huge": entry("scene.extent", 1e300),
    "scene-script": entry("scene.name", SCRIPT),
    "scene-control": entry("scene.name", "\x1b[2J\n\n\n\n\n\nx"),
    "scene-long": entry("scene.name", LONG_NAME),
    "sizes-odd": entry("scene.sizes", {SCRIPT: -5, "": 2**62}),
    "images-outside": entry("scene.loaded.images", "../../../etc"),
    "resolution-odd": entry("scene.loaded.resolution", "1/0"),
    "masks-outside": entry("scene.loaded.masks", "/etc"),
    "sparse-outside": entry("scene.loaded.sparse", "../../../etc"),
    "sparse-control": entry("scene.loaded.sparse", "\x1b[2J\n\n\n\n\n\nx"),
    "format-odd": entry("scene.format", "magic"),
    "created-script": entry("created", SCRIPT),
    "threshold-none": entry("guarantee.threshold", 0.0),
    "threshold-infinite": entry("guarantee.threshold", "inf"),
    "threshold-nan": entry("guarantee.threshold", "nan"),
    "threshold-huge": entry("guarantee.threshold", 1e308),
    "alpha-other": entry("guarantee.alpha", "1/3"),
    "beta-other": entry("guarantee.beta", "7/23"),
    "alpha-tiny": entry("guarantee.alpha", "1/" + "9" * 90),
    "config-alpha": entry("config.alpha", "1e999999"),
    "config-splits": entry("config.splits", 10**12),
    "config-folds": entry("config.field.folds", 10**9),
    "lambda-beyond": entry("scale.lambda_b", "7/2"),
    "reference-none": entry("scale.reference", 0.0),
    "reference-nan": entry("scale.reference", "nan"),
    "features-gone": entry("scale.features", []),
    "stds-none": changed(lambda c: c["scale"].update(feature_stds=[0.0] * 24)),
    "stds-short": entry("scale.feature_stds", [1.0]),
    "means-nan": changed(lambda c: c["scale"].update(feature_means=["nan"] * 24)),
    "predictor-empty": entry("scale.predictor", {}),
    "predictor-deep": entry("scale.predictor", {"a": {"b": [[[[1]]]]}}),
    "unit-batch": entry("scale.unit", "batch"),
    "gaussians-minus": entry("model.gaussians", -1),
    "gaussians-huge": entry("model.gaussians", 2**62),
    "backend-reference": entry("renderer.backend", "reference"),
    "backend-cuda": entry("renderer.backend", "cuda"),
    "background-bright": entry("renderer.background", [1e30, -1e30, "nan"]),
    "psnr-nan": entry("field.training_psnr", "nan"),
    "steps-minus": entry("field.steps", -3),
    "strangeness-nan": entry("strangeness.limit", "nan"),
    "strangeness-huge": entry("strangeness.limit", 1e30),
    "strangeness-none": entry("strangeness", None),
    "strangeness-units": entry("strangeness.units.units", [0.0] * 7),
    "bounds-nan": entry("scale.bounds", ["nan", "nan"]),
    "bounds-swapped": entry("scale.bounds", [5.0, 1.0]),
    "evenness-nan": changed(
        lambda c: c.update(
            evenness={k: "nan" if isinstance(v, float) else v for k, v in c["evenness"].items()}
        )
    ),
    "no-splits": entry("splits", None),
    "ledger-before": entry("labels.handed_out_before", 10**9),
    "ledger-minus": entry("labels.handed_out_before", -4),
    "ledger-script": changed(
        lambda c: c["labels"].update(
            ledger=[{"order": 0, "purpose": "source", "by": SCRIPT, "views": [SCRIPT] * 400}]
        )
    ),
    "names-other": changed(
        lambda c: [v.update(name=f"other-{k}") for k, v in enumerate(c["calibration"])]
    ),
    "training-names-other": changed(
        lambda c: [v.update(name=f"other-{k}") for k, v in enumerate(c["training"])]
    ),
    "names-twice": changed(lambda c: _twice(c["calibration"])),
    "names-both": changed(lambda c: c["calibration"][0].update(name=c["training"][0]["name"])),
    "one-training-view": changed(lambda c: c.update(training=c["training"][:1])),
    "one-calibration-view": changed(lambda c: c.update(calibration=c["calibration"][:1])),
    "many-unlabelled": changed(
        lambda c: c.update(
            unlabelled=[
                {
                    k: v
                    for k, v in c["calibration"][0].items()
                    if k not in ("image", "file", "score")
                }
                | {"name": f"u{n}"}
                for n in range(300)
            ]
        )
    ),
    "factor-tiny": every("calibration", factor=1e-300),
    "factor-huge": every("calibration", factor=1e300),
    "score-infinite": every("calibration", score="inf"),
    "score-none": every("calibration", score=0.0),
    "cameras-one-place": cameras("training", lambda k, camera: _moved(0, camera, 0.0)),
    "cameras-far": cameras("training", lambda k, camera: _moved(k, camera, 1e14)),
    "cameras-beyond": cameras("training", lambda k, camera: _moved(k, camera, 1e300)),
    "cameras-thin": cameras("training", lambda k, camera: camera.update(width=1, height=4000)),
    "cameras-wide": cameras("calibration", lambda k, camera: camera.update(width=65536, height=1)),
    "cameras-large": cameras("calibration", lambda k, c: c.update(width=65536, height=65536)),
    "cameras-narrow": cameras("training", lambda k, camera: camera.update(fx=1e12, fy=1e12)),
    "cameras-fisheye": cameras("training", lambda k, camera: camera.update(fx=1e-9, fy=1e-9)),
    "views-fewer": numbers(
        lambda a: a.update({k: v[:-3] for k, v in a.items() if k.startswith("held_out_")})
    ),
    "views-nan": numbers(lambda a: a.update(held_out_psnr=a["held_out_psnr"] * np.nan)),
    "views-no-field": numbers(
        lambda a: a.update(held_out_field_means=a["held_out_field_means"] * 0)
    ),
    "views-field-nan": numbers(
        lambda a: a.update(held_out_field_means=a["held_out_field_means"] * np.nan)
    ),
    "views-oracle-infinite": numbers(
        lambda a: a.update(held_out_oracle=np.full_like(a["held_out_oracle"], np.inf))
    ),
    "views-oracle-none": numbers(lambda a: a.update(held_out_oracle=a["held_out_oracle"] * 0)),
    "views-scene-script": numbers(lambda a: a.update(scene=np.array(SCRIPT))),
    "views-betas": numbers(lambda a: a.update(betas=np.array(["1/3"] * len(a["betas"])))),
    "field-huge": tensors(lambda t: t["coefficients"].fill(3e38)),
    "field-minus": tensors(lambda t: t["coefficients"].fill(-1.0)),
    "field-none": tensors(lambda t: t["coefficients"].fill(0.0)),
    "support-minus": tensors(lambda t: t["support"].fill(-1.0)),
    "support-huge": tensors(lambda t: t["support"].fill(3e38)),
    **{f"value-{k}": partial(_random_value, f"value-{k}") for k in range(SEEDS)},
}
