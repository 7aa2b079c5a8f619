# SPDX-License-Identifier: Apache-2.0
"""A camera path recorded by clicking, in a real browser: played, exported and filmed."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from splatcert.frames.film import can_film
from splatcert.scene.readers.camera_files import path_rate, read_cameras
from splatcert_viewer.serve import serving
from waiting import until


def button(page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def drag(page, across: int) -> None:
    page.mouse.move(400, 400)
    page.mouse.down()
    page.mouse.move(400 + across, 410, steps=5)
    page.mouse.up()


@pytest.mark.skipif(not can_film(), reason="PyAV with libx264 is not installed")
def test_a_path_is_recorded_played_exported_and_filmed(page, seen, viewed, tmp_path):
    failures: list[Exception] = []
    films = tmp_path / "films"
    films.mkdir()
    with serving(viewed, "127.0.0.1", 0, failures.append, films) as server:
        page.goto(server.address)
        page.locator("[data-factor]").wait_for()
        (client,) = server.get_clients().values()
        page.get_by_text("Camera path", exact=True).click()
        page.get_by_text("None for a camera path").wait_for()

        # A path needs two views, and the page says so.
        button(page, "add view").click()
        chosen = page.get_by_role("combobox", name="Key view")
        until(lambda: chosen.input_value() == "view 1")
        button(page, "film").click()
        page.get_by_text("a path requires at least 2 views").wait_for()

        places = [np.array(client.camera.position)]
        for number in (2, 3):
            drag(page, 150)
            until(lambda: not np.allclose(client.camera.position, places[-1], atol=1e-3))
            until(lambda: page.locator("[data-share]").get_attribute("data-share") == "1")
            button(page, "add view").click()
            until(lambda number=number: chosen.input_value() == f"view {number}")
            places.append(np.array(client.camera.position))
        button(page, "remove").click()
        until(lambda: chosen.input_value() == "view 2")

        button(page, "play").click()
        until(lambda: np.allclose(client.camera.position, places[0], atol=0.05))
        until(lambda: np.allclose(client.camera.position, places[1], atol=1e-3))

        page.get_by_role("textbox", name="Seconds").fill("1")
        page.get_by_role("textbox", name="Seconds").press("Tab")
        with page.expect_download() as waited:
            button(page, "camera file").click()
            page.get_by_role("link", name="path.json").click()
        exported = tmp_path / "path.json"
        waited.value.save_as(exported)
        cameras = list(read_cameras(exported).values())
        assert len(cameras) == 30 == path_rate(exported)
        assert np.allclose([cameras[0].centre, cameras[-1].centre], places[:2], atol=1e-3)

        button(page, "film").click()
        page.get_by_text("film-001.mp4 and its cameras").wait_for()
        assert page.get_by_text("None for a camera path").is_visible()
        assert page.get_by_text("calibration views (p =").is_visible()
        assert (films / "film-001.mp4").read_bytes()[4:8] == b"ftyp"
        assert json.loads((films / "film-001.json").read_text()) == json.loads(exported.read_text())
    assert not failures and not seen.errors
