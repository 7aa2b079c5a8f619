# SPDX-License-Identifier: Apache-2.0
"""The README's Python works as printed, on a small capture."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from splatcert.commands.pictures import to_pixels
from splatcert.raster.interface import render

ROOT = Path(__file__).resolve().parents[2]
MINUTE = (ROOT / "README.md").read_text(encoding="utf-8").split("## One minute of use")[1]


@pytest.fixture
def in_a_project(tmp_path, capture, model, splats, cameras, monkeypatch):
    for name, camera in cameras.items():
        Image.fromarray(to_pixels(render(splats, camera).rgb.numpy())).save(capture / name)
    (tmp_path / "data").mkdir()
    shutil.move(capture, tmp_path / "data/truck")
    shutil.move(model, tmp_path / "point_cloud.ply")
    monkeypatch.chdir(tmp_path)


def block() -> str:
    found = re.search(r"```python\n(.*?)```", MINUTE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.filterwarnings("ignore::splatcert.conformal.CalibrationTooSmall")
def test_the_python_of_the_readme(in_a_project):
    names: dict = {}
    exec(compile(block(), "README.md", "exec"), names)
    assert names["exposure"].shape == (len(names["splats"]), 1)
    assert names["picture"].rgb.shape == (32, 48, 3)
    assert names["boxes"].half_width.shape == (32, 48)
