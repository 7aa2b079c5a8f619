# SPDX-License-Identifier: Apache-2.0
"""Clients of the viewer without a browser: a connection, and the messages that a page sends."""

from __future__ import annotations

import dataclasses

import msgspec
import viser
from viser._messages import ViewerCameraMessage
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from splatcert_viewer.serve import Server
from waiting import PATIENCE


def join(server: Server, link: str = "") -> ClientConnection:
    protocol = [Subprotocol(f"viser-v{viser.__version__}")]
    address = f"{server.address.replace('http', 'ws')}/{link}".rstrip("/")
    return connect(address, subprotocols=protocol, max_size=None, open_timeout=PATIENCE)


def camera_message(**changes: object) -> bytes:
    message = ViewerCameraMessage(
        wxyz=(1.0, 0.0, 0.0, 0.0),
        position=(0.0, 0.0, -3.0),
        fov=1.0,
        near=0.01,
        far=100.0,
        image_height=90,
        image_width=160,
        look_at=(0.0, 0.0, 0.0),
        up_direction=(0.0, -1.0, 0.0),
    )
    names = [field.name for field in dataclasses.fields(message) if field.init]
    content = {name: getattr(message, name) for name in names} | changes
    return msgspec.msgpack.encode({"type": "ViewerCameraMessage", **content})
