# SPDX-License-Identifier: Apache-2.0
"""The server: one port and one render loop. Default: reachable from this machine only.

The address of the page holds a random token, without which nothing is served.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import secrets
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from http import HTTPStatus
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import viser
import websockets.asyncio.server

from splatcert.errors import InputError
from splatcert_viewer.page import ClientPage
from splatcert_viewer.schedule import RenderLoop
from splatcert_viewer.shown import ViewerState
from splatcert_viewer.viewpoint import viewpoint_of

PATIENCE = 0.25
"""Seconds to wait for an unfinished picture, and again for clients to disconnect."""
LOCAL = ("127.0.0.1", "localhost", "::1")
"""Names of this machine for itself."""
IN_USE = (
    "port {} is in use, perhaps by another viewer.\n"
    "  Stop that one, choose another port, or pass --port 0 for any free port."
)


REFUSED = "This page may not connect.\n"
NO_TOKEN = "Open the address that splatcert view printed; it ends in a token.\n"
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


def admitted(host: str | None, origin: str | None, listening: str) -> bool:
    """Whether a request may come in, by its Host and Origin and by where the server listens.

    A foreign page can open a WebSocket to this machine, but the browser names it as Origin. A
    foreign name that resolves to this machine is not one of ours; which names are ours is known
    only if the server is local.
    """
    try:
        name = urlsplit(f"//{host or ''}").hostname
        same = origin is None or urlsplit(origin).netloc == host
    except ValueError:
        return False
    return same and (listening not in LOCAL or name in LOCAL)


def without_token(path: str, token: str) -> str | None:
    """The rest of a path that starts with the token; None if it does not."""
    _, _, inner = path.partition("/")
    first, _, rest = inner.partition("/")
    found, _, query = first.partition("?")
    known = secrets.compare_digest(found.encode(errors="replace"), token.encode())
    return f"/{rest}" + f"?{query}" * bool(query) if known else None


class _OneLine(logging.Handler):
    """Reports a client that was disconnected for what it sent, without a traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if record.levelno >= logging.ERROR and error is not None:
            _report(error)


def _report(error: BaseException) -> None:
    print(
        "splatcert: a client sent a message that cannot be used "
        f"({type(error).__name__}); the others are not affected",
        file=sys.stderr,
    )


def _log() -> logging.Logger:
    """Where the server's library reports failures."""
    log = logging.Logger("splatcert viewer")
    log.addHandler(_OneLine())
    return log


@contextmanager
def guarding(listening: str, token: str) -> Iterator[None]:
    """Servers that start meanwhile refuse requests that are not admitted or lack the token.

    viser offers no hook for this, so the function by which it starts is wrapped while it does.
    """
    server: Any = websockets.asyncio.server
    serve: Callable[..., Any] = server.serve

    def guarded(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        def process(connection: Any, request: Any) -> Any:
            host, origin = (request.headers.get(name) for name in ("Host", "Origin"))
            if not admitted(host, origin, listening):
                return connection.respond(HTTPStatus.FORBIDDEN, REFUSED)
            path = without_token(request.path, token)
            if path is None:
                return connection.respond(HTTPStatus.FORBIDDEN, NO_TOKEN)
            request.path = path
            return None if process_request is None else process_request(connection, request)

        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: _report(context.get("exception") or RuntimeError())
        )
        return serve(*arguments, process_request=process, logger=_log(), **options)

    server.serve = guarded
    try:
        yield
    finally:
        server.serve = serve


@contextmanager
def serving(
    state: ViewerState, host: str, port: int, complain: Callable[[Exception], None]
) -> Iterator[Server]:
    """Serve the page as long as the context lasts."""
    check_address(host, port)
    loop, token = RenderLoop(complain), secrets.token_urlsafe(16)
    # the command prints the address itself
    with redirect_stdout(StringIO()), guarding(host, token):
        server = Server(host=host, port=port, label="splatcert", verbose=False)
    server.token = token
    for about in ("Queued a .* on a closed connection", r"\[viser\] .* does not match annotation"):
        warnings.filterwarnings("ignore", about)  # a client has left, or sent nonsense
    try:
        if port and server.get_port() != port:  # taken since it was checked
            raise AddressError(IN_USE.format(port))
        _set_up(server, state)
        _serve_clients(server, state, loop, complain)
        loop.start()
        yield server
    finally:
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


def _serve_clients(
    server: viser.ViserServer,
    state: ViewerState,
    loop: RenderLoop,
    complain: Callable[[Exception], None],
) -> None:
    """Make a page for every client that connects, and remove it when the client leaves."""
    pages: dict[int, ClientPage] = {}
    left = 0

    @server.on_client_connect
    def _(client: viser.ClientHandle) -> None:
        try:
            pages[client.client_id] = ClientPage(state, client, loop)
        except Exception as error:
            complain(error)
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
