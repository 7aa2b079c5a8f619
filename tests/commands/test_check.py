# SPDX-License-Identifier: Apache-2.0
"""`splatcert check`: exit codes that a build can act on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from splatcert.cli import main

STORED = Path(__file__).parents[1] / "golden" / "schema-3"
MODEL = ["--model", str(STORED / "splats.ply")]


@pytest.fixture
def certificate(tmp_path) -> str:
    return str(shutil.copytree(STORED / "certificate", tmp_path / "certificate"))


def rules(capsys) -> dict[str, bool]:
    content = json.loads(capsys.readouterr().out)
    return {rule["name"]: rule["met"] for rule in content["rules"]}


def test_rules_that_are_met(certificate, capsys):
    options = ["--max-half-width", "30/255", "--max-alpha", "10%", "--max-beta", "0.1", "--json"]
    assert main(["check", certificate, *options]) == 0
    assert rules(capsys) == {
        "valid by itself": True,
        "alpha": True,
        "beta": True,
        "half-width": True,
    }


@pytest.mark.parametrize(
    ("option", "limit", "rule"),
    [
        ("--max-half-width", "1/255", "half-width"),
        ("--max-alpha", "5%", "alpha"),
        ("--max-beta", "1/20", "beta"),
    ],
)
def test_a_rule_that_is_not_met_gives_3(certificate, capsys, option, limit, rule):
    assert main(["check", certificate, option, limit, "--json"]) == 3
    assert rules(capsys) == {"valid by itself": True, rule: False}


def test_it_prints_one_line_per_rule_and_a_verdict(certificate, capsys):
    assert main(["check", certificate, "--max-half-width", "1/255"]) == 3
    printed = capsys.readouterr().out
    assert "not met" in printed and "1 of 2 rules met" in printed


def test_an_edited_certificate_meets_nothing(certificate, capsys):
    path = Path(certificate) / "certificate.json"
    path.write_text(path.read_text().replace('"alpha": "1/10"', '"alpha": "1/20"', 1))
    assert main(["check", certificate, "--max-half-width", "1/2", "--json"]) == 3
    assert rules(capsys) == {"valid by itself": False}


def test_cameras_of_ones_own(certificate, capsys):
    options = ["--cameras", "training", *MODEL, "--max-half-width", "1/2", "--max-flagged", "0"]
    assert main(["check", certificate, *options]) in (0, 3)
    assert "24 cameras (training)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--max-half-width", "30"], "Write it as 30/255"),
        (["--max-flagged", "lots"], "--max-flagged is not a number"),
        (["--max-alpha", "2"], "Write 2% for 2 per cent"),
        (["--max-half-width", "1/2", "--cameras", "nowhere", *MODEL], "no such file or folder"),
    ],
)
def test_limits_that_are_none_give_2(certificate, capsys, options, why):
    assert main(["check", certificate, *options]) == 2
    said = capsys.readouterr().err
    assert why in said and len(said.splitlines()) <= 5


def test_no_certificate_gives_2(tmp_path, capsys):
    assert main(["check", str(tmp_path), "--max-half-width", "1/2"]) == 2
    assert "certificate.json" in capsys.readouterr().err
