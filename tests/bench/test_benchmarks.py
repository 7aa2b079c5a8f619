# SPDX-License-Identifier: Apache-2.0
"""The scripts in benchmarks/ still find every name they import."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


def imported(script: Path) -> set[str]:
    """Top-level names of the packages that a script imports, also inside its functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_every_benchmark_can_be_imported():
    """One fresh interpreter for all of them: importing torch takes longest."""
    beside = {script.stem for script in SCRIPTS} | {
        path.stem for path in (ROOT / "tests").glob("*")
    }
    ready = [s for s in SCRIPTS if all(find_spec(name) for name in imported(s) - beside)]
    if not ready:
        pytest.skip("no benchmark's packages are installed")
    code = (
        "import sys; from importlib import import_module\n"
        "sys.path.insert(0, 'benchmarks')\n"
        "for name in sys.argv[1:]: import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *(script.stem for script in ready)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_script_finds_what_it_imports_from_us():
    """Also where a package that it needs, such as a fuzzer, is not installed."""
    for script in (*SCRIPTS, *sorted((ROOT / "tools").rglob("*.py"))):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            place = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if isinstance(node, ast.ImportFrom) and place.startswith("splatcert"):
                module = import_module(place)
                for name in (alias.name for alias in node.names):
                    known = hasattr(module, name) or find_spec(f"{place}.{name}")
                    assert known, f"{script}: there is no {place}.{name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_benchmark_says_in_its_docstring_how_it_is_run(script):
    """A script with a main function is run as python benchmarks/NAME.py."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
        assert f"benchmarks/{script.name}" in (ast.get_docstring(tree) or "")
