# SPDX-License-Identifier: Apache-2.0
"""Libraries with known holes are not asked for, and not used on untrusted files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from splatcert.splats.files import load_splats
from splatcert.splats.untrusted import ForeignFileError, load_checkpoint

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("version", ["2.3.0", "2.5.1+cu121", "2.6.0", "2.9.1", "1.13", "git"])
@pytest.mark.parametrize("suffix", [".pt", ".ckpt"])
def test_checkpoints_are_refused_under_an_old_torch(monkeypatch, tmp_path, version, suffix):
    """Before a byte of them is parsed."""
    path = tmp_path / f"model{suffix}"
    torch.save({"splats": {}}, path)
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was loaded"))
    for load in (load_checkpoint, load_splats):
        with pytest.raises(ForeignFileError, match=r"torch 2\.10 or newer"):
            load(path)


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0+cpu", "3.0"])
def test_checkpoints_load_under_a_safe_torch(monkeypatch, tmp_path, version):
    torch.save({"a": 1}, tmp_path / "a.pt")
    monkeypatch.setattr(torch, "__version__", version)
    assert load_checkpoint(tmp_path / "a.pt") == {"a": 1}


@pytest.mark.parametrize(("library", "safe"), [("torch", (2, 10)), ("pillow", (10, 3))])
def test_the_package_asks_for_safe_versions(library, safe):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf'"{library}>=(\d+)\.(\d+)"', text)
    assert found is not None and tuple(map(int, found.groups())) >= safe
