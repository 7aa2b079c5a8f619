# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify --promise path`, and the commands that quote its guarantee."""

from __future__ import annotations

import json

import pytest

from splatcert import cli

PATH = ["--promise", "path", "--stretch", "4", "--gamma", "1/4"]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def path_cert(place):
    """A certificate about stretches, not to be changed; three runs of four of twelve."""
    inputs = [str(place / "capture"), str(place / "model.ply"), "-o", str(place / "path-cert")]
    options = ["--holdout", "block4of12", "--scale", "constant", "--alpha", "1/4"]
    assert cli.main(["certify", *inputs, *options, *PATH]) == 0
    return place / "path-cert"


def test_it_verifies_and_is_described(place, path_cert, capsys):
    inputs = ["--data", str(place / "capture"), "--model", str(place / "model.ply")]
    assert cli.main(["verify", str(path_cert), *inputs, "--verbose"]) == 0
    said = flat(capsys.readouterr().out)
    assert "promise ok about a new stretch: 3 stretches of 4 views" in said
    assert "is the k-th smallest of the stored stretch scores" in said
    assert cli.main(["inspect", str(path_cert)]) == 0
    said = flat(capsys.readouterr().out)
    assert "≥ 3 of the 4 views of a new stretch have ≥ 90% of their pixels" in said
    assert "3 stretches of 4 views, threshold = 3rd smallest of 3 stretch scores" in said
    assert "5 consecutive" not in said and "4 consecutive photos at a random place" not in said


def test_a_film_quotes_this_guarantee_or_none(path_cert, certified, tmp_path, capsys):
    orbit = ["--cameras", "orbit", "--seconds", "0.2", "--fps", "10", "--no-film"]
    assert cli.main(["render", str(path_cert), "-o", str(tmp_path / "a"), *orbit]) == 0
    said = flat(capsys.readouterr().out)
    assert "Guarantee With probability ≥ 75%, ≥ 3 of the 4 views of a new stretch" in said
    assert "spaced like the held-out photos; not to every frame" in said
    assert cli.main(["render", str(certified), "-o", str(tmp_path / "b"), *orbit]) == 0
    said = flat(capsys.readouterr().out)
    assert "Guarantee None for a camera path: this certificate is about single views." in said


def test_the_report_states_it(path_cert, tmp_path):
    page = tmp_path / "report.html"
    assert cli.main(["report", str(path_cert), "--alone", "-o", str(page)]) == 0
    text = flat(page.read_text(encoding="utf-8"))
    assert "≥ 3 of the 4 views of a new stretch have ≥ 90% of their pixels inside" in text
    assert "m = 3 stretches; 75% requires at least 3." in text


@pytest.mark.parametrize(
    "options, message",
    [
        (["--promise", "path"], "--promise path requires --stretch L"),
        (["--stretch", "4"], "--stretch and --gamma go with --promise path."),
        (["--promise", "path", "--stretch", "4"], "gamma = 1/5 allows no miss in a stretch of 4"),
        (["--promise", "path", "--stretch", "1"], "a stretch must have at least 2 views"),
        ([*PATH, "--holdout", "3"], "12 held-out photos contain 0 stretches of 4 consecutive"),
        ([*PATH, "--alpha", "1/10"], "alpha = 1/10 requires 9"),
    ],
)
def test_what_no_photographs_can_carry_is_refused_before_a_folder_is_made(
    place, tmp_path, capsys, options, message
):
    inputs = [str(place / "capture"), str(place / "model.ply"), "-o", str(tmp_path / "cert")]
    levels = ["--holdout", "block4of12", "--scale", "constant", "--alpha", "1/4"]
    assert cli.main(["certify", *inputs, *levels, *options]) == 2
    printed = capsys.readouterr()
    assert message in flat(printed.err) and not printed.out
    assert not (tmp_path / "cert").exists()


def test_scripts_get_the_promise_too(path_cert):
    promise = json.loads((path_cert / "certificate.json").read_text())["promise"]
    assert (promise["kind"], promise["family"]) == ("path", None)
    assert (promise["path"]["length"], promise["path"]["gamma"]) == (4, "1/4")
