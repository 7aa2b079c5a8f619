# SPDX-License-Identifier: Apache-2.0
"""`splatcert check`: exit codes that a build can act on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
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


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(("limit", "published"), [("30/255", True), ("1/255", False)])
def test_the_documented_makefile_publishes_only_what_meets_the_limits(tmp_path, limit, published):
    """The rules of docs/pipelines.md as they stand, with a model and a certificate in place."""
    page = Path(__file__).parents[2] / "docs/pipelines.md"
    (rules,) = re.findall(r"^```make\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
    assert "--max-half-width 30/255 --max-flagged 5%" in rules
    rules = rules.replace("30/255", limit).replace("5%", "99%")  # this model is too small for 5%
    (tmp_path / "Makefile").write_text(rules)
    (tmp_path / "site").mkdir()
    (tmp_path / "runs/truck").mkdir(parents=True)
    shutil.copy(STORED / "splats.ply", tmp_path / "runs/truck/splats.ply")
    shutil.copytree(STORED / "certificate", tmp_path / "truck.cert")
    os.utime(tmp_path / "runs/truck/splats.ply", (0, 0))  # older than its certificate
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == published, done.stdout + done.stderr
    assert (tmp_path / "site/scene.ply").exists() == published
    assert published or "Error 3" in done.stderr
