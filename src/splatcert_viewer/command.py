# SPDX-License-Identifier: Apache-2.0
"""`splatcert view`: explore a certificate in the browser."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands import MEMBER, unset
from splatcert.commands.engines import CertifiedEngineOptions, Engine
from splatcert.console import say, say_all, silent
from splatcert.errors import InputError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    from splatcert_viewer.shown import ViewerState

ALONE = ("127.0.0.1", "localhost", "::1")


class ViewerMissingError(InputError):
    """The viewer's package is not installed."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Explore a certificate in the browser: renders, boxes and view difficulty.

    This machine renders every picture and sends it to the browser.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    model: Annotated[Path | None, unset("MODEL")] = None
    """Path to the certified model, if it has moved."""
    data: Annotated[Path | None, unset("DATA")] = None
    """Path to the capture, to show the photographs that the certificate used."""
    member: Annotated[str | None, unset("NAME", text=MEMBER)] = None
    films: Annotated[Path | None, unset("FOLDER")] = None
    """Folder for films of recorded camera paths. Default: the browser downloads them."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 admits other machines."""
    port: int = 8080
    """Port to listen on; 0 for any free port."""
    open: bool = False
    """Open the page in the default browser."""
    engine: tyro.conf.OmitArgPrefixes[CertifiedEngineOptions] = field(
        default_factory=CertifiedEngineOptions
    )
    json: bool = False
    """Print one JSON object instead of text once the page is served."""

    def run(self) -> None:
        """Load, and serve until Ctrl-C."""
        self.engine.attempt(self._run)

    def _run(self, engine: Engine) -> None:
        try:
            from splatcert_viewer.serve import check_address, serving
        except ModuleNotFoundError as error:
            if error.name != "viser":
                raise
            raise ViewerMissingError(
                "the viewer requires viser, which is not installed.\n"
                '  Install it: pip install "splatcert[view]".'
            ) from None
        import torch

        from splatcert.deploy import load_certified_scene, open_certificate
        from splatcert_viewer.shown import ViewerState

        check_address(self.host, self.port)
        if self.films is not None:
            output_folder(self.films)
        torch.set_num_threads(1)  # torch's threads would spin on the cores the renderer uses
        certificate = open_certificate(
            self.certificate, self.model, self.data, self.member, engine.asked
        )
        scene = load_certified_scene(certificate.record, self.data) if self.data else None
        state = ViewerState.of(certificate, scene)
        with serving(state, self.host, self.port, _complain, self.films) as server:
            try:
                if self.json:
                    print(json.dumps(self._facts(state, server.address), indent=2))
                with silent(self.json):
                    self._welcome(state, server.address)
                sys.stdout.flush()
                threading.Event().wait()
            except KeyboardInterrupt:
                with silent(self.json):
                    say("Ended", "start the viewer again at any time")

    def _facts(self, state: ViewerState, address: str) -> dict[str, Any]:
        """The facts that scripts get, as JSON."""
        return {
            "kind": "viewer",
            "page": address,
            "certificate": str(self.certificate),
            "guarantee": state.certificate.guarantee,
            "views": len(state.views),
            "photographs": state.scene is not None,
        }

    def _welcome(self, state: ViewerState, address: str) -> None:
        from splatcert.report.words.promise import promise_lines

        say("Certificate", str(self.certificate))
        say_all(promise_lines(state.certificate))
        if (other := state.certificate.other) is not None:
            say("Back end", other.words(state.certificate.record.renderer.backend))
        photos = "with photographs" if state.scene else "pass --data to show photographs"
        say("Capture", f"{len(state.views)} views; {photos}")
        if self.films is not None:
            say("Films", f"of recorded camera paths go to {self.films}")
        say("Page", address)
        if self.host not in ALONE:
            say("Warning", "everyone who has this address can see the page and its photographs")
        if self.open:
            _open(address)
        say("Stop", "press Ctrl-C")


def _open(address: str) -> None:
    """Open a browser, or say that none was found."""
    import webbrowser

    if not webbrowser.open(address):
        say("Browser", f"none found; open {address} yourself")


def _complain(error: Exception) -> None:
    print(
        f"splatcert: rendering a picture failed: {type(error).__name__}: {error}", file=sys.stderr
    )
