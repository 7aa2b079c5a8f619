# SPDX-License-Identifier: Apache-2.0
"""What a model tells of its training decides which photos may calibrate."""

from __future__ import annotations

import json

import numpy as np
import pytest

from splat_layouts import (
    nerfstudio_state,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
)
from splatcert.capture import (
    TrainedOnTheseError,
    Training,
    evaluation_share,
    load_capture,
    training_of,
)
from splatcert.commands import CaptureOptions
from splatcert.scene.dataset import SplitError
from splatcert.scene.load import load_scene

PARSER = "pipeline:\n  datamanager:\n    dataparser:\n"


def nerfstudio(folder, splats, *lines: str):
    config = PARSER + "".join(f"      {line}\n" for line in lines)
    write_nerfstudio_run(folder, nerfstudio_state(splats), transform=np.eye(4), config=config)
    return training_of(folder).split


def test_every_trainer_s_rule_is_read(tmp_path, splats, model):
    assert training_of(model) == Training()
    settings = "Namespace(eval={}, sh_degree=1)"
    for kept, rule in ((True, 8), (False, "none")):
        folder = write_inria_folder(tmp_path / str(kept), {7: splats}, settings.format(kept))
        assert training_of(folder).split == rule
    folder = write_gsplat_run(tmp_path / "gsplat", splats, cfg="test_every: 5\n")
    assert training_of(folder).split == 5
    assert nerfstudio(tmp_path / "a", splats, "eval_mode: interval", "eval_interval: 4") == 4
    fraction = ("eval_mode: fraction", "train_split_fraction: 0.75")
    assert nerfstudio(tmp_path / "b", splats, *fraction) == 0.75
    assert nerfstudio(tmp_path / "c", splats, "eval_mode: all") == "none"
    assert nerfstudio(tmp_path / "d", splats, "eval_mode: filename") is None


@pytest.mark.parametrize(
    ("training", "held_out", "by"),
    [
        (Training(), [0, 8], "assumed"),
        (Training(split=3), [0, 3, 6], "model"),
        (Training(split=0.7), [3, 7], "model"),
        (Training(seen=("images/00.png",), kept_out=("images/04.png",)), [4], "model"),
    ],
)
def test_the_model_s_word_fills_in_what_the_user_leaves_open(capture, training, held_out, by):
    scene = load_capture(capture, CaptureOptions(), training)
    assert list(scene.held_out.names) == [f"images/{k:02d}.png" for k in held_out]
    assert scene.details["held_out_by"] == by


@pytest.mark.parametrize(
    ("training", "seen"),
    [
        (Training(split="none"), "5 of the 5"),
        (Training(split=3), "3 of the 5"),
        (Training(split=0.7), "5 of the 5"),
    ],
)
def test_the_model_s_word_stands_against_a_rule_but_not_against_a_list(
    capture, tmp_path, training, seen
):
    """A trainer's rule knows nothing of photos that were registered later."""
    with pytest.raises(TrainedOnTheseError, match=f"trained on {seen} held-out photos"):
        load_capture(capture, CaptureOptions(holdout="2"), training)
    (tmp_path / "later.txt").write_text("images/01.png\nimages/02.png\n")
    listed = CaptureOptions(holdout=str(tmp_path / "later.txt"))
    scene = load_capture(capture, listed, training)
    assert len(scene.held_out) == 2 and scene.details["held_out_by"] == "user"


def test_a_rule_of_the_user_s_is_his_word_where_the_model_is_silent(capture):
    every_second = CaptureOptions(holdout="2")
    assert load_capture(capture, every_second, Training()).details["held_out_by"] == "user"
    same = load_capture(capture, every_second, Training(split=2))
    assert same.details["held_out_by"] == "model"


def test_a_dataset_s_own_split_is_what_trainers_follow(capture):
    path = capture / "transforms.json"
    content = json.loads(path.read_text())
    names = [frame["file_path"] for frame in content["frames"]]
    content |= {"train_filenames": names[:6], "test_filenames": names[6:]}
    path.write_text(json.dumps(content))
    for options in (CaptureOptions(), CaptureOptions(holdout="format")):
        scene = load_capture(capture, options, Training(split=8))
        assert list(scene.held_out.names) == names[6:]
        assert scene.details["held_out_by"] == "model"


def test_the_size_of_training_is_taken_unless_told(capture):
    training = Training(long_side=24)
    assert load_capture(capture, CaptureOptions(), training).training[0].camera.width == 24
    told = CaptureOptions(resolution="12")
    assert load_capture(capture, told, training).training[0].camera.width == 12


def test_photos_that_the_model_has_seen_are_refused(capture):
    with pytest.raises(TrainedOnTheseError, match="has seen every photo"):
        load_capture(capture, CaptureOptions(), Training(split="none"))
    seen = Training(seen=("images/04.png",), kept_out=("images/00.png",))
    with pytest.raises(
        TrainedOnTheseError, match=r"trained on 1 of the 3 held-out photos: images/04\.png"
    ):
        load_capture(capture, CaptureOptions(holdout="4"), seen)


def test_a_share_for_training_is_spread_evenly_as_nerfstudio_does():
    names = [f"{k:03d}" for k in range(10)]
    assert evaluation_share(names, 0.9) == ("008",)
    assert evaluation_share(names[::-1], 0.5) == ("001", "003", "005", "007", "008")


def test_held_out_views_may_be_given_by_name(capture):
    names = ("images/02.png", "images/05.png")
    scene = load_scene(capture, holdout=names)
    assert scene.held_out.names == names and len(scene.training) == 7
    with pytest.raises(SplitError, match=r"1 of 1 held-out names are not in the dataset: 02\.png"):
        load_scene(capture, holdout=("02.png",))
