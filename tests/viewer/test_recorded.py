# SPDX-License-Identifier: Apache-2.0
"""A recorded path: its frames, its film, and the same film from the exported cameras."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from splatcert import cli
from splatcert.frames.film import can_film
from splatcert.scene.camera_paths import CameraPathError
from splatcert.scene.readers.camera_files import camera_list, read_cameras
from splatcert.splats.files import save_ply
from splatcert_viewer.cameras.films import Films
from splatcert_viewer.cameras.recorded import Shooting, frames_between
from splatcert_viewer.cameras.viewpoint import viewpoint_of

needs_encoder = pytest.mark.skipif(not can_film(), reason="PyAV with libx264 is not installed")


@pytest.fixture(scope="module")
def keys(certificate):
    """Three views of the capture, in a window that is wider than its pictures."""
    cameras = [view.camera for view in certificate.record.calibration[:3]]
    return [replace(viewpoint_of(camera), aspect=2.0) for camera in cameras]


def shot(certificate, cameras, folder) -> Shooting:
    folder.mkdir()
    shooting = Shooting(certificate, cameras, folder)
    while shooting.share < 1:
        shooting.next_frame()
    return shooting


def test_a_path_leads_through_its_key_views_and_is_as_large_as_certified(certificate, keys):
    cameras = list(frames_between(certificate, keys, seconds=2).values())
    assert len(cameras) == 60
    centres = np.array([camera.centre for camera in cameras])
    assert np.allclose(centres[[0, -1]], [keys[0].position, keys[-1].position])
    nearest = np.linalg.norm(centres - keys[1].position, axis=1).min()
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    assert nearest <= steps.max() < 8 * np.median(steps)
    largest = max(max(v.camera.width, v.camera.height) for v in certificate.record.training)
    assert {max(camera.width, camera.height) for camera in cameras} == {largest}
    with pytest.raises(CameraPathError, match="at least 2 views"):
        frames_between(certificate, keys[:1], seconds=2)


def test_turning_on_the_spot_and_standing_still_are_paths(certificate, keys):
    there = replace(keys[1], position=keys[0].position)
    for path in ([keys[0], there], [keys[0], keys[0]]):
        cameras = frames_between(certificate, path, seconds=1).values()
        centres = np.array([camera.centre for camera in cameras])
        assert len(cameras) == 30 and np.allclose(centres, keys[0].position)


def test_words_say_what_is_promised_and_what_differs(certificate, keys, tmp_path):
    words = shot(certificate, frames_between(certificate, keys, seconds=1), tmp_path / "a").words()
    assert words["Guarantee"].startswith("None for a camera path")
    assert "calibration views (p = " in words["Compared"] and "of 30 frames" in words["Flagged"]


@needs_encoder
def test_the_exported_cameras_make_the_same_film_at_the_shell(certificate, keys, tmp_path, capsys):
    cameras = frames_between(certificate, keys, seconds=1)
    shooting = shot(certificate, cameras, tmp_path / "frames")
    exported = tmp_path / "path.json"
    exported.write_text(camera_list(cameras, fps=30))
    stored = certificate.save(tmp_path / "cert")
    save_ply(certificate.splats, tmp_path / "model.ply")
    command = ["render", str(stored), "--model", str(tmp_path / "model.ply"), "--json"]
    command += ["--cameras", str(exported), "-o", str(tmp_path / "out")]
    assert cli.main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["frames"]] == list(cameras)
    for ours, theirs in zip(shooting.rows, told["frames"], strict=True):
        assert (ours["width"], ours["height"]) == (theirs["width"], theirs["height"])
        assert ours["mean_half_width"] == pytest.approx(theirs["mean_half_width"], rel=1e-5)
    assert told["comparison"]["words"] in shooting.words()["Compared"]
    assert cli.main([command for command in command if command != "--json"]) == 0
    said = capsys.readouterr().out
    assert "None for a camera path" in " ".join(said.split())


@needs_encoder
def test_films_are_kept_where_the_owner_chose_or_sent_to_the_browser(certificate, keys, tmp_path):
    cameras = frames_between(certificate, keys, seconds=1)
    owned, scratch = tmp_path / "films", tmp_path / "scratch"
    owned.mkdir()
    scratch.mkdir()
    sent: dict[str, bytes] = {}
    heard: list[float] = []
    films = Films(scratch, owned)
    makers = []
    for _ in range(2):
        shooting = shot(certificate, cameras, films.room() / "frames")
        makers.append(
            threading.Thread(target=films.finish, args=(shooting, sent.__setitem__, heard.append))
        )
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    names = [f"film-00{n}.{end}" for n in (1, 2) for end in ("json", "mp4")]
    assert sorted(path.name for path in owned.iterdir()) == names and not sent
    assert (owned / "film-001.mp4").read_bytes()[4:8] == b"ftyp" and max(heard) < 1
    assert len(read_cameras(owned / "film-001.json")) == 30

    shooting = shot(certificate, cameras, films.room() / "frames")
    Films(scratch).finish(shooting, sent.__setitem__, heard.append)
    assert sent["film.mp4"][4:8] == b"ftyp" and not shooting.folder.exists()
