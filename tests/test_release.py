# SPDX-License-Identifier: Apache-2.0
"""The workflows name scripts, targets and settings that exist."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def commands(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_exists(workflow):
    """Targets of the Makefile, and scripts that may be executed."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for command in commands(workflow):
        first, *rest = command.split()
        if first == "make":
            assert set(rest) <= targets
        elif (ROOT / first).exists():
            assert os.access(ROOT / first, os.X_OK)
        else:
            assert first in ("sudo", "pipx")


def test_hosted_tests_are_the_script_of_everybody():
    assert ".ci/run" in commands(ROOT / ".github/workflows/test.yml")


def test_there_is_a_wheel_for_every_supported_python():
    """Per version before the stable ABI, and one for all versions from there on."""
    stable = int(PROJECT["tool"]["scikit-build"]["wheel"]["py-api"].removeprefix("cp3"))
    oldest = int(PROJECT["project"]["requires-python"].removeprefix(">=3."))
    wanted = [f"cp3{minor}-*" for minor in range(oldest, stable + 1)]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == wanted


def test_the_source_archive_has_every_file_that_cmake_names():
    """CMake stops at a target whose source is missing, even one that is built only on request."""
    excluded = tuple(PROJECT["tool"]["scikit-build"]["sdist"]["exclude"])
    named = re.findall(r"[\w/]+\.cpp", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert named
    for path in map(Path, named):
        assert (ROOT / path).exists() and path.parts[0] not in excluded
