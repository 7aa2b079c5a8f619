# SPDX-License-Identifier: Apache-2.0
"""PlayCanvas' splat-transform as a second implementation, where it is installed.

npm install -g @playcanvas/splat-transform, version 3 or later; SPLAT_TRANSFORM may name it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import packed_layouts as layouts
import pytest
import torch

from splat_layouts import random_splats
from splatcert.splats.files import load_splats, save_ply
from splatcert.splats.formats.save import save_glb, save_spz
from splatcert.splats.gaussians import Splats
from waiting import PATIENCE

TOOL = os.environ.get("SPLAT_TRANSFORM") or shutil.which("splat-transform") or ""


def _version() -> int:
    if not TOOL:
        return 0
    told = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"v?(\d+)\.\d+\.\d+", told.stdout + told.stderr)
    return int(found[1]) if found else 0


pytestmark = pytest.mark.skipif(
    _version() < 3, reason="needs splat-transform 3 or later (npm, SPLAT_TRANSFORM)"
)


def convert(source: Path, target: Path) -> Path:
    command = [TOOL, "-w", "-g", "cpu", source, target]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return target


def assert_same(left: Splats, right: Splats, turn: float = 1e-6) -> None:
    torch.testing.assert_close(left.means, right.means, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(left.log_scales, right.log_scales, atol=2e-6, rtol=0)
    torch.testing.assert_close(left.opacities, right.opacities, atol=2e-6, rtol=0)
    torch.testing.assert_close(left.sh, right.sh, atol=2e-6, rtol=0)
    first, second = (torch.nn.functional.normalize(s.quats, dim=1) for s in (left, right))
    assert (first * second).sum(1).abs().min() > 1 - turn


@pytest.fixture
def splats() -> Splats:
    splats = random_splats(700, 2, seed=4)
    return replace(splats, quats=torch.nn.functional.normalize(splats.quats, dim=1))


@pytest.mark.parametrize("name", ["a.spz", "a.compressed.ply", "a.splat", "a.sog"])
def test_what_it_writes_we_read_as_it_does(tmp_path, splats, name):
    """The reader of the tool and ours, on one file of the tool."""
    save_ply(splats, tmp_path / "model.ply")
    packed = convert(tmp_path / "model.ply", tmp_path / name)
    ours, theirs = load_splats(packed), load_splats(convert(packed, tmp_path / "back.ply"))
    # It reads .splat rotations from 0 to 255, their writers centre them at 128.
    assert_same(ours, theirs, turn=1e-4 if name == "a.splat" else 1e-6)


@pytest.mark.parametrize("name", ["a.spz", "a.compressed.ply", "a.splat", "a.sog"])
def test_what_we_made_by_hand_it_reads_as_we_do(tmp_path, splats, name):
    small = splats[:300]
    contents = {
        "a.spz": layouts.spz,
        "a.compressed.ply": layouts.compressed_ply,
        "a.splat": layouts.splat,
        "a.sog": lambda s: layouts.zipped(layouts.sog(s)),
    }
    (tmp_path / name).write_bytes(contents[name](small))
    theirs = load_splats(convert(tmp_path / name, tmp_path / "back.ply"))
    assert_same(load_splats(tmp_path / name), theirs, turn=1e-4 if name == "a.splat" else 1e-6)


@pytest.mark.parametrize("orbit", [None, (-0.2, 0.7, 1.5)])
def test_it_reads_the_spz_that_we_write(tmp_path, splats, orbit):
    save_spz(splats, tmp_path / "a.spz", safe_orbit=orbit)
    theirs = load_splats(convert(tmp_path / "a.spz", tmp_path / "back.ply"))
    assert_same(load_splats(tmp_path / "a.spz"), theirs)


def test_its_glb_and_ours_hold_the_same_model(tmp_path, splats):
    """It writes glTF and does not read it, so both files are read by us."""
    save_ply(splats, tmp_path / "model.ply")
    convert(tmp_path / "model.ply", tmp_path / "theirs.glb")
    save_glb(splats, tmp_path / "ours.glb")
    assert_same(load_splats(tmp_path / "ours.glb"), load_splats(tmp_path / "theirs.glb"))
    assert_same(load_splats(tmp_path / "theirs.glb"), splats)
