# SPDX-License-Identifier: Apache-2.0
"""`views.npz`: saved whole, read back equal, refused when it is not what it should be."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.views_file import SceneViews, ViewTable, ViewTableError
from splatcert.storage.whole import ArtefactError

FEATURES = tuple(f"feature_{index}" for index in range(24))
BETAS = (Fraction(1, 20), Fraction(1, 10))


def table(count, seed):
    rng = np.random.default_rng(seed)
    return ViewTable(
        names=tuple(f"täg/{index:03}.jpg" for index in range(count)),
        descriptors=rng.normal(size=(count, 24)),
        oracle=rng.lognormal(size=(count, 2, 5)),
        field_means=rng.random(count),
        pixels=rng.integers(1, 10**6, count),
        psnr=np.full(count, np.nan),
    )


@pytest.fixture
def scene():
    hashes = {"splats": "ab" * 32, "images": "cd" * 32}
    return SceneViews("truck", FEATURES, BETAS, table(7, 1), table(3, 2), hashes)


def assert_same(left, right):
    for field in dataclasses.fields(ViewTable):
        np.testing.assert_array_equal(getattr(left, field.name), getattr(right, field.name))


def test_what_is_saved_is_what_is_loaded(scene, tmp_path):
    scene.save(tmp_path / "views.npz")
    found = SceneViews.load(tmp_path / "views.npz")
    assert (found.scene, found.schema, found.betas) == ("truck", FEATURES, BETAS)
    assert found.hashes == scene.hashes
    assert_same(found.training, scene.training)
    assert_same(found.held_out, scene.held_out)
    assert [path.name for path in tmp_path.iterdir()] == ["views.npz"]


def test_equal_contents_are_equal_bytes(scene, tmp_path):
    for name in ("a.npz", "b.npz"):
        scene.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_scene_may_have_no_view_of_a_kind(scene, tmp_path):
    empty = dataclasses.replace(scene, held_out=table(0, 3))
    empty.save(tmp_path / "views.npz")
    assert len(SceneViews.load(tmp_path / "views.npz").held_out) == 0


def test_targets_are_found_by_level_and_shrinkage(scene):
    found = scene.oracle("training", "10%", Fraction(1, 2))
    assert np.array_equal(found, scene.training.oracle[:, 1, 2])
    assert np.array_equal(scene.oracle("held-out", 0.05, 0), scene.held_out.oracle[:, 0, 0])
    with pytest.raises(ViewTableError, match=r"no targets at beta = 1/5: 1/20, 1/10"):
        scene.oracle("training", 0.2, 0)
    with pytest.raises(ViewTableError, match=r"lambda_b = 0.3, only at 0, 1/4, 1/2, 3/4, 1"):
        scene.oracle("training", 0.1, 0.3)


def test_stored_numbers_cannot_be_changed(scene):
    with pytest.raises(ValueError, match="read-only"):
        scene.training.oracle[0] = 0


@pytest.mark.parametrize(
    "change, message",
    [
        ({"descriptors": np.zeros((7, 23))}, r"descriptors is \(7, 23\), expected \(7, 24\)"),
        ({"oracle": np.zeros((7, 2, 4))}, r"oracle is \(7, 2, 4\), expected \(7, 2, 5\)"),
        ({"pixels": np.ones(6)}, r"pixels is \(6,\), expected \(7,\)"),
        ({"pixels": np.zeros(7)}, "every view must have pixels"),
        ({"names": ("a",) * 7}, "names are not unique"),
        ({"descriptors": np.full((7, 24), np.nan)}, "a descriptor is not finite"),
        ({"oracle": np.full((7, 2, 5), -1.0)}, "oracle factors must be 0 to"),
    ],
)
def test_tables_that_do_not_fit_are_refused(scene, change, message):
    with pytest.raises(ViewTableError, match=f"training views of scene truck: .*{message}"):
        dataclasses.replace(scene, training=dataclasses.replace(scene.training, **change))


def altered(path, **changes):
    """The archive with entries replaced, or left out where the new value is None."""
    with np.load(path) as archive:
        entries = {**archive, **changes}
    np.savez(path, **{name: value for name, value in entries.items() if value is not None})


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"version": np.array(99)}, "'splatcert views 99', this program reads 'splatcert views 1'"),
        ({"format": np.array("photos")}, "it is 'photos 1'"),
        ({"format": None}, "it has no 'format'"),
        ({"held_out_psnr": None}, "it has no 'held_out_psnr'"),
        ({"training_oracle": np.zeros((7, 2, 3))}, r"oracle is \(7, 2, 3\)"),
        ({"training_names": np.arange(7)}, "a list of names is expected, got int64"),
        ({"lambdas": np.array(["0", "1"])}, "its shrinkages are"),
        ({"betas": np.array(["0.05", "2"])}, "beta must lie strictly between 0 and 1"),
        ({"hashes": np.array(["ab"])}, "argument 2 is shorter"),
        ({"version": np.array("one")}, "invalid literal"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_archive_that_was_changed_is_refused(scene, tmp_path, changes, message):
    path = tmp_path / "views.npz"
    scene.save(path)
    altered(path, **changes)
    with pytest.raises(ArtefactError, match=f"cannot be used as an archive of views: .*{message}"):
        SceneViews.load(path)


def test_python_objects_are_never_loaded(scene, tmp_path):
    path = tmp_path / "views.npz"
    scene.save(path)
    altered(path, scene=np.array({"a": 1}, dtype=object))
    with pytest.raises(ArtefactError, match="Object arrays cannot be loaded"):
        SceneViews.load(path)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 broken"], ids=repr)
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "views.npz"
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match="cannot be read as an archive of views"):
        SceneViews.load(path)


def test_a_single_array_is_no_archive(tmp_path):
    np.save(tmp_path / "views.npy", np.ones(3))
    with pytest.raises(ArtefactError, match="cannot be read as an archive of views"):
        SceneViews.load(tmp_path / "views.npy")


def test_a_truncated_archive_is_refused(scene, tmp_path):
    path = tmp_path / "views.npz"
    scene.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ArtefactError, match="cannot be read as an archive of views"):
        SceneViews.load(path)


def test_a_missing_archive_is_named(tmp_path):
    with pytest.raises(ArtefactError, match="no archive of views at"):
        SceneViews.load(tmp_path / "views.npz")


def test_the_old_archive_stays_when_the_new_one_cannot_be_written(scene, tmp_path, monkeypatch):
    path = tmp_path / "views.npz"
    scene.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(ArtefactError, match="What was there before is intact"):
        scene.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_the_grid_of_targets_is_the_grid_of_shrinkages(scene):
    assert scene.training.oracle.shape[2] == len(LAMBDA_GRID)


def test_evidence_needs_no_torch():
    code = (
        "import splatcert.conformal.splits, splatcert.difficulty.views_file, sys;"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
