# SPDX-License-Identifier: Apache-2.0
"""What README and docs show is performed, page by page, on a small project."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from documented_project import write_project

import splatcert as sc
from splatcert import cli
from splatcert.commands import demo

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(?:sh|console|text)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(import splatcert as sc\n.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`splatcert ([a-z]+)\b[^`]*`")

PLACEHOLDERS = {
    "PATH": "data/truck",
    "DATA": "data/truck",
    "CAPTURE": "data/truck",
    "MODEL": "output/truck",
    "RUN": "runs/own",
    "DIR": "renders",
    "CERT": "own.cert",
    "CERT...": "own.cert",
}
SMALLER = {"--iterations": "300", "--members": "2"}
"""Options whose documented value is too much for a test."""
READ = {"report.md"}
"""Pages about a model that the small project does not have; README's report is performed."""
FEW = ["--max-gaussians", "2000"]
ELSEWHERE = {"cameras.md", "export.md"}
"""Pages that `test_camera_pages.py` performs."""
PARSED = {"view", "bench", "results", "suggest", "--suggest"}
"""A viewer runs until it is stopped, a bench for hours, suggestions need more photographs than the
small project has: their words are read, not performed."""
MISSING = "has no place in the test: give `write_project` what it needs"


def commands_of(page: Path) -> list[list[str]]:
    """The page's own commands in order, as words, without comments and prompts."""
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(block.replace("\\\n", " ") for block in FENCED.findall(text))
    lines = (line.strip().removeprefix("$ ") for line in blocks.splitlines())
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("splatcert ")]


def made_smaller(words: list[str]) -> list[str]:
    """The same command on the small project."""
    known = [PLACEHOLDERS.get(word, word) for word in words]
    if known[0] == "train":
        known += FEW if "--iterations" in known else [*FEW, "--iterations", "0"]
    for option in SMALLER.keys() & set(known):
        known[known.index(option) + 1] = SMALLER[option]
    return known


def python_of(page: Path) -> list[str]:
    """The page's own Python that stands by itself."""
    return PYTHON.findall(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_project(folder)
    return folder


@pytest.mark.filterwarnings("ignore::splatcert.conformal.CalibrationTooSmall")
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.name not in ELSEWHERE and (commands_of(p) or python_of(p))],
    ids=lambda page: page.stem,
)
def test_what_a_page_shows_works(page, project, monkeypatch, capsys):
    """Its commands in order, then its Python, to which a model and a camera are known."""
    monkeypatch.chdir(project)
    for name, value in {"STEPS": 300, "GAUSSIANS": 2_000, "RESOLUTION": "64"}.items():
        monkeypatch.setattr(demo, name, value)
    for words in commands_of(page):
        if PARSED & set(words) or page.name in READ:
            cli.parse(words)
            continue
        ending = cli.main(made_smaller(words))
        printed = capsys.readouterr().err[-600:]
        assert ending == 0, f"{page.name}: splatcert {' '.join(words)}\n{MISSING}\n{printed}"
    camera = sc.load_scene("data/truck").held_out[0].camera
    known = {"splats": sc.load_splats("point_cloud.ply"), "camera": camera}
    for block in python_of(page):
        code = compile(block, page.name, "exec")
        if page.name not in READ:
            exec(code, dict(known))


def test_commands_named_in_sentences_exist(capsys):
    cli.main(["--help"])
    known = set(re.findall(r"• (\w+)", capsys.readouterr().out))
    named = {
        (page.name, name)
        for page in PAGES
        for name in INLINE.findall(page.read_text(encoding="utf-8"))
    }
    assert known and not {(page, name) for page, name in named if name not in known}


def test_there_is_a_page_with_commands():
    assert len([page for page in PAGES if commands_of(page)]) > 5
