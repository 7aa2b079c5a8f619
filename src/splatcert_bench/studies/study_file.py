# SPDX-License-Identifier: Apache-2.0
"""`study.npz`: a study as a NumPy archive without Python objects.

Its header is JSON with a schema version and the hashes of what the study was computed from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.levels import parse_level
from splatcert.conformal.maps import TENTHS
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.storage.arrays import UNUSABLE, Arrays, read_archive, unusable, write_archive
from splatcert_bench.studies.counts import BINS, MAX_BYTES, TENTH_EDGES
from splatcert_bench.studies.study import (
    MOST,
    GuidedScores,
    MapScores,
    Prediction,
    Reading,
    Study,
    StudyError,
    arrays_of,
)

FORMAT, GUIDED, AUDIT = "splatcert study", "splatcert guided scales", "splatcert audit"
VERSION = 3
GUIDED_ARRAYS = ("scores", "means", "ause", "spearman", "psnr", "ssim", "tenths", "counts")


def save_study(study: Study, path: Path) -> None:
    """Write the archive, whole or not at all."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "scene": study.scene,
        "family": study.family,
        "backbone": study.backbone,
        "centre": study.centre,
        "names": list(study.names),
        "betas": [str(beta) for beta in study.betas],
        "lambdas": [str(value) for value in LAMBDA_GRID],
        "maps": {n: {"unit": m.unit, "reading": m.reading} for n, m in study.maps.items()},
        "predictions": {n: _recipe(p) for n, p in study.predictions.items()},
        "facts": dict(study.facts),
        "settings": dict(study.settings),
        "hashes": dict(study.hashes),
    }
    arrays = {name: array for name, _, array in study.arrays()}
    text = json.dumps(header, sort_keys=True, ensure_ascii=False)
    write_archive(path, {"header": np.array(text), **arrays}, compressed=True)


def load_study(path: Path) -> Study:
    """Read an archive that `save_study` wrote; no Python object is ever loaded."""
    arrays = read_archive(path, "a study")
    try:
        return _study(json.loads(str(arrays["header"])), arrays)
    except UNUSABLE as error:
        raise unusable(path, "a study", error) from error


def save_guided(guided: Mapping[str, GuidedScores], path: Path) -> None:
    """Write the guided scales of a study next to it."""
    known = {n: {"sources": list(one.sources), "power": one.power} for n, one in guided.items()}
    header = json.dumps({"format": GUIDED, "version": VERSION, "scales": known}, sort_keys=True)
    arrays = {
        f"{name}.{entry}": getattr(one, entry)
        for name, one in sorted(guided.items())
        for entry in GUIDED_ARRAYS
    }
    write_archive(path, {"header": np.array(header), **arrays}, compressed=True)


def load_guided(path: Path) -> dict[str, GuidedScores]:
    """Read an archive that `save_guided` wrote."""
    arrays = read_archive(path, "guided scales", MAX_BYTES)
    try:
        header = json.loads(str(arrays["header"]))
        if (header["format"], header["version"]) != (GUIDED, VERSION):
            raise StudyError(f"it is {str(header['format'])[:40]!r}")
        found = {}
        for name, plain in header["scales"].items():
            known = {entry: arrays[f"{name}.{entry}"] for entry in GUIDED_ARRAYS}
            views = len(known["means"])
            for entry, array in known.items():
                shape = {
                    "scores": array.shape[1:2],
                    "tenths": (TENTHS, len(TENTH_EDGES)),
                    "counts": (BINS,),
                }
                expected = (views, *shape.get(entry, ()))
                if entry == "counts" and not array.size:
                    continue
                if array.shape != expected or not np.isfinite(array).all():
                    raise StudyError(f"{entry} of {name[:40]!r} is {array.shape}")
            sources, power = _words(plain["sources"]), float(plain["power"])
            found[str(name)] = GuidedScores(**known, sources=sources, power=power)
        return found
    except UNUSABLE as error:
        raise unusable(path, "guided scales", error) from error


Measured = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Scores [V, betas] and means [V] of a deployed scale, measured on its maps."""


def save_audit(measured: Mapping[str, Measured], path: Path) -> None:
    """Write what was measured on the deployed scales, by pool."""
    arrays = {
        f"{pool}.{entry}": array
        for pool, pair in sorted(measured.items())
        for entry, array in zip(("scores", "means"), pair, strict=True)
    }
    head = {"format": np.array(f"{AUDIT} {VERSION}"), "pools": np.array(sorted(measured))}
    write_archive(path, head | arrays, compressed=True)


def load_audit(path: Path) -> dict[str, Measured]:
    """Read an archive that `save_audit` wrote; a study checks the arrays."""
    arrays = read_archive(path, "an audit")
    try:
        if str(arrays["format"]) != f"{AUDIT} {VERSION}":
            raise StudyError(f"it is {str(arrays['format'])[:40]!r}")
        pools = [str(pool) for pool in arrays["pools"]]
        return {pool: (arrays[f"{pool}.scores"], arrays[f"{pool}.means"]) for pool in pools}
    except UNUSABLE as error:
        raise unusable(path, "an audit", error) from error


def _recipe(prediction: Prediction) -> dict[str, Any]:
    return {
        "lambda_a": str(prediction.lambda_a),
        "lambda_b": str(prediction.lambda_b),
        "sources": list(prediction.sources),
        "ridge": str(prediction.ridge),
        "width": str(prediction.width),
    }


def _study(header: dict[str, Any], arrays: Arrays) -> Study:
    if (header["format"], header["version"]) != (FORMAT, VERSION):
        found = f"{header['format']} {header['version']}"
        raise StudyError(f"it is {found!r}, this version reads '{FORMAT} {VERSION}'")
    if header["lambdas"] != [str(value) for value in LAMBDA_GRID]:
        raise StudyError(f"its shrinkages are not {', '.join(map(str, LAMBDA_GRID))}")
    maps = {
        name: MapScores(
            **{entry: arrays[f"map.{name}.{entry}"] for entry in arrays_of(MapScores)},
            unit=_unit(plain["unit"]),
            reading=_reading(plain["reading"]),
        )
        for name, plain in header["maps"].items()
    }
    predictions = {
        name: Prediction(
            **{entry: arrays[f"prediction.{name}.{entry}"] for entry in arrays_of(Prediction)},
            lambda_a=_shrinkage(plain["lambda_a"]),
            lambda_b=_shrinkage(plain["lambda_b"]),
            sources=_words(plain["sources"]),
            ridge=float(plain["ridge"]),
            width=float(plain["width"]),
        )
        for name, plain in header["predictions"].items()
    }
    return Study(
        scene=str(header["scene"]),
        family=str(header["family"]),
        backbone=str(header["backbone"]),
        centre=str(header["centre"]),
        names=_words(header["names"]),
        betas=tuple(parse_level(text, "beta") for text in header["betas"]),
        pixels=arrays["pixels"],
        psnr=arrays["psnr"],
        field_means=arrays["field_means"],
        maps=maps,
        predictions=predictions,
        facts={name: float(value) for name, value in header["facts"].items()},
        settings={name: str(value) for name, value in header["settings"].items()},
        hashes={name: str(value) for name, value in header["hashes"].items()},
        centres=arrays.get("centres", np.empty((0, 3))),
        strangeness=arrays.get("strangeness", np.empty(0)),
    )


def _unit(value: Any) -> float:
    unit = float(value)
    if not 1 / MOST <= unit <= MOST:
        raise StudyError(f"a unit must be {1 / MOST:g} to {MOST:g}, got {unit:g}")
    return unit


def _reading(value: Any) -> Reading:
    if value not in get_args(Reading):
        raise StudyError(f"there is no reading {str(value)[:40]!r}")
    return value


def _shrinkage(text: str) -> Fraction:
    """A value of the grid; other texts, such as 1e999999999, are never evaluated."""
    known = {str(value): value for value in LAMBDA_GRID}
    if text not in known:
        raise StudyError(f"a shrinkage must be one of {', '.join(known)}")
    return known[text]


def _words(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise StudyError("expected a list of names")
    return tuple(values)
