# SPDX-License-Identifier: Apache-2.0
"""What README and docs show is performed, page by page, on a small project."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
import webbrowser
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from urllib.request import urlopen

import pytest
from documented_project import write_bench, write_project

import splatcert as sc
from splatcert import cli
from splatcert.commands import demo
from splatcert_bench.run import profiles
from splatcert_bench.synthetic.scenes import made_cameras, made_splats
from splatcert_viewer import command as view

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`splatcert ([a-z]+)\b[^`]*`")

PLACEHOLDERS = {
    "PATH": "data/truck",
    "DATA": "data/truck",
    "CAPTURE": "data/truck",
    "MODEL": "output/truck",
    "RUN": "runs/own",
    "DIR": "renders",
    "CERT": "own.cert",
    "CERT...": "paper.cert",
    "OUT": "measured",
    "block5of20": "block2of6",
    "CONFIG": "smoke.toml",
    "FOLDER": "splatcert-bench",
    "KEY": "key",
    "ALLOWED": "allowed",
    "~/captures": "captures",
    "/mnt/captures": "captures",
    "/mnt/out": "out",
}
SMALLER = {
    "--iterations": "300",
    "--members": "2",
    "--stretch": "2",
    "--gamma": "1/2",
    "--max-half-width": "0.99",
}
"""Options whose documented value is too much for a test, or too strict for its model."""
ADDED = {
    "train": {"--max-gaussians": "2000", "--iterations": "300"},
    "certify": {"--alpha": "1/4"},
    "render": {"--seconds": "0.1"},
    "suggest": {"--count": "2"},
    "view": {"--port": "0"},
    "check": {"--max-beta": "1/4"},
}
"""Options of a command that keep it short, or fit to a capture of 18 photographs."""
CERTIFIED = (
    "splatcert train data/truck -o runs/truck",
    "splatcert certify data/truck runs/truck -o truck.cert",
)
MEASURED = ("splatcert bench smoke.toml -o OUT",)
BEFORE = {
    "certificates.md": CERTIFIED[:1],
    "report.md": CERTIFIED,
    "viewer.md": CERTIFIED,
    "evaluation.md": MEASURED,
    "commands.md": (*MEASURED, "splatcert certify DATA MODEL -o paper.cert --scale paper"),
    "formats.md": ("ls data/truck/images | awk 'NR % 8 == 1' > held_out.txt",),
    "shipping.md": ("ls data/truck/images | awk 'NR % 8 == 1' > held_out.txt",),
    "ply.md": ("ls data/truck/images | awk 'NR % 8 == 1' > held_out.txt",),
}
"""What a page takes for granted: another one makes it, or a later line of its own."""
ELSEWHERE = {"cameras.md", "export.md", "new-photos.md"}
"""Pages that `test_camera_pages.py` and `test_register.py` perform."""
PARSED = {"--ray", "register"} | (set() if which("ssh-keygen") else {"--key", "--signed-by"})
"""Only read: what needs a cluster, on which `test_bench.py` runs a bench; photographs with
features, which `test_register.py` has; and signatures on a machine without OpenSSH."""
OTHERS = ("make ", "source ", "pip install ", "python train.py ", "ns-train ", "python examples/")
"""Installing is what the tests begin with; other trainers are not ours; examples are performed by
`test_examples.py`."""
HAS_VIEWER = find_spec("viser") is not None
MISSING = "has no place in the test: give `write_project` what it needs"


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """What the page sets apart, in order: its language, and the text."""
    return FENCED.findall(page.read_text(encoding="utf-8"))


def commands_of(page: Path) -> list[str]:
    """What the page would have one type, in order, but what is not ours to perform."""
    found = []
    for language, block in blocks_of(page):
        prompted = block.startswith("$ ")
        for line in block.replace("\\\n", " ").splitlines():
            if prompted and not line.startswith("$ "):
                continue  # what the command before it prints
            typed = line.strip().removeprefix("$ ")
            ours = typed.startswith("splatcert ") and language in ("", "sh", "console", "text")
            other = language == "sh" and typed and not typed.startswith(("splatcert ", *OTHERS))
            found += [typed] if ours or other else []
    return found


def python_of(page: Path) -> list[str]:
    """The page's own Python that stands by itself."""
    found = [block for language, block in blocks_of(page) if language == "python"]
    return [block for block in found if block.startswith("import splatcert as sc\n")]


def made_smaller(words: list[str]) -> list[str]:
    """The same command on the small project."""
    known = [PLACEHOLDERS.get(word, word) for word in words]
    for option in SMALLER.keys() & set(known):
        known[known.index(option) + 1] = SMALLER[option]
    for option, value in ADDED.get(known[0], {}).items():
        known += [] if option in known else [option, value]
    return known


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_project(folder)
    write_bench(folder)
    return folder


@pytest.fixture(autouse=True)
def smaller(project, monkeypatch) -> None:
    """Settings without an option, in the project's folder."""
    monkeypatch.chdir(project)
    for name, value in {"STEPS": 300, "GAUSSIANS": 2_000, "RESOLUTION": "64"}.items():
        monkeypatch.setattr(demo, name, value)
    smoke = profiles.PROFILES["smoke"]
    small = replace(
        smoke,
        scene=smoke.scene[1:],
        members=replace(smoke.members, count=0, folds=0),
        study=replace(smoke.study, methods=("gsu",), ridges=(), guided=False),
    )
    monkeypatch.setitem(profiles.PROFILES, "smoke", small)


@pytest.fixture(autouse=True)
def visitor(monkeypatch) -> list[str]:
    """A browser that looks at a page once, and somebody who then presses Ctrl-C."""
    visited: list[str] = []

    def visit(address: str) -> bool:
        with urlopen(address) as answer:
            assert b"<html" in answer.read(1000)
        visited.append(address)
        return True

    class Pressed(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", visit)
    monkeypatch.setattr(view, "threading", SimpleNamespace(Event=Pressed))
    return visited


def perform(line: str) -> int:
    """Exit code of a command of ours, on the small project, or of a shell."""
    if not line.startswith("splatcert "):
        return subprocess.run(["bash", "-c", line], check=False).returncode
    words = shlex.split(line, comments=True)[1:]
    if PARSED & set(words) or (words[0] == "view" and not HAS_VIEWER):
        cli.parse(words)
        return 0
    return cli.main(made_smaller(words))


@pytest.mark.filterwarnings("ignore::splatcert.conformal.CalibrationTooSmall")
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.name not in ELSEWHERE and (commands_of(p) or python_of(p))],
    ids=lambda page: page.stem,
)
def test_what_a_page_shows_works(page, capsys, visitor):
    """Its commands in order, then its Python, to which a model, cameras and pictures are known."""
    commands = [*BEFORE.get(page.name, ()), *commands_of(page)]
    for line in commands:
        ending = perform(line)
        printed = capsys.readouterr().err[-600:]
        assert ending == 0, f"{page.name}: {line}\n{MISSING}\n{printed}"
    viewed = [line for line in commands if line.startswith("splatcert view ")]
    assert len(visitor) == HAS_VIEWER * len(viewed)
    camera = sc.load_scene("data/truck").held_out[0].camera
    cameras = made_cameras(36, 48, 32)
    known = {
        "splats": sc.load_splats("point_cloud.ply"),
        "camera": camera,
        "cameras": cameras,
        "pictures": [
            sc.render(sc.load_splats("point_cloud.ply"), c).rgb.clamp(0, 1) for c in cameras
        ],
        "params": made_splats(600, sh_degree=1).to_gsplat(activated=False),
    }
    for block in python_of(page):
        exec(compile(block, page.name, "exec"), dict(known))


def test_commands_named_in_sentences_exist(capsys):
    cli.main(["--help"])
    known = set(re.findall(r"• (\w+)", capsys.readouterr().out))
    named = {
        (page.name, name)
        for page in PAGES
        for name in INLINE.findall(page.read_text(encoding="utf-8"))
    }
    assert known and not {(page, name) for page, name in named if name not in known}


def test_targets_of_make_in_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    typed = {
        target
        for page in PAGES
        for target in re.findall(r"(?:^|`)make ([\w-]+)", page.read_text("utf-8"), re.M)
    }
    assert typed and not {name for name in typed if f"\n{name}:" not in makefile}


def test_there_is_a_page_with_commands():
    assert len([page for page in PAGES if commands_of(page)]) > 5
