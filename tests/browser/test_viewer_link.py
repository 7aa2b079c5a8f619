# SPDX-License-Identifier: Apache-2.0
"""The address of a viewer's page in a real browser: it follows the page and restores it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from splatcert_viewer.cameras.flight import viewpoint_from
from splatcert_viewer.serve import Server, serving
from waiting import PATIENCE, until


@pytest.fixture
def server(viewed) -> Iterator[Server]:
    failures: list[Exception] = []
    with serving(viewed, "127.0.0.1", 0, failures.append) as running:
        yield running
    assert not failures


def fact(page, name: str) -> str:
    return page.locator(f"[data-{name}]").first.get_attribute(f"data-{name}")


def address(page) -> str:
    """Asked of the page itself: `page.url` is only as new as the last event."""
    return page.evaluate("location.href")


def test_the_address_restores_camera_mode_and_levels(page, browser, seen, server):
    page.goto(server.address)
    page.locator("[data-factor]").wait_for()
    page.mouse.move(400, 400)
    page.mouse.down()
    page.mouse.move(560, 430, steps=6)
    page.mouse.up()
    page.get_by_role("button", name="half-width", exact=True).click()
    thumb = page.get_by_role("slider").first
    certified = fact(page, "threshold")
    thumb.focus()
    for _ in range(20):
        thumb.press("ArrowRight")
    until(lambda: fact(page, "threshold") != certified)
    (client,) = server.get_clients().values()

    def is_told() -> bool:
        """Whether the address holds the camera where it has come to rest."""
        told = re.search(r"camera=([^&]*)&mode=half-width&alpha=0\.3&", address(page))
        place = [float(number) for number in told[1].split(",")[:3]] if told else [np.inf] * 3
        return np.allclose(place, client.camera.position, atol=1e-4)

    until(is_told)
    link, here = address(page), viewpoint_from(client.camera)
    assert link.startswith(f"{server.address}/") and "?" not in link
    threshold = fact(page, "threshold")

    # In another window the same view comes up, in its mode and at its levels.
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1e3 * PATIENCE)
    other = context.new_page()
    seen.watch(other)
    other.goto(link)
    other.locator("[data-factor]").wait_for()
    until(lambda: len(server.get_clients()) == 2)
    (new,) = (one for one in server.get_clients().values() if one is not client)
    until(lambda: np.allclose(new.camera.position, here.position, atol=1e-4))
    until(lambda: abs(abs(float(new.camera.wxyz @ here.wxyz)) - 1) < 1e-6)
    assert fact(other, "mode") == "half-width" and fact(other, "threshold") == threshold
    assert other.get_by_text("Not usable here").count() == 0

    # So it does when the page is loaded again, however early.
    other.goto(link)
    other.reload()
    other.locator("[data-factor]").wait_for()
    until(lambda: "mode=half-width&alpha=0.3" in address(other))
    until(lambda: address(other).split("camera=")[1][:20] == link.split("camera=")[1][:20])
    assert fact(other, "mode") == "half-width" and fact(other, "threshold") == threshold

    # What a link may not choose is named in one line.
    other.goto(f"{server.address}/mode=half-width&alpha=7&camera=nan,1&x=%3Cb%3E")
    other.get_by_text("Not usable here, ignored: an unknown entry, alpha, camera").wait_for()
    assert fact(other, "mode") == "half-width" and fact(other, "threshold") == certified
    context.close()
    assert not seen.errors
