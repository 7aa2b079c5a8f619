# SPDX-License-Identifier: Apache-2.0
"""Who may connect, and with which link: every request is examined before anything is served."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import websockets.asyncio.server

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Names of this machine for itself."""
REFUSED = "This page may not connect.\n"
NO_TOKEN = "Open the address that splatcert view printed; it ends in a token.\n"
LINK: ContextVar[str] = ContextVar("link", default="")
"""The link by which a client connects; set for everything that its connection causes."""


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


def split_link(path: str) -> tuple[str, str]:
    """The path of the file to serve, and the link: a last part that contains an equals sign."""
    plain, _, _ = path.partition("?")
    return ("/", plain[1:]) if "=" in plain else (path, "")


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
            request.path, link = split_link(path)
            LINK.set(link)
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
