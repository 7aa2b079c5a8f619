# SPDX-License-Identifier: Apache-2.0
"""`splatcert view`: a certificate to walk through in the browser."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.console import say, silent
from splatcert.errors import InputError, OptionError

if TYPE_CHECKING:
    from splatcert.viewer.shown import Exhibit

ALONE = ("127.0.0.1", "localhost", "::1")


class ViewerMissingError(InputError):
    """The page's own package is not installed."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Open an interactive page: render, boxes and view difficulty while the camera moves.

    Everything is rendered here, on the processor, and sent to the browser as pictures.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder that splatcert certify wrote."""
    model: Annotated[Path | None, tyro.conf.arg(metavar="MODEL")] = None
    """The model that was certified, where it is not found by itself."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="DATA")] = None
    """The capture, to show photographs whose labels the certificate has used."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 lets other machines look, too."""
    port: int = 8080
    """Port to listen on; 0 for any that is free."""
    open: bool = False
    """Open the page in a browser."""
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Pixels do not depend on it."""
    json: bool = False
    """Print one JSON object instead of words, when the page is there."""

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise OptionError(f"--threads must be 0 or more, got {self.threads}.")

    def run(self) -> None:
        """Load, serve, and end with Ctrl-C."""
        try:
            from splatcert.viewer.serve import check_address, serving
        except ModuleNotFoundError as error:
            if error.name != "viser":
                raise
            raise ViewerMissingError(
                "the interactive page needs viser, which is not installed.\n"
                '  Install it: pip install "splatcert[view]".'
            ) from None
        import torch

        from splatcert.deploy import load_certified_scene, open_certificate
        from splatcert.raster import native
        from splatcert.viewer.shown import Exhibit

        check_address(self.host, self.port)
        native.set_threads(self.threads)
        torch.set_num_threads(1)  # torch's threads would spin on the cores the renderer uses
        certificate = open_certificate(self.certificate, self.model, self.data)
        scene = load_certified_scene(certificate.record, self.data) if self.data else None
        exhibit = Exhibit.of(certificate, scene)
        with serving(exhibit, self.host, self.port, _complain) as server:
            try:
                if self.json:
                    print(json.dumps(self._facts(exhibit, server.address), indent=2))
                with silent(self.json):
                    self._welcome(exhibit, server.address)
                sys.stdout.flush()
                threading.Event().wait()
            except KeyboardInterrupt:
                with silent(self.json):
                    say("ended", "nothing to keep: start it again at any time")

    def _facts(self, exhibit: Exhibit, address: str) -> dict[str, Any]:
        """Where the page is, for scripts."""
        return {
            "kind": "viewer",
            "page": address,
            "certificate": str(self.certificate),
            "guarantee": exhibit.certificate.guarantee,
            "views": len(exhibit.views),
            "photographs": exhibit.scene is not None,
        }

    def _welcome(self, exhibit: Exhibit, address: str) -> None:
        say("certificate", f"{self.certificate}: {exhibit.certificate.guarantee}")
        photos = "with photographs" if exhibit.scene else "give --data for photographs"
        say("capture", f"{len(exhibit.views)} views, {photos}")
        say("page", address)
        if self.host not in ALONE:
            say("careful", "whoever reaches this port can look, at photographs as well")
        if self.open:
            _open(address)
        say("end", "with Ctrl-C")


def _open(address: str) -> None:
    """Open a browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(address):
        say("browser", f"none found: open {address} in one yourself")


def _complain(error: Exception) -> None:
    print(f"splatcert: a picture failed: {type(error).__name__}: {error}", file=sys.stderr)
