# SPDX-License-Identifier: Apache-2.0
"""The server: one port and one render loop. Default: reachable from this machine only.

The address of the page holds a random token, without which nothing is served.
"""

from __future__ import annotations

import errno
import gc
import secrets
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import viser

from splatcert.errors import InputError
from splatcert_viewer.cameras.films import Films
from splatcert_viewer.cameras.viewpoint import viewpoint_of
from splatcert_viewer.handshake import LINK, guarding
from splatcert_viewer.page import ClientPage
from splatcert_viewer.schedule import RenderLoop
from splatcert_viewer.shown import ViewerState

PATIENCE = 0.25
"""Seconds to wait for an unfinished picture, and again for clients to disconnect."""
IN_USE = (
    "port {} is in use, perhaps by another viewer.\n"
    "  Stop that one, choose another port, or pass --port 0 for any free port."
)
COLLECT_EVERY = 8
"""Clients that may leave before their memory is freed: viser's objects refer to each other, and
Python would look for such rings only after many more."""


class AddressError(InputError):
    """An address that cannot be listened on."""


class Server(viser.ViserServer):
    """A server that never relays its pages through another one."""

    token = ""
    """The first part of every path that is served."""

    @property
    def address(self) -> str:
        """URL of the page for a browser on this machine, with the token."""
        host = self.get_host()
        reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(host, host)
        return f"http://{reachable}:{self.get_port()}/{self.token}"

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Refuse: only clients that can reach this port may see the page."""
        return None


def check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on; viser would silently use another port."""
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
            f"{host!r} is not an address of this machine.\n"
            "  Leave --host out for this machine only, or use 0.0.0.0 to admit other machines."
        ) from None
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: IN_USE.format(port),
            errno.EACCES: f"port {port} requires special permissions.\n"
            "  Choose one above 1023, such as 8080.",
        }
        unknown = f"cannot listen on {host}, port {port}: {error.strerror}.\n  Leave --host out."
        raise AddressError(reasons.get(error.errno or 0, unknown)) from None


@contextmanager
def serving(
    state: ViewerState,
    host: str,
    port: int,
    complain: Callable[[Exception], None],
    films: Path | None = None,
) -> Iterator[Server]:
    """Serve the page as long as the context lasts; finished films go to the folder `films`."""
    check_address(host, port)
    loop, token = RenderLoop(complain), secrets.token_urlsafe(16)
    # the command prints the address itself
    with redirect_stdout(StringIO()), guarding(host, token):
        server = Server(host=host, port=port, label="splatcert", verbose=False)
    server.token = token
    for about in ("Queued a .* on a closed connection", r"\[viser\] .* does not match annotation"):
        warnings.filterwarnings("ignore", about)  # a client has left, or sent nonsense
    scratch = tempfile.mkdtemp(prefix="splatcert-films-")
    try:
        if port and server.get_port() != port:  # taken since it was checked
            raise AddressError(IN_USE.format(port))
        _set_up(server, state)
        pages = Pages(state, loop, Films(Path(scratch), films), complain)
        _serve_clients(server, pages)
        loop.start()
        yield server
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        loop.stop(PATIENCE)
        # Browsers may take seconds to disconnect; there is no need to wait for them.
        leaving = threading.Thread(target=server.stop, daemon=True)
        with redirect_stdout(StringIO()):
            leaving.start()
            leaving.join(PATIENCE)


def _set_up(server: viser.ViserServer, state: ViewerState) -> None:
    """Set up what all clients share: theme, up direction and initial camera."""
    server.gui.configure_theme(
        dark_mode=True, control_width="large", show_logo=False, show_share_button=False
    )
    server.scene.set_up_direction(state.up)
    start, camera = state.start.camera, server.initial_camera
    camera.position = start.centre
    camera.look_at = start.centre + state.extent * start.forward
    camera.up = state.up
    camera.fov = viewpoint_of(start).fov


@dataclass(frozen=True, eq=False)
class Pages:
    """What the pages of all clients share."""

    state: ViewerState
    loop: RenderLoop
    films: Films
    complain: Callable[[Exception], None]

    def open(self, client: viser.ClientHandle, link: str) -> ClientPage:
        """The page of one client."""
        return ClientPage(self.state, client, self.loop, self.films, link)


def _serve_clients(server: viser.ViserServer, made: Pages) -> None:
    """Make a page for every client that connects, and remove it when the client leaves."""
    pages: dict[int, ClientPage] = {}
    links: dict[int, str] = {}
    left = 0

    @server.on_client_connect
    async def _(client: viser.ClientHandle) -> None:
        links[client.client_id] = LINK.get()  # known here, but not in the thread of the next one

    @server.on_client_connect
    def _(client: viser.ClientHandle) -> None:
        link = links.pop(client.client_id, "")
        try:
            pages[client.client_id] = made.open(client, link)
        except Exception as error:
            made.complain(error)
        if client.client_id not in server.get_clients():  # it has already disconnected
            remove(client)

    @server.on_client_disconnect
    async def _(client: viser.ClientHandle) -> None:
        remove(client)

    def remove(client: viser.ClientHandle) -> None:
        nonlocal left
        if (page := pages.pop(client.client_id, None)) is not None:
            page.leave()
        left += 1
        if left % COLLECT_EVERY == 0:
            gc.collect()
