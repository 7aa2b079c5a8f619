# SPDX-License-Identifier: Apache-2.0
"""Links that a stranger left in a folder lead no command to other files of the user's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from valid_files import TRAIN, write_results, write_valid_files

from splatcert.certificate.store import remember_places, remembered
from splatcert.cli import main
from splatcert.storage.whole import replacing, write_text_whole

PRECIOUS = "years of work"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_valid_files(tmp_path_factory.mktemp("links") / "valid")
    write_results(root)
    return root


@pytest.fixture
def valid(made, tmp_path) -> Path:
    shutil.copytree(made, tmp_path / "valid", symlinks=True)
    return tmp_path / "valid"


@pytest.fixture
def victim(tmp_path) -> Path:
    path = tmp_path / "victim"
    path.write_text(PRECIOUS)
    return path


@pytest.mark.parametrize("name", [".report.html.part", "report.html"])
def test_a_report_writes_through_no_link_in_the_certificate(valid, victim, name):
    (valid / "cert" / name).symlink_to(victim)
    page = valid / "cert/report.html"
    assert main(["report", str(valid / "cert"), "--alone", "-o", str(page)]) == 0
    assert victim.read_text() == PRECIOUS
    assert page.is_file() and not page.is_symlink()


def test_a_report_on_a_strangers_certificate_leaves_its_folder_as_it_was(valid, capsys):
    """The ledger of this computer does not list it."""
    before = sorted((valid / "cert").iterdir())
    assert main(["report", str(valid / "cert"), "--alone"]) == 0
    assert sorted((valid / "cert").iterdir()) == before
    assert (valid / "cert-report.html").is_file()
    assert "cert-report.html" in capsys.readouterr().out
    assert main(["report", *2 * [str(valid / "cert")], "--alone"]) == 0
    assert sorted((valid / "cert").iterdir()) == before
    assert (valid / "cert-comparison.html").is_file()


def test_a_link_as_lock_is_refused_and_its_target_kept(valid, victim, tmp_path, capsys):
    out = tmp_path / "run"
    out.mkdir()
    (out / ".lock").symlink_to(victim)
    assert main(["train", str(valid / "transforms"), "-o", str(out), *TRAIN]) == 2
    assert ".lock is a symbolic link" in capsys.readouterr().err
    assert victim.read_text() == PRECIOUS


@pytest.mark.parametrize("inner", ["", "sparse", "rgb"])
def test_an_output_folder_that_is_a_link_is_refused(valid, tmp_path, capsys, inner):
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    if inner:
        out.mkdir()
    (out / inner).symlink_to(elsewhere)
    command = {
        "": ["render", str(valid / "model.ply"), "--cameras", str(valid / "cameras.json")],
        "sparse": ["suggest", str(valid / "cert"), "--count", "1"],
        "rgb": ["render", str(valid / "cert"), "--model", str(valid / "model.ply")],
    }[inner]
    assert main([*command, "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert "is a symbolic link" in said and "Traceback" not in said
    assert not list(elsewhere.iterdir())


def test_a_results_page_follows_no_link(valid, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "page").symlink_to(elsewhere)
    assert main(["results", str(valid / "results"), "--page", str(tmp_path / "page.md")]) == 2
    assert not list(elsewhere.iterdir())


def test_a_certificate_is_written_through_no_link(valid, tmp_path):
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    out.mkdir()
    (out / ".new").symlink_to(elsewhere)
    words = ["certify", str(valid / "transforms"), str(valid / "model.ply"), "-o", str(out)]
    assert main([*words, "--holdout", "3", "--predictor", "none", "--alpha", "1/4"]) == 2
    assert not list(elsewhere.iterdir())


def test_finished_frames_are_noted_through_no_link(valid, victim, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / ".frames.jsonl").symlink_to(victim)
    words = ["render", str(valid / "model.ply"), "--cameras", str(valid / "cameras.json")]
    assert main([*words, "-o", str(out)]) == 2
    assert victim.read_text() == PRECIOUS


def test_temporary_names_are_random_and_new(tmp_path):
    with replacing(tmp_path / "a") as first, replacing(tmp_path / "a") as second:
        assert first != second and first.parent == second.parent == tmp_path
        second.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path, victim):
    folder = tmp_path / "folder"
    folder.mkdir()
    left, mine = folder / f".a.{'0' * 16}.part", folder / ".a.part"
    linked = folder / f".b.{'0' * 16}.part"
    left.write_text("half")
    mine.write_text("half")
    linked.symlink_to(victim)
    write_text_whole(folder / "c", "whole")
    assert not left.exists() and mine.exists() and victim.read_text() == PRECIOUS


def test_a_file_that_another_process_is_writing_is_not_swept(tmp_path):
    with replacing(tmp_path / "a") as aside:
        child = os.fork()
        if child == 0:
            write_text_whole(tmp_path / "b", "whole")
            os._exit(0)
        os.waitpid(child, 0)
        assert aside.exists() and (tmp_path / "b").exists()


def test_places_outside_the_folder_of_a_certificate_are_not_read(valid, tmp_path, capsys):
    """Not by their path and not by a link; `--model` asks for them."""
    cert, away = valid / "cert", tmp_path / "model.ply"
    shutil.move(valid / "model.ply", away)
    (valid / "link.ply").symlink_to(away)
    for place in (away, valid / "link.ply"):
        remember_places(cert, valid / "transforms", place)
        assert remembered(cert, "model") is None
        assert main(["render", str(cert), "-o", str(tmp_path / "out")]) == 2
        assert "--model MODEL" in capsys.readouterr().err
    assert remembered(cert, "data") == valid / "transforms"
    (cert / "places.json").write_text(json.dumps({"model": "/etc/passwd", "data": "/etc"}))
    assert remembered(cert, "model") is None and remembered(cert, "data") is None
