# SPDX-License-Identifier: Apache-2.0
"""The capture in the package is whole and sane, and the demo goes from it to a certificate."""

from __future__ import annotations

import json

import numpy as np
import pytest

from splatcert import cli
from splatcert.commands import demo
from splatcert.scene.load import load_scene
from splatcert.scene.scene import Scene

LARGEST = 4_000_000
"""Bytes that the capture may add to the package."""


@pytest.fixture(scope="module")
def scene() -> Scene:
    return load_scene(demo.PHOTOGRAPHS, holdout=int(demo.HOLDOUT))


def test_the_capture_is_whole_and_small(scene):
    files = [path for path in demo.PHOTOGRAPHS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
    assert (len(scene.training), len(scene.held_out)) == (76, 20)
    assert {(camera.width, camera.height) for camera in scene.cameras.values()} == {(320, 240)}
    assert scene.points is not None and 3_000 <= len(scene.points.xyz) <= 6_000


def test_points_lie_where_photographs_show_their_colour(scene):
    """Correlated, although corners and what hides behind things blur it; not so in a mirror."""
    for view in list(scene.training)[::15]:
        pixels, _ = view.camera.project(scene.points.xyz)
        column, row = np.nan_to_num(np.floor(pixels), nan=-1).astype(int).T
        inside = (column >= 0) & (column < 320) & (row >= 0) & (row < 240)
        assert inside.sum() > 200
        photo = view.image().numpy()
        seen = photo[row[inside], column[inside]].mean(axis=1)
        mirrored = photo[row[inside], 319 - column[inside]].mean(axis=1)
        known = scene.points.rgb[inside].mean(axis=1)
        likeness = np.corrcoef(known, seen)[0, 1]
        assert likeness > max(0.2, 0.15 + np.corrcoef(known, mirrored)[0, 1])


def test_the_demo_goes_from_photographs_to_a_certificate(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "QUICK", (300, 2_000, "64"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--quick", "-o", "out", "--threads", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "at least 90% of its pixels" in printed
    assert "a = 1 in every view" not in printed
    for name in ("still-life/images/000.jpg", "run/splats.ply", "certificate/certificate.json"):
        assert (tmp_path / "out" / name).is_file()
    assert (tmp_path / "out/certified.png").is_file()
    before = (tmp_path / "out/run/splats.ply").stat().st_mtime_ns

    assert cli.main(["demo", "--quick", "-o", "out", "--threads", "1"]) == 0
    assert "already finished" in capsys.readouterr().out
    assert (tmp_path / "out/run/splats.ply").stat().st_mtime_ns == before

    assert cli.main(["demo", "--quick", "-o", "out", "--threads", "1", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["kind"] == "demo" and known["run"]["gaussians"] <= 2_000
    assert known["certificate"]["views"]["calibration"] == 20
    assert all((tmp_path / known[name]).exists() for name in ("photographs", "picture", "report"))
    assert cli.main(["verify", "out/certificate"]) == 0
