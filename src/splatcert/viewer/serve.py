# SPDX-License-Identifier: Apache-2.0
"""The server: one port, on this machine unless told otherwise, and one render loop."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

import viser

from splatcert.errors import InputError
from splatcert.viewer.page import ClientPage
from splatcert.viewer.schedule import RenderLoop
from splatcert.viewer.shown import Exhibit
from splatcert.viewer.viewpoint import viewpoint_of

PATIENCE = 0.25
"""Seconds for a picture under way, and as many for clients to close their connections."""
IN_USE = (
    "port {} is in use, perhaps by a viewer that still runs.\n"
    "  End that one, choose another port, or --port 0 for any that is free."
)


class AddressError(InputError):
    """A place that cannot be listened on."""


class Server(viser.ViserServer):
    """A server that never asks another one to pass its pages on."""

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the page."""
        host = self.get_host()
        reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(host, host)
        return f"http://{reachable}:{self.get_port()}"

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Refuse: whoever can reach this port may look, nobody else."""
        return None


def check_address(host: str, port: int) -> None:
    """Refuse a place that cannot be listened on; the server itself would take another port."""
    if not 0 <= port <= 65535:
        raise AddressError(f"--port must be from 0 to 65535, got {port}.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        raise AddressError(
            f"{host!r} is no address of this machine.\n"
            "  Leave --host out for this machine alone, or use 0.0.0.0 for everybody."
        ) from None
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: IN_USE.format(port),
            errno.EACCES: f"port {port} needs special rights.\n  Choose one above 1023, as 8080.",
        }
        unknown = f"cannot listen on {host}, port {port}: {error.strerror}.\n  Leave --host out."
        raise AddressError(reasons.get(error.errno or 0, unknown)) from None


@contextmanager
def serving(
    exhibit: Exhibit, host: str, port: int, complain: Callable[[Exception], None]
) -> Iterator[Server]:
    """Serve the page as long as the context lasts."""
    check_address(host, port)
    loop = RenderLoop(complain)
    with redirect_stdout(StringIO()):  # what it says of itself, we say with the rest
        server = Server(host=host, port=port, label="splatcert", verbose=False)
    try:
        if port and server.get_port() != port:  # taken since it was checked
            raise AddressError(IN_USE.format(port))
        _furnish(server, exhibit)
        _welcome(server, exhibit, loop)
        loop.start()
        yield server
    finally:
        loop.stop(PATIENCE)
        # Browsers may take seconds to say goodbye. The server need not be waited for.
        leaving = threading.Thread(target=server.stop, daemon=True)
        with redirect_stdout(StringIO()):
            leaving.start()
            leaving.join(PATIENCE)


def _furnish(server: viser.ViserServer, exhibit: Exhibit) -> None:
    """What everybody finds: a dark room, upright, and a view to begin with."""
    server.gui.configure_theme(
        dark_mode=True, control_width="large", show_logo=False, show_share_button=False
    )
    server.scene.set_up_direction(exhibit.up)
    start, camera = exhibit.start.camera, server.initial_camera
    camera.position = start.centre
    camera.look_at = start.centre + exhibit.extent * start.forward
    camera.up = exhibit.up
    camera.fov = viewpoint_of(start).fov


def _welcome(server: viser.ViserServer, exhibit: Exhibit, loop: RenderLoop) -> None:
    """Make a page for every client that comes, and clear up after it."""
    pages: dict[int, ClientPage] = {}

    @server.on_client_connect
    def _(client: viser.ClientHandle) -> None:
        page = pages[client.client_id] = ClientPage(exhibit, client, loop)
        if client.client_id not in server.get_clients():  # it was here only for a moment
            page.leave()

    @server.on_client_disconnect
    async def _(client: viser.ClientHandle) -> None:
        if (page := pages.pop(client.client_id, None)) is not None:
            page.leave()
