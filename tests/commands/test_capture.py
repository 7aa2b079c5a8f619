# SPDX-License-Identifier: Apache-2.0
"""What a model tells of its training decides which photos may calibrate."""

from __future__ import annotations

import json

import numpy as np
import pytest

import splatcert as sc
from splat_layouts import (
    nerfstudio_state,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
)
from splatcert.capture import open_capture
from splatcert.scene.load import load_scene, read_photographs
from splatcert.scene.split import HoldoutRuleError
from splatcert.splats.account import (
    TrainedOnTheseError,
    TrainingAccount,
    account_of,
    evaluation_share,
)
from splatcert.splats.unseen import split_unseen

PARSER = "pipeline:\n  datamanager:\n    dataparser:\n"


def nerfstudio(folder, splats, *lines: str):
    config = PARSER + "".join(f"      {line}\n" for line in lines)
    write_nerfstudio_run(folder, nerfstudio_state(splats), transform=np.eye(4), config=config)
    return account_of(folder).split


def test_every_trainer_s_rule_is_read(tmp_path, splats, model):
    assert account_of(model) == TrainingAccount()
    settings = "Namespace(eval={}, sh_degree=1)"
    for kept, rule in ((True, 8), (False, "none")):
        folder = write_inria_folder(tmp_path / str(kept), {7: splats}, settings.format(kept))
        assert account_of(folder).split == rule
    folder = write_gsplat_run(tmp_path / "gsplat", splats, cfg="test_every: 5\n")
    assert account_of(folder).split == 5
    assert nerfstudio(tmp_path / "a", splats, "eval_mode: interval", "eval_interval: 4") == 4
    fraction = ("eval_mode: fraction", "train_split_fraction: 0.75")
    assert nerfstudio(tmp_path / "b", splats, *fraction) == 0.75
    assert nerfstudio(tmp_path / "c", splats, "eval_mode: all") == "none"
    assert nerfstudio(tmp_path / "d", splats, "eval_mode: filename") is None


@pytest.mark.parametrize(
    ("training", "held_out", "by"),
    [
        (TrainingAccount(), [0, 8], "assumed"),
        (TrainingAccount(split=3), [0, 3, 6], "model"),
        (TrainingAccount(split=0.7), [3, 7], "model"),
        (TrainingAccount(seen=("images/00.png",), kept_out=("images/04.png",)), [4], "model"),
    ],
)
def test_the_model_s_word_fills_in_what_the_user_leaves_open(capture, training, held_out, by):
    scene, told_by = split_unseen(read_photographs(capture), "auto", training)
    assert list(scene.held_out.names) == [f"images/{k:02d}.png" for k in held_out]
    assert told_by == by


@pytest.mark.parametrize(
    ("training", "seen"),
    [
        (TrainingAccount(split="none"), "5 of the 5"),
        (TrainingAccount(split=3), "3 of the 5"),
        (TrainingAccount(split=0.7), "5 of the 5"),
    ],
)
def test_the_model_s_word_stands_against_a_rule_but_not_against_a_list(
    capture, tmp_path, training, seen
):
    """A trainer's rule knows nothing of photos that were registered later."""
    with pytest.raises(TrainedOnTheseError, match=f"trained on {seen} held-out photos"):
        split_unseen(read_photographs(capture), 2, training)
    (tmp_path / "later.txt").write_text("images/01.png\nimages/02.png\n")
    for listed in (str(tmp_path / "later.txt"), ("images/01.png", "images/02.png")):
        scene, by = split_unseen(read_photographs(capture), listed, training)
        assert len(scene.held_out) == 2 and by == "user"


def test_a_rule_of_the_user_s_is_his_word_where_the_model_is_silent(capture):
    photographs = read_photographs(capture)
    assert split_unseen(photographs, 2, TrainingAccount())[1] == "user"
    assert split_unseen(photographs, "2", TrainingAccount(split=2))[1] == "model"
    assert split_unseen(photographs, "random3", TrainingAccount())[1] == "user"


def test_a_random_rule_is_a_rule_that_the_model_s_word_stands_against(capture):
    with pytest.raises(TrainedOnTheseError, match="held-out photos"):
        split_unseen(read_photographs(capture), "random2", TrainingAccount(split=8))


def test_a_dataset_s_own_split_is_what_trainers_follow(capture):
    path = capture / "transforms.json"
    content = json.loads(path.read_text())
    names = [frame["file_path"] for frame in content["frames"]]
    content |= {"train_filenames": names[:6], "test_filenames": names[6:]}
    path.write_text(json.dumps(content))
    for asked in ("auto", "format"):
        scene, by = split_unseen(read_photographs(capture), asked, TrainingAccount(split=8))
        assert list(scene.held_out.names) == names[6:]
        assert by == "model"


def test_photos_that_the_model_has_seen_are_refused(capture):
    photographs = read_photographs(capture)
    with pytest.raises(TrainedOnTheseError, match="was trained on every photo"):
        split_unseen(photographs, "auto", TrainingAccount(split="none"))
    seen = TrainingAccount(seen=("images/04.png",), kept_out=("images/00.png",))
    with pytest.raises(
        TrainedOnTheseError, match=r"trained on 1 of the 3 held-out photos: images/04\.png"
    ):
        split_unseen(photographs, 4, seen)


def runs_that_name_their_photos(folder, splats):
    """Runs of other trainers whose settings keep every 5th photo, or 8th, out of training."""
    yield 8, write_inria_folder(folder / "inria", {7: splats}, "Namespace(eval=True, sh_degree=1)")
    yield 5, write_gsplat_run(folder / "gsplat", splats, cfg="test_every: 5\n")
    config = PARSER + "      eval_mode: interval\n      eval_interval: 4\n"
    run = folder / "nerfstudio"
    write_nerfstudio_run(run, nerfstudio_state(splats), transform=np.eye(4), config=config)
    yield 4, run


def test_python_never_calibrates_on_photos_a_run_names_as_its_own(capture, splats, tmp_path):
    """What the command refuses, `open_capture` and `certify` refuse too."""
    for every, run in runs_that_name_their_photos(tmp_path, splats):
        with pytest.raises(TrainedOnTheseError, match="the model was trained on"):
            open_capture(capture, run, holdout=3)
        loaded = sc.load_splats(run, frame="model")
        scene = load_scene(capture, holdout=3)
        with pytest.raises(TrainedOnTheseError, match="the model was trained on"):
            sc.certify(scene, loaded, unseen=scene.held_out.names)
        fair = load_scene(capture, holdout=every)
        found = sc.Capture.in_memory(fair, loaded, unseen=fair.held_out.names)
        assert found.account.split == every


def test_a_scene_needs_the_names_of_the_views_its_model_has_not_seen(capture, splats):
    scene = load_scene(capture, holdout=3)
    with pytest.raises(TypeError, match="`unseen`"):
        sc.certify(scene, splats)
    with pytest.raises(TrainedOnTheseError, match=r"`unseen` names 1 views, but 3 are held out"):
        sc.certify(scene, splats, unseen=scene.held_out.names[:1])


def test_a_share_for_training_is_spread_evenly_as_nerfstudio_does():
    names = [f"{k:03d}" for k in range(10)]
    assert evaluation_share(names, 0.9) == ("008",)
    assert evaluation_share(names[::-1], 0.5) == ("001", "003", "005", "007", "008")


def test_held_out_views_may_be_given_by_name(capture):
    names = ("images/02.png", "images/05.png")
    scene = load_scene(capture, holdout=names)
    assert scene.held_out.names == names and len(scene.training) == 7
    with pytest.raises(
        HoldoutRuleError, match=r"1 of 1 held-out names is not in the dataset: 02\.png"
    ):
        load_scene(capture, holdout=("02.png",))
