# SPDX-License-Identifier: Apache-2.0
"""Clients of the viewer that come and go, or send nonsense, cost the others nothing."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
import msgspec
import numpy as np
from valid_files import write_valid_files
from websockets.exceptions import ConnectionClosed

from splatcert.deploy import open_certificate
from splatcert_viewer import page
from splatcert_viewer.cameras.viewpoint import Viewpoint
from splatcert_viewer.link import PageState
from splatcert_viewer.serve import COLLECT_EVERY, Server, serving
from splatcert_viewer.shown import ViewerState
from viewer_clients import camera_message, join
from waiting import PATIENCE, until

CLIENTS = 3 * COLLECT_EVERY
AT_WORK = 3
"""Of the last ones, the render loop may still hold the newest."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> ViewerState:
    root = write_valid_files(tmp_path_factory.mktemp("clients") / "valid")
    return ViewerState.of(open_certificate(root / "cert"), None)


@pytest.fixture
def server(state) -> Iterator[Server]:
    with serving(state, "127.0.0.1", 0, print) as running:
        yield running


def test_the_memory_of_clients_that_left_is_freed(server):
    """Counted, not measured: of all clients, few may still exist after they have left."""
    seen: list[weakref.ref] = []
    server.on_client_connect(lambda client: seen.append(weakref.ref(client)))
    for number in range(CLIENTS):
        with join(server) as socket:
            socket.send(camera_message())
            until(lambda number=number: len(seen) > number)
            socket.recv(timeout=PATIENCE)
    until(lambda: not server.get_clients())
    until(lambda: sum(ref() is not None for ref in seen) <= COLLECT_EVERY + AT_WORK)


def test_a_late_report_of_the_initial_camera_does_not_undo_a_link(server, state, monkeypatch):
    """Browsers send their first camera late; the address keeps the link until its own arrives."""
    told, sent = [], []
    script, move = page.RunJavascriptMessage, page.move
    monkeypatch.setattr(page, "AT_REST", 0.01)
    monkeypatch.setattr(page, "RunJavascriptMessage", lambda s: told.append(s) or script(s))
    monkeypatch.setattr(page, "move", lambda *where: sent.append(where[1]) or move(*where))
    there = Viewpoint(np.array([0.6, 0.0, 0.8, 0.0]), np.array([1.0, -0.5, 2.0]), 1.0, 16 / 9)
    link = PageState(state.levels.certificate, "half-width", there).link()
    with join(server, link) as socket:
        socket.send(camera_message())
        until(lambda: sent)
        for late in range(1, 4):
            socket.send(camera_message(position=(0.0, 0.0, -3.0 - late)))
            until(lambda late=late: len(sent) == 1 + late)
        assert not told
        at = {"wxyz": tuple(there.wxyz.tolist()), "position": tuple(there.position.tolist())}
        socket.send(camera_message(**at))
        until(lambda: told)
        assert "camera=1,-0.5,2,0.6,0,0.8,0" in told[0] and "mode=half-width" in told[0]
        assert len(sent) == 4
        socket.send(camera_message())  # from now on the camera is the user's
        until(lambda: "camera=0,0,-3" in told[-1])


def test_a_client_that_leaves_at_once_is_forgotten_too(server):
    seen: list[weakref.ref] = []
    server.on_client_connect(lambda client: seen.append(weakref.ref(client)))
    for number in range(CLIENTS):
        with join(server) as socket:
            socket.send(camera_message())
        until(lambda number=number: len(seen) > number)
    until(lambda: not server.get_clients())
    until(lambda: sum(ref() is not None for ref in seen) <= COLLECT_EVERY + AT_WORK)


@pytest.mark.parametrize(
    "frame",
    [
        "a text",
        b"",
        b"\xc1\xff\x00",
        msgspec.msgpack.encode({"type": "Nobody"}),
        msgspec.msgpack.encode([1, 2]),
        msgspec.msgpack.encode({"type": "ViewerCameraMessage"}),
        camera_message(position=None),
        camera_message(position="here"),
        camera_message(surplus=1),
        camera_message(wxyz=(0.0, 0.0, 0.0, float("nan")), fov=float("inf"), image_width=-1),
        msgspec.msgpack.encode({"type": "GuiUpdateMessage", "uuid": "x", "updates": 3}),
    ],
    ids=lambda frame: repr(frame)[:24],
)
def test_a_malformed_message_prints_at_most_a_line_and_hurts_nobody(frame, server, capfd):
    with join(server) as good:
        good.send(camera_message())
        until(server.get_clients)
        with join(server) as bad:
            bad.send(frame)
            with suppress(ConnectionClosed):  # the server may have hung up already
                bad.send(camera_message(fov=1.1))
            good.send(camera_message(fov=0.9))
            good.recv(timeout=PATIENCE)
        until(lambda: len(server.get_clients()) == 1)
    said = capfd.readouterr()
    assert "Traceback" not in said.err + said.out
    assert len(said.err.strip().splitlines()) <= 2, said.err
