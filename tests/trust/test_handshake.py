# SPDX-License-Identifier: Apache-2.0
"""Pages of other sites cannot connect to the viewer."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("viser")
import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from splatcert_viewer.handshake import admitted, guarding, split_link, without_token

TOKEN = "a-secret"


@pytest.fixture(scope="module")
def port():
    with guarding("127.0.0.1", TOKEN):
        server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    yield server.get_port()
    server.stop()


def test_a_foreign_origin_is_refused_at_the_handshake(port):
    mine, address = f"http://127.0.0.1:{port}", f"ws://127.0.0.1:{port}/{TOKEN}"
    protocol = [Subprotocol(f"viser-v{viser.__version__}")]
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(address, origin=Origin(origin), subprotocols=protocol)
    connect(address, origin=Origin(mine), subprotocols=protocol).close()


@pytest.mark.parametrize("path", ["", "/", "/wrong", f"/{TOKEN}x", f"/x/{TOKEN}", f"/?{TOKEN}"])
def test_nothing_is_served_without_the_token(port, path):
    protocol = [Subprotocol(f"viser-v{viser.__version__}")]
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{port}{path}", subprotocols=protocol)
    with pytest.raises(HTTPError, match="403"):
        urlopen(f"http://127.0.0.1:{port}{path}")
    with urlopen(f"http://127.0.0.1:{port}/{TOKEN}") as answer:
        assert b"<html" in answer.read(1000)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/t", "/"),
        ("/t/", "/"),
        ("/t?a=b", "/?a=b"),
        ("/t/index.html?a", "/index.html?a"),
        ("t", None),
        ("", None),
        ("//t", None),
        ("/T", None),
        ("/\xff", None),
    ],
)
def test_a_path_starts_with_the_token(path, expected):
    assert without_token(path, "t") == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ("/", "")),
        ("/index.html?a=b", ("/index.html?a=b", "")),
        ("/mode=RGB", ("/", "mode=RGB")),
        ("/mode=RGB?websocket=ws://x", ("/", "mode=RGB")),
        ("/../secret=1", ("/", "../secret=1")),
    ],
)
def test_what_names_no_file_is_a_link(path, expected):
    assert split_link(path) == expected


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
