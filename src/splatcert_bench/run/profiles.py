# SPDX-License-Identifier: Apache-2.0
"""Profiles of a bench, and the TOML file that chooses one and overrides its values."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatcert.config import FieldConfig, LearnConfig, TrainConfig
from splatcert.storage.schema import PlainError, from_plain, to_plain
from splatcert.storage.whole import require_regular_file
from splatcert_bench.run.entries import BenchError, PoolEntry, SceneEntry, VariantEntry
from splatcert_bench.run.settings import (
    BenchConfig,
    CaptureSettings,
    EvaluateSettings,
    MemberSettings,
    StudySettings,
)

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same parser, before it entered the standard library
    import tomli as tomllib  # type: ignore[import-not-found]
MAX_BYTES = 1 << 20
MOST_DOTS = 1_000
MADE_SCENES = (
    SceneEntry(name="made-1", family="one", made=1, densities=("vanilla",), full_members=2),
    SceneEntry(name="made-2", family="one", made=2),
    SceneEntry(name="made-3", family="two", made=3, full_members=2),
)
"""Scenes of the smoke profile. Default if the file lists none."""
ENTRIES = {"scene": SceneEntry, "pool": PoolEntry, "variant": VariantEntry}
PROFILES: dict[str, BenchConfig] = {
    "smoke": BenchConfig(
        profile="smoke",
        scene=MADE_SCENES,
        capture=CaptureSettings(resolution=0, holdout=3),
        train=TrainConfig(iterations=150, sh_degree=1, max_gaussians=1_200),
        members=MemberSettings(count=2, resolution=32, iterations=60, folds=2),
        field=FieldConfig(max_steps=4),
        learn=LearnConfig(views="held-out", splits=20),
        study=StudySettings(ridges=(0.01,), timed_views=1, repeats=1),
        evaluate=EvaluateSettings(splits=20, native_splits=10, bootstrap=100),
    ),
    "cpu": BenchConfig(profile="cpu", scene=MADE_SCENES),
    "paper": BenchConfig(
        profile="paper",
        scene=MADE_SCENES[1:2],
        capture=CaptureSettings(resolution=1_600),
        train=TrainConfig(iterations=30_000, recipe="published", max_gaussians=6_000_000),
        members=MemberSettings(
            count=10,
            resolution=0,
            iterations=30_000,
            max_gaussians=0,
            folds=5,
        ),
        study=StudySettings(repeats=50),
    ),
}


def read_config(path: Path) -> BenchConfig:
    """Read the bench that a TOML file describes; unknown keys are refused by name."""
    content = _read(path)
    name = content.pop("profile", None)
    if not isinstance(name, str) or name not in PROFILES:
        raise BenchError(
            f"{path}: profile must be one of {', '.join(PROFILES)}, got {name!r}.\n"
            '  Begin the file with a line such as profile = "cpu".'
        )
    if "scene" not in content and name != "smoke":
        raise BenchError(f"{path} lists no scenes.\n  Add [[scene]] with name, family and path.")
    try:
        return from_plain(BenchConfig, _filled(to_plain(PROFILES[name]), content))
    except (PlainError, BenchError) as error:
        raise BenchError(
            f"{path}: {error}.\n  docs/bench.md lists every key and its meaning."
        ) from None


def _filled(default: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The file's values, completed by those of the profile."""
    result = dict(default)
    for key, value in given.items():
        entry = ENTRIES.get(key)
        if entry is not None and isinstance(value, list):
            blank = {
                spot.name: to_plain(spot.default)
                for spot in dataclasses.fields(entry)
                if spot.default is not dataclasses.MISSING
            }
            result[key] = [blank | row if isinstance(row, dict) else row for row in value]
        elif isinstance(value, Mapping) and isinstance(default.get(key), dict):
            result[key] = default[key] | value
        else:
            result[key] = value
    return result


def _read(path: Path) -> dict[str, Any]:
    try:
        if require_regular_file(path).stat().st_size > MAX_BYTES:
            raise BenchError(
                f"{path} has more than {MAX_BYTES} bytes, too many for the settings of a bench.\n"
                "  Check the path; benchmarks/cpu.toml is an example."
            )
        text = path.read_text(encoding="utf-8")
        if max(line.count(".") for line in [*text.splitlines(), ""]) > MOST_DOTS:
            raise ValueError(f"a line has more than {MOST_DOTS} dots")  # slow to parse
        return tomllib.loads(text)
    except BenchError:
        raise
    except OSError as error:
        raise BenchError(
            f"cannot read {path}: {error.strerror or error}.\n"
            "  Pass a TOML file that describes a bench; benchmarks/cpu.toml is an example."
        ) from error
    except (ValueError, RecursionError) as error:  # also endless digits and deep nesting
        raise BenchError(
            f"{path} is not valid TOML: {error}.\n  docs/bench.md shows an example."
        ) from None
