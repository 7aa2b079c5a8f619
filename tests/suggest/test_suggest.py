# SPDX-License-Identifier: Apache-2.0
"""Where to photograph next: poses one can take, of what was not seen, and not all alike."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth
from splatcert import cli
from splatcert.certificate.store import remember_places
from splatcert.field.sightings import Sightings
from splatcert.raster.render import render
from splatcert.scene.readers.camera_files import read_cameras
from splatcert.scene.scene import extent_of
from splatcert.splats.files import save_ply
from splatcert.suggest.poses import REACH
from splatcert.suggest.rank import SuggestError, suggest

COUNT = 6


@pytest.fixture(scope="module")
def gap():
    """A capture of a ring of which a third was never photographed."""
    cameras, pictures = made_photos()
    angles = np.array([np.arctan2(c.centre[1], c.centre[0]) for c in cameras.values()])
    kept = [name for name, angle in zip(cameras, angles, strict=True) if abs(angle) > np.pi / 4]
    photos = {n: cameras[n] for n in kept}, {n: pictures[n] for n in kept}
    scene = made_capture(photos, held_out=kept[::2])
    return certify(scene, made_model(made_truth()), predictor=made_predictor())


@pytest.fixture(scope="module")
def found(gap):
    return suggest(gap, COUNT)


def test_poses_are_within_reach_and_outside_things(gap, found):
    cameras = [view.camera for view in gap.record.training]
    centres = np.array([camera.centre for camera in cameras])
    reach = REACH * extent_of(cameras)
    assert len(found) == COUNT
    for one in found:
        assert np.linalg.norm(centres - one.camera.centre, axis=1).min() <= reach + 1e-9
        picture = render(gap.splats, one.camera)
        assert picture.alpha.mean() > 0.3
        assert one.start in {view.name for view in gap.record.training}


def test_gains_fall_and_suggestions_do_not_cluster(found):
    gains = [one.gain for one in found]
    assert gains == sorted(gains, reverse=True) and gains[-1] > 0
    for k, one in enumerate(found):
        for other in found[:k]:
            apart = np.linalg.norm(one.camera.centre - other.camera.centre)
            turned = np.degrees(
                np.arccos(np.clip(one.camera.forward @ other.camera.forward, -1, 1))
            )
            assert apart > 1e-6 or turned > 10


def test_it_says_what_is_gained(gap, found):
    predicted = gap.predict(found[0].camera)
    assert found[0].half_width == pytest.approx(float(predicted.half_width.mean()), rel=1e-6)
    assert found[0].support == predicted.flag
    words = found[0].why()
    assert words.startswith(f"half-width {found[0].half_width:.3f} (median {found[0].usual:.3f})")
    assert "nearest view" in words or "no photo shows" in words
    alike = replace(found[0], half_width=found[0].usual)
    assert "as in every view" in alike.why()


def test_best_angles_are_those_of_a_plain_loop(gap):
    cameras = [view.camera for view in gap.record.training]
    sightings = Sightings.of(gap.splats, cameras)
    rows, query = np.arange(0, 400, 7), cameras[3]
    means = gap.splats.means.double().numpy()[rows]
    best = np.full(len(rows), np.pi)
    for camera in cameras:
        ones = render(gap.splats, camera).alpha.new_ones(camera.height, camera.width, 1)
        from splatcert.raster.render import open_view

        seen = open_view(gap.splats, camera).scatter(ones)[:, 0].numpy()[rows] >= 0.25
        one, other = camera.centre - means, query.centre - means
        cosine = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
        best[seen] = np.minimum(best[seen], np.arccos(cosine.clip(-1, 1))[seen])
    np.testing.assert_allclose(sightings.best_angles(rows, query), best, atol=2e-3)
    assert sightings.counts().max() <= len(cameras)


def test_the_command_writes_cameras_that_open_elsewhere(gap, tmp_path, capsys):
    save_ply(gap.splats, tmp_path / "model.ply")
    gap.save(tmp_path / "cert")
    remember_places(tmp_path / "cert", tmp_path / "data", tmp_path / "model.ply")
    out = tmp_path / "out"
    words = ["suggest", str(tmp_path / "cert"), "--count", "3", "-o", str(out)]
    assert cli.main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rank start from move half-width nearest view photos that see it" in said
    by_list, by_colmap = read_cameras(out / "cameras.json"), read_cameras(out / "sparse/0")
    stored = json.loads((out / "suggestions.json").read_text())["suggestions"]
    assert len(stored) == 3 and set(by_list) == set(by_colmap)
    for one in stored:
        name = f"{one['name']}.png"
        pose = np.array(one["camera"]["world_to_camera"]).reshape(3, 4)
        np.testing.assert_allclose(by_list[name].world_to_camera[:3], pose, atol=1e-9)
        np.testing.assert_allclose(by_colmap[name].world_to_camera[:3], pose, atol=1e-9)
    assert (out / "suggestions.png").stat().st_size > 10_000
    assert cli.main([*words[:4], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suggestions"][0]["why"]
    assert cli.main([*words[:2], "--count", "0"]) == 2
    assert "--count must be 1 to 100" in capsys.readouterr().err.replace("│", " ")


def test_without_a_finite_width_nothing_is_wider(gap):
    guarantee = replace(gap.record.guarantee, threshold=float("inf"))
    endless = replace(gap, record=replace(gap.record, guarantee=guarantee))
    with pytest.raises(SuggestError, match="too few calibration views"):
        suggest(endless)
