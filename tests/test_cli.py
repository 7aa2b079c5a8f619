# SPDX-License-Identifier: Apache-2.0
"""What a person types, what they see, and the exit code they get."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from dataclasses import fields
from typing import get_args

import pytest

from splatcert import __version__, cli, console
from splatcert.commands.demo import Demo
from splatcert.errors import InputError
from waiting import PATIENCE

SPLATCERT = [sys.executable, "-m", "splatcert.cli"]


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """One invocation without a terminal, 60 columns wide."""
    return subprocess.run(
        [*SPLATCERT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "60", **environment},
    )


def make_it_raise(monkeypatch, error: BaseException) -> None:
    def fail(self: Demo) -> None:
        raise error

    monkeypatch.setattr(Demo, "run", fail)


def test_help_is_instant():
    """Nothing heavy is imported for it: counted, since a clock depends on the machine's load."""
    heavy = "{'torch', 'numpy', 'scipy', 'cv2', 'PIL', 'safetensors'} & {*sys.modules}"
    code = f"import sys; from splatcert import cli; cli.main(['--help']); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_help_names_every_command_and_fits_60_columns():
    done = run("--help")
    for command in (
        *("demo", "inspect", "train", "certify", "verify", "learn", "render"),
        *("suggest", "export"),
    ):
        assert f"• {command} " in done.stdout
    boxes = [line for line in done.stdout.splitlines() if line.startswith(("│", "╭"))]
    assert max(map(len, boxes)) <= 60


def test_every_command_takes_json():
    """What the first page of the documentation says."""
    commands = [get_args(one)[0] for one in get_args(cli._choices())]
    assert len(commands) > 10
    assert not [one for one in commands if "json" not in {f.name for f in fields(one)}]


def test_no_argument_shows_the_help(capsys):
    assert cli.main([]) == 0
    assert "usage: splatcert" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, capsys):
    assert cli.main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("certify", "suggest", "export", "--cameras"):
        assert word in script


def test_bash_completes_what_was_begun():
    """In a real shell, as a key press would ask."""
    ask = (
        'eval "$({} --completion bash)"; COMP_WORDS=(splatcert cert); COMP_CWORD=1; '
        '_tyro_splatcert; echo "${{COMPREPLY[@]}}"'
    ).format(" ".join(SPLATCERT))
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["certify"]


def test_completion_for_an_unknown_shell(capsys):
    assert cli.main(["--completion", "dos"]) == 2
    assert "one of bash, zsh, fish" in capsys.readouterr().err


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"splatcert {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["frobnicate"], "frobnicate"),
        (["demo", "--colour", "red"], "--colour"),
        (["demo", "--backend", "opengl"], "'opengl'"),
        (["demo", "--threads", "-1"], "--threads must be 0 or more, got -1"),
        (["inspect"], "PATH"),
    ],
)
def test_a_mistyped_command_line_is_named(capsys, arguments, named):
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert named in " ".join(printed.err.replace("│", " ").split())
    assert "Traceback" not in printed.err
    assert not printed.out


def test_bad_input_is_one_message_without_a_traceback(monkeypatch, capsys):
    make_it_raise(monkeypatch, InputError("3 of 8 images are missing.\n  Copy them."))
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "splatcert: 3 of 8 images are missing.\n  Copy them.\n"


def test_a_fault_of_ours_says_so_and_how_to_report_it(monkeypatch, capsys):
    make_it_raise(monkeypatch, RuntimeError("tile 3 has no end"))
    assert cli.main(["demo"]) == 1
    printed = capsys.readouterr().err
    assert "RuntimeError: tile 3 has no end" in printed
    assert "SPLATCERT_TRACEBACK=1" in printed
    assert "Traceback (most recent call last)" not in printed


def test_a_fault_of_ours_shows_its_traceback_when_asked(monkeypatch, capsys):
    monkeypatch.setenv("SPLATCERT_TRACEBACK", "1")
    make_it_raise(monkeypatch, RuntimeError("tile 3 has no end"))
    assert cli.main(["demo"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_ctrl_c_ends_a_command_at_once_and_says_what_is_kept():
    wait = (
        "import sys, time; from splatcert import cli; from splatcert.commands.demo import Demo\n"
        "Demo.run = lambda self: (print('ready', flush=True), time.sleep(3600))\n"
        "sys.exit(cli.main(['demo']))"
    )
    command = subprocess.Popen(
        [sys.executable, "-c", wait], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert command.stdout is not None
    assert command.stdout.readline() == "ready\n"
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 130
    kept = "Finished steps are kept. Run the same command again to resume."
    assert err == f"splatcert: interrupted. {kept}\n"


def test_a_reader_that_leaves_is_no_fault():
    half = f"{' '.join(SPLATCERT)} --version | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", half], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_output_folder_that_cannot_be_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["demo", "-o", str(tmp_path / "file" / "out")]) == 2
    assert "Choose another folder" in capsys.readouterr().err


def test_a_table_fits_the_terminal_and_any_encoding(monkeypatch):
    """Cells wrap, control characters are spelt out, and what an encoding lacks is replaced."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", "40")
    console.show_table(("name", "angle"), [("a\x1b[2J", "18°"), ("long " * 20, "≥ 5")])
    stream.flush()
    lines = stream.buffer.getvalue().decode("ascii").splitlines()
    assert max(map(len, lines)) <= 44 and len(lines) > 4
    assert lines[0].split() == ["name", "angle"] and "a\\x1b[2J" in lines[1]
    assert lines[1].endswith("18 deg") and any(">= 5" in line for line in lines)
