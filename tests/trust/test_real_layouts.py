# SPDX-License-Identifier: Apache-2.0
"""What `inspect` says of captures and models as people have them, kept word for word.

A change shows up here as a difference to read. To keep it: SPLATCERT_UPDATE_MESSAGES=1.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from real_layouts import LAYOUTS

from splatcert.cli import main

KEPT = Path(__file__).with_name("layouts.txt")


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """By layout: exit code and everything that was printed, to 80 columns."""
    found, here = {}, Path.cwd()
    for index, (name, write) in enumerate(LAYOUTS.items()):
        if name.startswith("SPZ 4") and find_spec("zstandard") is None:
            continue
        folder = tmp_path_factory.mktemp("layout") / f"{index:02d}"
        folder.mkdir()
        write(folder)
        found[name] = run(folder, shlex.split(name.rpartition(": ")[2]))
    assert Path.cwd() == here
    return found


def run(folder: Path, command: list[str]) -> str:
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(command)
    return f"exit {code}\n{printed.getvalue()}"


def as_text(said: dict[str, str]) -> str:
    blocks = []
    for name, text in said.items():
        lines = "\n".join(f"  {line}".rstrip() for line in text.splitlines())
        blocks.append(f"{name}\n{lines}\n")
    return "\n".join(blocks)


def test_every_answer_is_the_one_that_was_agreed(said):
    found = as_text(said)
    if os.environ.get("SPLATCERT_UPDATE_MESSAGES"):
        KEPT.write_text(found)
    kept = KEPT.read_text().split("\n\n")
    if find_spec("zstandard") is None:
        kept = [block for block in kept if not block.startswith("SPZ 4")]
    assert found.split("\n\n") == kept


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_sound_file_is_read_and_a_fault_is_refused_in_five_lines(name, said):
    if name not in said:
        pytest.skip("needs zstandard")
    lines = said[name].splitlines()
    assert lines[0] == ("exit 2" if name.startswith("!") else "exit 0")
    assert lines[0] == "exit 0" or len(lines) <= 6
