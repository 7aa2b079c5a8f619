# SPDX-License-Identifier: Apache-2.0
"""Every file in examples/ runs, prints something, and uses public names in their public types."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import splatcert
import splatcert.conformal

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
STRICT = {
    "include": ["examples"],
    "extraPaths": [str(ROOT / "src")],
    "pythonVersion": "3.10",
    "typeCheckingMode": "strict",
}
PUBLIC_MODULES = ("splatcert.conformal", "splatcert_bench")
"""Modules that an example may import from: View-CP, and the second package (synthetic scenes,
benches). Of the core, everything else comes from `splatcert` itself."""


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(path, tmp_path):
    """In a temporary folder, so that its files do no harm."""
    known = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": known},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout and not done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_uses_public_names_only(path):
    hidden = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = str(node.module)
            names = {alias.name for alias in node.names}
            if module == "splatcert.conformal":
                hidden += names - set(splatcert.conformal.__all__)
            elif module.startswith("splatcert") and not module.startswith(PUBLIC_MODULES):
                hidden.append(module)
        elif isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
            hidden += [name for name in modules if name.startswith("splatcert.")]
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "sc":
            hidden += {node.attr} - set(splatcert.__all__)
    assert hidden == []


def test_strict_type_checking_passes(tmp_path):
    """No exception is listed: what we return is typed, and libraries are used where they are."""
    pytest.importorskip("pyright")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(STRICT))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(EXAMPLES)
    wrong = [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message'][:200]}"
        for one in found["generalDiagnostics"]
    ]
    assert wrong == []
