# SPDX-License-Identifier: Apache-2.0
"""The commands on the pages about cameras and export work as printed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from splatcert import cli, load_certificate
from splatcert.certificate.store import remember_places
from splatcert.export import RENDERED, STORED
from splatcert.scene.readers.camera_files import write_cameras

DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("splatcert ")]


@pytest.mark.parametrize("page", ["cameras.md", "export.md"])
def test_the_commands_of_the_page(page, certified, tmp_path, monkeypatch):
    shutil.copytree(certified, tmp_path / "truck.cert")
    shutil.copy(certified.parent / "model.ply", tmp_path)
    remember_places(tmp_path / "truck.cert", tmp_path, tmp_path / "model.ply")
    camera = load_certificate(certified).record.training[0].camera
    write_cameras(tmp_path, {"mine.png": camera})
    monkeypatch.chdir(tmp_path)
    assert commands(page)
    for line in commands(page):
        words = shlex.split(line, comments=True)[1:]
        shorter = ["--seconds", "0.1"] if words[0] == "render" else []
        shorter += ["--count", "2"] if words[0] == "suggest" else []
        assert cli.main(words + shorter) == 0, line


def test_the_table_of_columns_is_that_of_the_code():
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    written = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert {name: written[name] for name in STORED} == STORED
    assert all(f"`{name}`" in page for name in RENDERED)
