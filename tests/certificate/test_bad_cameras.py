# SPDX-License-Identifier: Apache-2.0
"""Cameras that cannot be asked about are refused in words, before anything is rendered."""

import json
from dataclasses import replace

import numpy as np
import pytest

from splatcert.camera import Camera, CameraError
from splatcert.cli import main
from splatcert_bench.synthetic.scenes import made_cameras

CAMERA = made_cameras(1, 60, 40)[0]


def pose(**changes: float) -> np.ndarray:
    changed = CAMERA.world_to_camera.copy()
    for place, value in changes.items():
        changed[int(place[1]), int(place[2])] = value
    return changed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"world_to_camera": pose(m03=np.nan)}, "finite 4x4 matrix"),
        ({"world_to_camera": np.eye(3)}, "finite 4x4 matrix"),
        ({"world_to_camera": 2 * np.eye(4)}, "must hold a rotation"),
        ({"world_to_camera": np.diag([-1.0, 1, 1, 1])}, "must hold a rotation"),
        ({"world_to_camera": pose(m03=1e30)}, "from the origin"),
        ({"width": 0}, "must have pixels"),
        ({"width": 10**6, "height": 10**6}, "too large"),
        ({"fx": 0.0}, "must be positive and finite"),
        ({"fy": float("inf")}, "must be positive and finite"),
        ({"cx": -1e308}, "may be at most"),
    ],
)
def test_a_bad_camera_is_refused_with_its_reason(change, said):
    with pytest.raises(CameraError, match=said) as refused:
        replace(CAMERA, **change)
    assert len(str(refused.value).splitlines()) <= 3


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        "{}",
        '{"frames": []}',
        json.dumps({"frames": [{"transform_matrix": [[0] * 4] * 4}]}),
        json.dumps({"frames": [{"transform_matrix": "north"}], "fl_x": 1e400}),
    ],
)
def test_render_refuses_a_file_without_usable_cameras(content, tmp_path, stored, capsys):
    path = tmp_path / "cameras.json"
    path.write_text(content)
    code = main(["render", str(stored), "--cameras", str(path), "-o", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert code == 2 and "Traceback" not in said
    assert 1 <= len(said.strip().splitlines()) <= 5
    assert not (tmp_path / "out").exists()


def test_an_empty_list_of_cameras_gives_an_empty_answer(certificate):
    assert certificate.predict([]) == []
    assert certificate.compare([]) is None


def test_a_camera_is_not_a_pose(certificate):
    assert isinstance(CAMERA, Camera)
    with pytest.raises((TypeError, AttributeError, CameraError)):
        certificate.predict(CAMERA.world_to_camera)
