# SPDX-License-Identifier: Apache-2.0
"""`splatcert view`: what it refuses, what it serves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_truth
from splatcert import cli
from splatcert.splats.files import save_ply
from waiting import PATIENCE

viser = pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate and its model."""
    folder, splats = tmp_path_factory.mktemp("viewed"), made_model(made_truth())
    save_ply(splats, folder / "model.ply")
    certificate = certify(made_capture(made_photos()), splats, predictor=None)
    return certificate.save(folder / "cert"), folder / "model.ply"


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """What is started in the background would inherit that it ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def refusal(capsys, *arguments: str) -> str:
    assert cli.main(["view", *arguments]) == 2
    return capsys.readouterr().err


def test_a_port_in_use_is_named_before_anything_is_loaded(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refusal(capsys, "nowhere", "--port", str(port))
    assert f"port {port} is in use" in message and "--port 0" in message


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--host", "no.such.host.invalid"], "is not an address of this machine"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        (["--port", "70000"], "from 0 to 65535"),
        (["--port", "-1"], "from 0 to 65535"),
        (["--port", "0"], "is not a certificate"),
        (["--threads", "-1"], "--threads must be 0 or more"),
    ],
)
def test_places_and_paths_that_cannot_be(arguments, named, capsys):
    assert named in " ".join(refusal(capsys, "nowhere", *arguments).replace("│", " ").split())


def test_films_go_into_no_file_and_through_no_link(tmp_path, capsys):
    taken, link = tmp_path / "file", tmp_path / "link"
    taken.write_text("")
    link.symlink_to(tmp_path)
    for films, named in ((taken, "cannot create the output folder"), (link, "symbolic link")):
        message = refusal(capsys, "nowhere", "--port", "0", "--films", str(films))
        assert named in " ".join(message.replace("│", " ").split())


def test_a_certificate_without_its_model_says_how_to_give_it(stored, capsys):
    assert "--model MODEL" in refusal(capsys, str(stored[0]), "--port", "0")


def test_without_viser_it_says_how_to_get_it(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith(("viser", "splatcert_viewer"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert 'pip install "splatcert[view]"' in refusal(capsys, "nowhere")


def started(stored: tuple[Path, Path], *options: str) -> subprocess.Popen[str]:
    """A viewer in a process of its own, on any free port."""
    certificate, model = map(str, stored)
    command = [sys.executable, "-m", "splatcert.cli", "view", certificate, "--model", model]
    return subprocess.Popen(
        [*command, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


def seconds_used(process: subprocess.Popen[str]) -> float:
    """Processor time of a running process, which does not depend on what else runs."""
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time is read in /proc")
def test_ctrl_c_ends_it_at_once_although_somebody_looks(stored, heeds_ctrl_c):
    """Neither a client that stays connected nor taking torch down is waited for."""
    connect = pytest.importorskip("websockets.sync.client").connect
    with started(stored, "--json") as process:
        assert process.stdout is not None
        said = ""
        while not said.endswith("}\n"):
            said += process.stdout.readline()
        known = json.loads(said)
        assert known["kind"] == "viewer" and not known["photographs"]
        place, version = known["page"].replace("http", "ws", 1), f"viser-v{viser.__version__}"
        with connect(place, subprotocols=[version], compression=None) as client:
            assert client.recv()
            before = seconds_used(process)
            process.send_signal(signal.SIGINT)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0 and process.stdout.read() == ""
    assert usage.ru_utime + usage.ru_stime - before < 0.5


def test_it_serves_its_page_alone_and_ends_with_ctrl_c(stored, heeds_ctrl_c):
    with started(stored) as process:
        assert process.stdout is not None
        said: list[str] = []
        while not said or "Ctrl-C" not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], said
        address = next(line.split()[1] for line in said if line.split()[0] == "Page")
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as answer:
            assert b"<html" in answer.read(1000)
        for path in ("/../pyproject.toml", "/%2e%2e/%2e%2e/METADATA", "//etc/passwd"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(address + path)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(PATIENCE) == 0
    assert "Ended" in rest and "Traceback" not in rest
