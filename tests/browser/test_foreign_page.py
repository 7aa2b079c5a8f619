# SPDX-License-Identifier: Apache-2.0
"""A page of another site, in a real browser, gets nothing from the viewer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth

viser = pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from splatcert_viewer.serve import Server, serving  # noqa: E402
from splatcert_viewer.shown import ViewerState  # noqa: E402

ATTACK = """async ([server, token, protocol]) => {
  const socket = (path) => new Promise((done) => {
    let heard = "refused";
    const open = new WebSocket(`ws://${server}${path}`, [protocol]);
    open.onmessage = () => { heard = "a message"; open.close(); };
    open.onopen = () => { heard = "open"; };
    open.onclose = () => done(heard);
  });
  const photo = (path) => new Promise((done) => {
    const image = new Image();
    image.onload = () => done("a picture");
    image.onerror = () => done("refused");
    image.src = `http://${server}${path}`;
  });
  const page = async (path) => {
    try { return (await (await fetch(`http://${server}${path}`)).text()) ? "text" : "nothing"; }
    catch { return "refused"; }
  };
  return {
    "socket without token": await socket(""),
    "socket with a guess": await socket("/guess"),
    "socket with the token": await socket(`/${token}`),
    "photo": await photo("/images/00.png"),
    "photo with the token": await photo(`/${token}/images/00.png`),
    "page": await page("/"),
    "page with the token": await page(`/${token}`),
  };
}"""
"""What a hostile page tries; it cannot know the token, and even with it gets nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    photos = made_photos()
    certificate = certify(
        made_capture(photos), made_model(made_truth()), predictor=made_predictor()
    )
    state = ViewerState.of(certificate, made_capture(photos))
    with serving(state, "127.0.0.1", 0, print) as running:
        yield running


class Hostile(BaseHTTPRequestHandler):
    """Any page at all, on a port of its own: that makes it another site."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    site = HTTPServer(("127.0.0.1", 0), Hostile)
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{site.server_port}"
    site.shutdown()


def test_a_foreign_page_gets_nothing_and_the_own_page_works(page, server, elsewhere):
    page.goto(elsewhere)
    place = f"127.0.0.1:{server.get_port()}"
    found = page.evaluate(ATTACK, [place, server.token, f"viser-v{viser.__version__}"])
    assert set(found.values()) == {"refused"}, found
    assert not server.get_clients()
    page.goto(server.address)
    page.locator("[data-factor]").wait_for()
    assert len(server.get_clients()) == 1
