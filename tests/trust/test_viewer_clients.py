# SPDX-License-Identifier: Apache-2.0
"""Clients of the viewer that come and go, or send nonsense, cost the others nothing."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
import msgspec
from valid_files import write_valid_files
from websockets.exceptions import ConnectionClosed

from splatcert.deploy import open_certificate
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
