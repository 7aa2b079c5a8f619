# SPDX-License-Identifier: Apache-2.0
"""Hashes follow what is rendered and compared, not the container it came in."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from splat_layouts import write_gsplat_run
from splatcert.camera import Camera, camera_hash
from splatcert.certificate.hashes import (
    has_known_origin,
    joint_hash,
    label_hash,
    photo_file_hash,
    source_marks,
    splats_hash,
)
from splatcert.raster.render import renderer_of
from splatcert.scene.scene import scene_from_tensors
from splatcert.splats.files import load_splats, save_ply
from splatcert.storage.schema import from_plain, to_plain
from splatcert_bench.synthetic.scenes import made_cameras, made_splats


@pytest.fixture(scope="module")
def splats():
    return made_splats(60, sh_degree=1)


def test_layouts_of_one_model_have_one_hash(tmp_path, splats):
    save_ply(splats, tmp_path / "a.ply")
    save_ply(replace(splats, extra={"seen": torch.ones(60)}), tmp_path / "b.ply")
    gsplat = write_gsplat_run(tmp_path / "run", splats)
    found = [load_splats(tmp_path / name) for name in ("a.ply", "b.ply")]
    found.append(load_splats(gsplat, frame="model"))
    assert {splats_hash(one) for one in found} == {splats_hash(splats)}


@pytest.mark.parametrize("name", ["means", "quats", "log_scales", "logit_opacities", "sh"])
def test_one_changed_number_changes_the_hash(splats, name):
    changed = getattr(splats, name).clone()
    changed.view(-1)[7] += 1e-3
    assert splats_hash(replace(splats, **{name: changed})) != splats_hash(splats)


def test_order_and_mode_count(splats):
    assert splats_hash(splats[torch.arange(59, -1, -1)]) != splats_hash(splats)
    assert splats_hash(replace(splats, antialiased=True)) != splats_hash(splats)


def test_a_camera_survives_its_record_bit_for_bit():
    for camera in made_cameras(5, 31, 17):
        again = from_plain(Camera, json.loads(json.dumps(to_plain(camera))))
        assert camera_hash(again) == camera_hash(camera)
        assert np.array_equal(again.world_to_camera, camera.world_to_camera)
    one, two = made_cameras(2, 31, 17)
    assert camera_hash(one) != camera_hash(two)
    assert camera_hash(replace(one, cx=one.cx + 1)) != camera_hash(one)


def test_labels_are_hashed_with_what_counts_of_them():
    camera = made_cameras(1, 6, 4)[0]
    picture, mask = torch.rand(4, 6, 3), torch.ones(4, 6, dtype=torch.bool)
    mask[0, 0] = False
    plain = scene_from_tensors({"a": camera}, {"a": picture}).training[0]
    masked = scene_from_tensors({"a": camera}, {"a": picture}, masks={"a": mask}).training[0]
    other = scene_from_tensors({"a": camera}, {"a": picture.flip(0)}).training[0]
    assert len({label_hash(view) for view in (plain, masked, other)}) == 3
    assert photo_file_hash(plain) is None


def test_texts_cannot_run_into_each_other():
    assert joint_hash({"a": "bc"}) != joint_hash({"ab": "c"})
    assert joint_hash(["a", "b"]) != joint_hash(["ab"])


def test_each_back_end_has_an_identity_of_its_own():
    names = {str(renderer_of("cpu")["name"]), str(renderer_of("reference")["name"])}
    assert names == {"splatcert-cpu", "splatcert-reference"}


def test_a_card_tells_labels_learned_from_apart_from_others():
    row = {"scene": "a", "hashes": {"splats": "0", "training x y.png": "1 2", "held-out z": "3 4"}}
    (source,) = source_marks({"views": "training", "scenes": [row]})
    assert source.learned == {"x y.png": ("1", "2")} and source.others == {"z": ("3", "4")}
    assert has_known_origin({"views": "training", "scenes": [row]})
    for card in ({}, {"scenes": [row]}, {"views": "training", "scenes": [row, {"scene": "b"}]}):
        assert not has_known_origin(card)
