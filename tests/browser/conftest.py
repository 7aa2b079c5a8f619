# SPDX-License-Identifier: Apache-2.0
"""A real browser, headless, that keeps account of what a page says and asks for.

`page` is a fresh Playwright page; `seen` is what happened on it. Without a browser on this
machine the tests are skipped and say why.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth
from waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType, Page

    from splatcert_viewer.shown import ViewerState

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Containers give no sandbox, and WebGL without a graphics card is drawn in software.
ARGUMENTS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")


@dataclass
class Seen:
    """What a page has done so far."""

    errors: list[str] = field(default_factory=list)
    """Errors on the console, and exceptions nobody caught."""
    requests: list[str] = field(default_factory=list)
    """Addresses asked for, the page's own included; data: and blob: ask nobody."""

    def elsewhere(self, home: str) -> list[str]:
        """Requests that do not start with `home`."""
        return [address for address in self.requests if not address.startswith(home)]

    def watch(self, page: Page) -> None:
        """Listen from now on."""
        page.on("console", lambda said: self._say(said.type, said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._ask(request.url))
        page.on("websocket", lambda socket: self._ask(socket.url))

    def _say(self, kind: str, text: str) -> None:
        if kind == "error":
            self.errors.append(text)

    def _ask(self, address: str) -> None:
        if not address.startswith(("data:", "blob:")):
            self.requests.append(address)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it, or as Playwright has installed it.

    Closed after each module, because its renderer may go on drawing after pages are closed.
    """
    reason = "Playwright is not installed: pip install splatcert[dev]"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    with api.sync_playwright() as playwright:
        path = _chromium(playwright.chromium)
        if path is None:
            pytest.skip("no Chromium on this machine: install one, or run playwright install")
        opened = playwright.chromium.launch(
            executable_path=path, args=list(ARGUMENTS), timeout=1e3 * PATIENCE
        )
        yield opened
        opened.close()


def _chromium(known: BrowserType) -> str | None:
    own = known.executable_path
    return next(filter(None, map(shutil.which, NAMES)), own if Path(own).is_file() else None)


@pytest.fixture
def seen() -> Seen:
    """What happens on `page`."""
    return Seen()


@pytest.fixture
def page(browser: Browser, seen: Seen) -> Iterator[Page]:
    """A page with no history, 1280 by 800 pixels; everything on it is recorded in `seen`."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1e3 * PATIENCE)
    fresh = context.new_page()
    seen.watch(fresh)
    yield fresh
    context.close()


@pytest.fixture(scope="session")
def viewed() -> ViewerState:
    """A small certificate, as a viewer shows it without photographs."""
    pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
    from splatcert_viewer.shown import ViewerState

    scene = made_capture(made_photos())
    certificate = certify(scene, made_model(made_truth()), predictor=made_predictor())
    return ViewerState.of(certificate, None)
