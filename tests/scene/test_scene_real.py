# SPDX-License-Identifier: Apache-2.0
"""Real captures: counts, and reprojection errors against those the files state."""

import re
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from splatcert.difficulty.holdout_check import check_holdout
from splatcert.difficulty.predictor import shipped_predictor
from splatcert.scales.named import chosen_predictor, learned_from
from splatcert.scene.load import load_scene
from splatcert.scene.readers.colmap import read_colmap
from splatcert.scene.scene import Scene

SCENES = Path(__file__).resolve().parents[2].parent / "shared/data/scenes"
INDEX = SCENES / "INDEX.md"

pytestmark = [
    pytest.mark.scenes,
    pytest.mark.skipif(not INDEX.is_file(), reason="the real captures are not beside the project"),
]


def index() -> dict[str, dict[str, int]]:
    """Photos, held-out photos and points of each scene, as the index states them."""
    rows = {}
    for line in INDEX.read_text().splitlines() if INDEX.is_file() else []:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 8 and (SCENES / cells[0]).is_dir():
            numbers = [int(re.match(r"[\d,]+", cells[k])[0].replace(",", "")) for k in (2, 3, 5)]
            rows[cells[0]] = dict(zip(("photos", "held out", "points"), numbers, strict=True))
    return rows


@pytest.mark.parametrize("name", index())
def test_every_capture_loads_with_the_counts_of_its_index(name):
    scene = load_scene(SCENES / name, holdout=8)
    expected = index()[name]
    assert len(scene.cameras) == expected["photos"]
    assert len(scene.held_out) == expected["held out"]
    assert scene.points is not None and len(scene.points) == expected["points"]
    assert scene.held_out.names == tuple(sorted(scene.cameras)[::8])
    assert scene.held_out.with_photo == scene.held_out.names
    view = scene.training[0]
    assert view.image().shape == (view.camera.height, view.camera.width, 3)
    assert scene.extent > 0
    pixels, depth = view.camera.project(scene.points.xyz)
    seen = (depth > 0) & (pixels > 0).all(axis=1)
    seen &= (pixels < [view.camera.width, view.camera.height]).all(axis=1)
    assert seen.sum() > 20


def reprojection_errors(scene: Scene, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Mean error of each point over its observations, with our cameras; and the stated one."""
    model = read_colmap(folder, observations=True)
    assert model.points is not None and model.points.error is not None
    row = {int(key): k for k, key in enumerate(model.points.ids)}
    total, count = np.zeros(len(row)), np.zeros(len(row))
    for image in model.images:
        known = image.point_ids >= 0
        rows = np.array([row[int(key)] for key in image.point_ids[known]], dtype=int)
        pixels, _ = scene.cameras[image.name].project(model.points.xyz[rows])
        np.add.at(total, rows, np.linalg.norm(pixels - image.points2d[known], axis=1))
        np.add.at(count, rows, 1)
    return total / count, model.points.error


@pytest.mark.parametrize("name", ["truck", "playroom"])
def test_reprojection_errors_are_those_of_the_file(name, record_property):
    scene = load_scene(SCENES / name)
    ours, stated = reprojection_errors(scene, SCENES / name / "sparse/0")
    record_property("mean reprojection error", f"{ours.mean():.4f} px, stated {stated.mean():.4f}")
    assert np.isfinite(ours).all()
    # Both captures state what their own poses give, so point by point the two agree.
    assert np.abs(ours - stated).max() < 1e-6
    assert ours.mean() < 0.6


def draw_points(scene: Scene, folder: Path, name: str, target: Path) -> None:
    """A photo with the points it observed drawn as rings, observations as dots."""
    model = read_colmap(folder, observations=True)
    image = next(image for image in model.images if image.name == name)
    rows = {int(key): k for k, key in enumerate(model.points.ids)}
    known = image.point_ids >= 0
    xyz = model.points.xyz[[rows[int(key)] for key in image.point_ids[known]]]
    pixels, _ = scene.cameras[name].project(xyz)
    scale = 2
    picture = (scene.training[name].image().numpy()[..., ::-1] * 255).astype(np.uint8)
    picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    # OpenCV counts pixel centres at whole numbers.
    for place, colour, radius in (
        (pixels, (0, 0, 255), 4),
        (image.points2d[known], (0, 255, 0), 1),
    ):
        for x, y in place * scale - 0.5:
            centre = (round(x * 8), round(y * 8))
            cv2.circle(picture, centre, radius * 8, colour, 1, cv2.LINE_AA, shift=3)
    cv2.imwrite(str(target), picture)


@pytest.mark.parametrize("name", ["truck", "playroom"])
def test_points_can_be_drawn_over_a_photo(name, tmp_path):
    scene = load_scene(SCENES / name)
    view = scene.training[len(scene.training) // 3]
    target = tmp_path / f"reprojection_{name}.png"
    draw_points(scene, SCENES / name / "sparse/0", view.name, target)
    assert target.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["truck", "playroom", "garden"])
def test_captures_the_package_learned_from_are_known_again(name):
    """Also at another resolution and in a folder of another name."""
    scene = replace(load_scene(SCENES / name, resolution="320"), path=Path("mine"))
    assert len(learned_from(shipped_predictor().card, scene)) >= 20
    chosen, predictor = chosen_predictor("default", scene)
    assert chosen == ("strict" if name == "garden" else "reverse")
    assert not learned_from(predictor.card, scene)


@pytest.mark.parametrize("name", index())
def test_every_8th_photo_is_a_fair_sample_of_each_capture_but_bicycle(name, record_property):
    """In bicycle, photos alternate between looking level and looking up."""
    scene = load_scene(SCENES / name, holdout=8)
    found = check_holdout(scene.held_out.cameras, scene.training.cameras)
    assert found is not None
    record_property("p", found.p_value)
    if name == "bicycle":
        assert found.p_value <= 0.01 and found.largest.feature == "elevation"
    else:
        assert found.p_value > 0.05
