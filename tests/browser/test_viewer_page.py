# SPDX-License-Identifier: Apache-2.0
"""The viewer in a real browser: it moves, it toggles, it is dragged, and a view is clicked."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth
from splatcert.report.colours import palette

pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
PlaywrightTimeout = api.TimeoutError

from splatcert_viewer.cameras.flight import viewpoint_from  # noqa: E402
from splatcert_viewer.serve import Server, serving  # noqa: E402
from splatcert_viewer.shown import ViewerState  # noqa: E402
from waiting import until  # noqa: E402

WIDTH, HEIGHT = 1280, 800
FREE = {"x": 0, "y": 300, "width": 800, "height": 400}
"""A part of the canvas that no panel covers."""
CLICKED = {"x": 350, "y": 50, "width": 450, "height": 700}
"""Where frusta are clicked."""


@pytest.fixture(scope="module")
def state() -> ViewerState:
    photos = made_photos()
    certificate = certify(
        made_capture(photos), made_model(made_truth()), predictor=made_predictor()
    )
    return ViewerState.of(certificate, made_capture(photos))


@pytest.fixture
def server(state) -> Iterator[Server]:
    failures: list[Exception] = []
    with serving(state, "127.0.0.1", 0, failures.append) as running:
        yield running
    assert not failures


class Sight:
    """What can be seen of the page."""

    def __init__(self, page) -> None:
        self.page = page

    def fact(self, name: str) -> str:
        return self.page.locator(f"[data-{name}]").first.get_attribute(f"data-{name}")

    def canvas(self, part: dict[str, int] = FREE) -> np.ndarray:
        picture = Image.open(io.BytesIO(self.page.screenshot(clip=part)))
        return np.asarray(picture.convert("RGB")).astype(float)

    def differs(self, before: np.ndarray) -> bool:
        return float(np.abs(self.canvas() - before).mean()) > 2

    def at_rest(self, part: dict[str, int] = FREE) -> np.ndarray:
        """The canvas, once it has not changed over several looks."""
        looks = [self.canvas(part)]

        def unchanged() -> bool:
            looks.append(self.canvas(part))
            return all(np.array_equal(looks[-1], look) for look in looks[-6:])

        until(lambda: unchanged() and len(looks) > 5, every=0.1)
        return looks[-1]


def away_from_palette(pixels: np.ndarray) -> float:
    """Mean distance of some pixels from the nearest colour of the half-width scale."""
    some = pixels[::8, ::8].reshape(-1, 1, 3)
    return float(np.linalg.norm(some - palette()[None].astype(float), axis=2).min(axis=1).mean())


def frustum_pixels(server: Server, state: ViewerState) -> Iterator[tuple[float, float]]:
    """Where frusta of calibration views are on the page, inside their faces."""
    (client,) = server.get_clients().values()
    window = viewpoint_from(client.camera).camera(WIDTH * HEIGHT)
    for view in state.views:
        depth = 0.5 * 0.025 * state.extent
        point = view.camera.centre + depth * view.camera.forward
        (pixel,), (distance,) = window.project(point[None])
        x, y = pixel * (WIDTH, HEIGHT) / (window.width, window.height)
        if view.role == "calibration" and distance > 0.5 and 350 < x < 800 and 50 < y < 750:
            yield x, y


def clicked(page, server: Server, state: ViewerState) -> bool:
    """Click on a frustum where it is now; whether a card of its view comes up."""
    x, y = next(frustum_pixels(server, state))
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    try:
        page.get_by_text("Misses").wait_for(timeout=60_000)
    except PlaywrightTimeout:
        return False
    return all(page.get_by_text(name, exact=True).is_visible() for name in ("Photo", "Render"))


def test_the_page_shows_moves_and_answers(page, seen, server, state):
    sight = Sight(page)
    page.goto(server.address)
    page.locator("[data-factor]").wait_for()
    frusta = page.get_by_role("checkbox", name="calibration views")
    assert sight.fact("mode") == "RGB" and sight.fact("support") in (
        "not flagged",
        "out of distribution",
    )

    # The picture follows the camera; without frusta, which the browser itself draws.
    frusta.uncheck()
    until(lambda: sight.fact("share") == "1")
    before = sight.at_rest()
    assert before.std() > 5
    page.mouse.move(400, 400)
    page.mouse.down()
    page.mouse.move(520, 420, steps=6)
    page.mouse.up()
    until(lambda: sight.differs(before))
    until(lambda: sight.fact("share") == "1")

    # Half-widths have the colours of the scale.
    assert away_from_palette(sight.canvas()) > 20
    page.get_by_role("button", name="half-width", exact=True).click()
    until(lambda: sight.fact("mode") == "half-width" and away_from_palette(sight.canvas()) < 12)

    # Levels answer at once, down to the box that says nothing.
    certified = sight.fact("threshold")
    thumb = page.get_by_role("slider").first.bounding_box()
    page.mouse.move(thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2)
    page.mouse.down()
    page.mouse.move(thumb["x"] + 40, thumb["y"], steps=4)
    until(lambda: float(sight.fact("threshold")) < float(certified))
    page.mouse.move(thumb["x"] - 200, thumb["y"], steps=4)
    page.mouse.up()
    until(lambda: sight.fact("threshold") == "inf")
    assert page.get_by_text("Every box is unbounded").is_visible()

    # A click on a frustum flies there and shows photo, render and misses.
    bare = sight.at_rest(CLICKED)
    frusta.check()
    until(lambda: not np.array_equal(sight.canvas(CLICKED), bare))
    until(lambda: clicked(page, server, state))
    (client,) = server.get_clients().values()
    places = [view.camera.centre for view in state.views if view.role == "calibration"]
    until(lambda: any(np.allclose(client.camera.position, place, atol=1e-3) for place in places))

    assert not seen.errors
    home = server.address
    assert not [
        url for url in seen.elsewhere(home) if not url.startswith(home.replace("http", "ws"))
    ]
