# SPDX-License-Identifier: Apache-2.0
"""Telling models apart, and saying what was found when there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from splat_layouts import (
    assert_same_bits,
    inria_table,
    nerfstudio_state,
    random_splats,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
    write_table,
)
from splatcert.errors import InputError
from splatcert.splats.files import describe_model, load_splats, save_ply
from splatcert.splats.transform import transform_splats


def test_one_ply_in_a_folder_is_the_model(tmp_path):
    """OpenSplat and Brush leave one export beside other files."""
    splats = random_splats(4, 1)
    write_table(tmp_path / "export_30000.ply", inria_table(splats))
    (tmp_path / "cameras.json").write_text("[]")
    assert_same_bits(load_splats(str(tmp_path)), splats)


def test_named_files_are_preferred_and_several_are_listed(tmp_path):
    splats = random_splats(4, 1)
    for name in ("export_7000.ply", "export_30000.ply"):
        write_table(tmp_path / name, inria_table(splats))
    with pytest.raises(InputError, match=r"export_30000\.ply.*export_7000\.ply"):
        load_splats(tmp_path)
    other = random_splats(2, 0)
    save_ply(other, tmp_path / "splats.ply")
    assert_same_bits(load_splats(tmp_path), other)


def test_a_ply_under_another_name_is_recognised_by_its_content(tmp_path):
    splats = random_splats(3, 0)
    write_table(tmp_path / "model.bin", inria_table(splats))
    assert_same_bits(load_splats(tmp_path / "model.bin"), splats)


def test_a_ply_is_described_from_its_header(tmp_path):
    splats = random_splats(9, 2, antialiased=True, extra={"trust": torch.zeros(9)})
    save_ply(splats, tmp_path / "a.ply")
    info = describe_model(tmp_path / "a.ply")
    assert (info.format, info.count, info.sh_degree) == ("ply", 9, 2)
    assert info.antialiased and info.extra == ("trust",) and info.frame == "unknown"
    assert info.background is None and info.held_out is None and info.iteration is None


def test_a_frame_given_by_the_user_is_undone(tmp_path):
    splats = random_splats(9, 2)
    matrix = np.diag([0.1, 0.1, 0.1, 1.0])
    save_ply(transform_splats(splats, matrix), tmp_path / "exported.ply")
    back = load_splats(tmp_path / "exported.ply", frame=matrix)
    torch.testing.assert_close(back.means, splats.means)


def test_checkpoints_of_any_name_are_told_apart_by_content(tmp_path):
    splats = random_splats(5, 1)
    run = write_gsplat_run(tmp_path / "g", splats)
    (run / "ckpts" / "ckpt_29999_rank0.pt").rename(tmp_path / "mine.pt")
    run = write_nerfstudio_run(tmp_path / "n", nerfstudio_state(splats))
    (run / "nerfstudio_models" / "step-000029999.ckpt").rename(tmp_path / "best.ckpt")
    for name, kind in (("mine.pt", "gsplat"), ("best.ckpt", "nerfstudio")):
        assert_same_bits(load_splats(tmp_path / name, frame="model"), splats)
        assert describe_model(tmp_path / name).format == kind
    torch.save({"weights": 1, "epoch": 3}, tmp_path / "resnet.pt")
    with pytest.raises(InputError, match="unknown kind \\(weights, epoch\\)"):
        load_splats(tmp_path / "resnet.pt")


def test_a_folder_with_two_kinds_of_models_is_not_guessed_at(tmp_path):
    write_inria_folder(tmp_path, {1: random_splats(2)}, None)
    write_gsplat_run(tmp_path, random_splats(3))
    with pytest.raises(InputError, match=r"several models inside: inria .*, gsplat"):
        load_splats(tmp_path)


def test_unknown_paths_say_what_was_found_and_what_is_accepted(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    cases = {
        tmp_path / "none": "no such file or folder",
        tmp_path / "notes.txt": 'starts with "hello"',
        tmp_path: "empty, notes.txt",
        tmp_path / "empty": "nothing",
    }
    for path, found in cases.items():
        for function in (load_splats, describe_model):
            with pytest.raises(InputError) as caught:
                function(path)
            message = str(caught.value)
            assert (
                found in message and "Accepted: a .ply, .spz, .splat, .sog or .glb file" in message
            )
            assert len(message.splitlines()) <= 5


def test_an_iteration_of_a_single_file_is_refused(tmp_path):
    save_ply(random_splats(2), tmp_path / "a.ply")
    with pytest.raises(InputError, match="this is a single file"):
        load_splats(tmp_path / "a.ply", iteration=7000)


def test_unusable_values_are_refused_unless_asked(tmp_path):
    table = inria_table(random_splats(3, 0))
    table["scale_1"][2] = np.inf
    write_table(tmp_path / "a.ply", table)
    with pytest.raises(InputError, match="log_scales: 1 of 3"):
        load_splats(tmp_path / "a.ply")
    assert len(load_splats(tmp_path / "a.ply", check=False)) == 3


def test_all_layouts_of_one_model_give_the_same_splats(tmp_path):
    splats = random_splats(50, 3, seed=8)
    write_table(tmp_path / "a.ply", inria_table(splats), byte_order=">")
    inria = write_inria_folder(tmp_path / "inria", {30000: splats}, None)
    gsplat = write_gsplat_run(tmp_path / "gsplat", splats, ranks=4)
    nerf = write_nerfstudio_run(tmp_path / "nerf", nerfstudio_state(splats, "_model."))
    for path in (tmp_path / "a.ply", inria, gsplat, nerf):
        assert_same_bits(load_splats(path, frame="model"), splats)
