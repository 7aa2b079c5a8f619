# SPDX-License-Identifier: Apache-2.0
"""Pages of other sites cannot connect to the viewer."""

from __future__ import annotations

import pytest

pytest.importorskip("viser")
import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from splatcert_viewer.serve import admitted, guarding


@pytest.fixture(scope="module")
def port():
    with guarding("127.0.0.1"):
        server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    yield server.get_port()
    server.stop()


def test_a_foreign_origin_is_refused_at_the_handshake(port):
    mine, address = f"http://127.0.0.1:{port}", f"ws://127.0.0.1:{port}"
    protocol = [Subprotocol(f"viser-v{viser.__version__}")]
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(address, origin=Origin(origin), subprotocols=protocol)
    connect(address, origin=Origin(mine), subprotocols=protocol).close()


@pytest.mark.parametrize(
    ("host", "origin", "listening", "expected"),
    [
        ("127.0.0.1:80", None, "127.0.0.1", True),
        ("localhost:80", "http://localhost:80", "127.0.0.1", True),
        ("[::1]:80", "http://[::1]:80", "::1", True),
        ("evil.example:80", "http://evil.example:80", "127.0.0.1", False),
        ("127.0.0.1:80", "http://evil.example", "127.0.0.1", False),
        ("127.0.0.1:80", "http://evil.example", "0.0.0.0", False),
        ("studio.lan:80", "http://studio.lan:80", "0.0.0.0", True),
        (None, None, "127.0.0.1", False),
        ("[", None, "127.0.0.1", False),
    ],
)
def test_host_and_origin_must_be_the_viewers_own(host, origin, listening, expected):
    assert admitted(host, origin, listening) is expected
