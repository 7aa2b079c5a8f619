# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify DATA full.ply pruned.ply`, and the commands that take a member."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from splatcert import cli
from splatcert.certificate.store import remembered
from splatcert.commands.certificates.family import model_names
from splatcert.errors import OptionError
from splatcert.splats.files import load_splats, save_ply

MEMBERS = ["model-paper", "model-constant", "pruned-paper", "pruned-constant"]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def models(place) -> list[str]:
    """The model, and the same without its most transparent fifth."""
    splats = load_splats(place / "model.ply")
    opacities = splats.logit_opacities.ravel()
    save_ply(splats[opacities >= opacities.quantile(0.2)], place / "pruned.ply")
    return [str(place / "model.ply"), str(place / "pruned.ply")]


OPTIONS = ["--holdout", "3", "--scale", "paper,constant", "--predictor", "none"]


@pytest.fixture(scope="module")
def family(place, models) -> Path:
    """A family on disk, not to be changed."""
    output = place / "family"
    assert cli.main(["certify", str(place / "capture"), *models, "-o", str(output), *OPTIONS]) == 0
    return output


def test_all_members_are_listed_with_their_price(family, capsys):
    assert cli.main(["inspect", str(family)]) == 0
    said = flat(capsys.readouterr().out)
    assert (
        "With probability ≥ 90%, ≥ 90% of the pixels of a new view lie inside the boxes of each "
        "of the 4 members. Any of them may be chosen afterwards."
    ) in said
    assert "member scale Gaussians half-width of 255 wider than alone" in said
    for name in MEMBERS:
        assert name in said
    assert cli.main(["inspect", str(family), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["kind"] == "family" and [m["name"] for m in known["members"]] == MEMBERS
    assert min(member["price"] for member in known["members"]) >= -1e-12


def test_it_verifies_alone_and_from_scratch(place, models, family, capsys):
    assert cli.main(["verify", str(family)]) == 0
    said = flat(capsys.readouterr().out)
    assert "member pruned-constant ok valid by itself: all" in said
    given = [word for model in models for word in ("--model", model)]
    assert cli.main(["verify", str(family), "--data", str(place / "capture"), *given]) == 0
    assert "nobody can check that the model has not seen" in flat(capsys.readouterr().out)
    one = ["--data", str(place / "capture"), "--model", models[0]]
    assert cli.main(["verify", str(family), *one]) == 2
    assert "none of the given models is that of pruned-paper" in flat(capsys.readouterr().out)


def test_a_member_finds_its_own_model(family):
    for name in MEMBERS:
        model = remembered(family / name, "model")
        assert model is not None and model.stem == name.partition("-")[0]


@pytest.mark.parametrize("member", [None, "pruned-constant"])
def test_render_and_report_take_a_member(family, tmp_path, capsys, member):
    chosen = [] if member is None else ["--member", member]
    frames = ["-o", str(tmp_path / "frames"), "--no-film", "--maps", "none", "--resolution", "30"]
    assert cli.main(["render", str(family), *frames, *chosen]) == 0
    assert "the boxes of each of the 4 members" in flat(capsys.readouterr().out)
    page = tmp_path / "report.html"
    assert cli.main(["report", str(family), "-o", str(page), "--views", "1", *chosen]) == 0
    text = flat(page.read_text(encoding="utf-8"))
    assert "4 members, one promise" in text
    assert f"This page shows <b>{member or 'model-paper'}</b>" in text
    assert all(f"<td>{name}</td>" in text for name in MEMBERS)


@pytest.mark.parametrize("command", ["render", "report", "suggest", "export", "view"])
def test_a_member_that_is_not_there_is_refused(family, tmp_path, capsys, command):
    options = ["--member", "huge"]
    if command != "view":
        options += ["-o", str(tmp_path / "out")]
    assert cli.main([command, str(family), *options]) == 2
    assert "Its members: model-paper, model-constant" in flat(capsys.readouterr().err)


def test_one_model_under_two_scales_is_a_family_too(place, tmp_path, capsys):
    inputs = [str(place / "capture"), str(place / "model.ply"), "-o", str(tmp_path / "family")]
    assert cli.main(["certify", *inputs, *OPTIONS, "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert [member["name"] for member in known["members"]] == ["paper", "constant"]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--scale", "paper,guess"], "there is no scale 'guess'"),
        (["--scale", "paper,paper"], "a model or scale is named twice"),
        (["--promise", "path", "--stretch", "5"], "contain 0 stretches of 5 consecutive photos"),
        (["--alpha", "1/20"], "Hold out at least 7 more views, or use alpha >= 1/13."),
        (["--unit", "batch"], "unit batch cannot be used in a family"),
    ],
)
def test_what_cannot_be_a_family_is_refused(place, models, tmp_path, capsys, options, message):
    inputs = [str(place / "capture"), *models, "-o", str(tmp_path / "family")]
    assert cli.main(["certify", *inputs, *OPTIONS, *options]) == 2
    printed = capsys.readouterr()
    assert message in flat(printed.err) and not printed.out
    assert not (tmp_path / "family").exists()


def test_a_family_may_promise_something_about_paths(place, models, tmp_path, capsys):
    output = ["-o", str(tmp_path / "family"), "--scale", "constant", "--alpha", "1/4"]
    path = ["--holdout", "block4of12", "--promise", "path", "--stretch", "4", "--gamma", "1/4"]
    assert cli.main(["certify", str(place / "capture"), *models, *output, *path]) == 0
    said = flat(capsys.readouterr().out)
    assert (
        "≥ 3 of the 4 views of a new stretch have ≥ 90% of their pixels inside their boxes, for "
        "each of the 2 members. Any of them may be chosen afterwards, per stretch."
    ) in said
    given = [word for model in models for word in ("--model", model)]
    inputs = ["--data", str(place / "capture"), *given]
    assert cli.main(["verify", str(tmp_path / "family"), *inputs]) == 0
    assert "pruned: new q" in capsys.readouterr().out
    page = tmp_path / "report.html"
    asked = ["report", str(tmp_path / "family"), "--alone", "--member", "pruned", "-o", str(page)]
    assert cli.main(asked) == 0
    text = flat(page.read_text(encoding="utf-8"))
    assert "Choose one member for a whole stretch, not one per view." in text
    assert "2 members, one promise" in text and "m = 3 stretches; 75% requires at least 3." in text


def test_models_of_one_name_are_told_apart_by_their_folders(place, models, tmp_path, capsys):
    for name, model in zip(("a", "b"), models, strict=True):
        (tmp_path / name).mkdir()
        shutil.copy(model, tmp_path / name / "model.ply")
    both = [str(tmp_path / name / "model.ply") for name in ("a", "b")]
    output = ["-o", str(tmp_path / "family"), "--holdout", "3", "--scale", "constant", "--json"]
    assert cli.main(["certify", str(place / "capture"), *both, *output]) == 0
    known = json.loads(capsys.readouterr().out)
    assert [member["name"] for member in known["members"]] == ["a-model", "b-model"]
    assert list(model_names([Path("x/a.ply"), Path("x/a.spz")])) == ["a.ply", "a.spz"]
    with pytest.raises(OptionError, match="two of the models have the same name"):
        model_names([Path("x/a/m.ply"), Path("y/a/m.ply")])


def test_a_model_is_required(place, capsys):
    assert cli.main(["certify", str(place / "capture"), "-o", "nowhere"]) == 2
    assert "certify requires a model" in capsys.readouterr().err
