# SPDX-License-Identifier: Apache-2.0
"""Kills, full disks, folders that cannot be written and two runs in one folder."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from pathlib import Path

import pytest
import torch
from kill_many import STAGES, artefacts, endure_all
from valid_files import TRAIN, write_results, write_valid_files

from splatcert.cli import main
from splatcert.deploy import load_certificate
from splatcert.storage.whole import owned_folder

LONG = ("demo", "bench")
SMALL_DISK = 300
"""Bytes that a file may have; every artefact has more."""


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_valid_files(tmp_path_factory.mktemp("faults") / "valid")
    write_results(root)
    return root


def test_killed_commands_go_on_to_the_same_bytes(tmp_path):
    """Twice each; a bench and the demo take longer. `kill_many.py` kills all of them often."""
    quick = [name for name in STAGES if name not in LONG]
    assert set(endure_all(tmp_path, count=2 * len(quick), only=quick)) == set(quick)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_killed_demo_or_bench_goes_on_to_the_same_bytes(name, tmp_path):
    assert set(endure_all(tmp_path, count=1, only=[name])) == {name}


def command(name: str, valid: Path, out: Path) -> list[str]:
    """Each command that writes, with its output at `out`."""
    capture, model = str(valid / "transforms"), str(valid / "model.ply")
    return {
        "train": ["train", capture, "-o", str(out), *TRAIN],
        "certify": ["certify", capture, model, "-o", str(out), "--holdout", "3",
                    "--predictor", "none", "--alpha", "1/4"],
        "learn": ["learn", str(valid / "cert"), "-o", str(out / "predictor.json")],
        "render": ["render", model, "--cameras", str(valid / "cameras.json"), "-o", str(out)],
        "sign": ["sign", str(out), "--key", str(valid / "key")],
        "report": ["report", str(valid / "cert"), "-o", str(out / "report.html")],
        "suggest": ["suggest", str(valid / "cert"), "-o", str(out), "--count", "2"],
        "export": ["export", str(valid / "cert"), "-o", str(out)],
        "bench": ["bench", str(valid / "bench.toml"), "-o", str(out), "--threads", "1"],
        "results": ["results", str(valid / "results"), "--page", str(out / "page.md")],
    }[name]  # fmt: skip


WRITERS = (
    "train", "certify", "learn", "render", "report", "suggest", "export", "bench", "results",
    *(["sign"] if shutil.which("ssh-keygen") else []),
)  # fmt: skip


def prepare(name: str, valid: Path, out: Path) -> None:
    """What is at `out` before the command: a certificate, if it works on one in place."""
    if name == "certify":  # an older certificate is there already
        calm = [word if word != "1/4" else "1/10" for word in command(name, valid, out)]
        assert main(calm) == 0
    if name == "sign":
        shutil.copytree(valid / "cert", out)
    out.mkdir(exist_ok=True)


def on_a_full_disk(arguments: list[str]) -> tuple[int, str]:
    """Exit code and complaints of a command in a child whose files cannot grow."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # torch's thread pool does not survive a fork
        sys.stdout = sys.stderr = os.fdopen(there, "w")
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_DISK, SMALL_DISK))
        status = main(arguments)
        sys.stderr.flush()
        os._exit(status)
    os.close(there)
    with os.fdopen(here) as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, said[said.find("splatcert: ") :]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "render"])
def test_a_full_disk_is_one_message_and_nothing_is_lost(name, valid, tmp_path):
    out = tmp_path / "out"
    prepare(name, valid, out)
    before = artefacts(out)
    status, text = on_a_full_disk(command(name, valid, out))
    assert status == 2, text
    assert text.startswith("splatcert: cannot write") and len(text.splitlines()) <= 5, text
    after = {key: value for key, value in artefacts(out).items() if key != "train.json"}
    assert after == before
    if name == "certify":
        assert load_certificate(out).record.guarantee.alpha.denominator == 10
    # With space again, the same command does its work.
    assert main(command(name, valid, out)) == 0


def test_a_demo_on_a_full_disk_is_one_message_and_leaves_nothing_half_done(tmp_path):
    """That it goes on afterwards is shown by killing it."""
    out = tmp_path / "out"
    status, text = on_a_full_disk(["demo", "-o", str(out)])
    assert status == 2, text
    assert text.startswith("splatcert: cannot write") and len(text.splitlines()) <= 5, text
    assert not list(out.iterdir())


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_cannot_be_made_is_one_message(name, valid, capsys):
    assert main(command(name, valid, Path("/proc/splatcert/out"))) == 2
    text = capsys.readouterr().err
    assert text.startswith("splatcert: ") and "/proc/splatcert" in text
    assert len(text.splitlines()) <= 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("name", WRITERS)
def test_a_read_only_folder_is_one_message(name, valid, tmp_path, capsys):
    out = tmp_path / "out"
    prepare(name, valid, out)
    out.chmod(0o500)
    assert main(command(name, valid, out)) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 5


@pytest.mark.parametrize("name", ["train", "certify", "render", "bench", *WRITERS[9:]])
def test_a_second_run_in_a_folder_is_told_so(name, valid, tmp_path, capsys):
    if name == "sign":
        prepare(name, valid, tmp_path / "out")
    with owned_folder(tmp_path / "out", "waiting"):
        assert main(command(name, valid, tmp_path / "out")) == 2
    text = capsys.readouterr().err
    assert text.startswith("splatcert: another process is ") and str(tmp_path / "out") in text
