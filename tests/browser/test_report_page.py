# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: silent, self-contained, usable by hand and by key."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from certified_capture import (
    HELD_OUT,
    made_capture,
    made_model,
    made_photos,
    made_predictor,
    made_truth,
)
from certified_capture import certify_scene as certify
from splatcert import ReportConfig, write_report

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    cameras, pictures = made_photos()
    name = {short: f"{'a-long-folder-name_' * 8}/{short}" for short in cameras}
    photos = ({name[k]: v for k, v in cameras.items()}, {name[k]: v for k, v in pictures.items()})
    held_out, model = [name[k] for k in HELD_OUT], made_model(made_truth())
    certificate = certify(made_capture(photos, held_out), model, predictor=made_predictor())
    stored = certificate.save(folder / "cert")
    options = ReportConfig(photos=True, views=3)
    scene = made_capture(photos, held_out)
    full = write_report(stored, folder / "full.html", scene, model, options)
    return {"full": full, "alone": write_report(stored, folder / "alone.html")}


@pytest.mark.parametrize("name", ["full", "alone"])
@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 800}], ids=["phone", "desk"])
def test_it_fits_says_nothing_and_asks_nobody(page, seen, written, name, size):
    page.set_viewport_size(size)
    page.goto(written[name].as_uri())
    for section in page.locator("section").all():
        section.scroll_into_view_if_needed()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert seen.errors == []
    assert seen.requests == [written[name].as_uri()]
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
    assert page.evaluate(broken) == 0


def test_dark_and_light_follow_the_system_and_the_button(page, written):
    paper = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    page.goto(written["full"].as_uri())
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate(paper)
    assert dark != light
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(paper) == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(paper) == light  # the button has the last word
    page.reload()
    assert page.evaluate(paper) == dark
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(paper) not in (light, dark)  # paper has its own colour


def test_pictures_are_compared_by_hand_and_by_key(page, seen, written):
    page.goto(written["full"].as_uri())
    split = "getComputedStyle(document.getElementById('stage')).getPropertyValue('--split')"
    assert page.evaluate(split) == "50%"
    stage = page.locator("#stage")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"])
    assert abs(float(page.evaluate(split).rstrip("%")) - 25) <= 1
    page.keyboard.press("End")
    assert page.evaluate(split) == "100%"

    shown = "document.querySelector('#right img').src"
    before = page.evaluate(shown)
    page.get_by_role("button", name="lower edge | upper edge").click()
    assert page.evaluate(shown) != before
    assert page.locator("#left-name").inner_text() == "lower edge"
    page.get_by_role("button", name="render | misses").click()
    assert page.locator("#right img").count() == 2  # a faded render and the misses on it
    before = page.evaluate("document.querySelector('#left img').src")
    page.locator("[data-compare]").last.click()
    assert page.evaluate("document.querySelector('#left img').src") != before
    assert page.locator("#compare-view").input_value() == "3"
    assert seen.errors == []


def test_nothing_foreign_runs_or_loads(page, seen, written, tmp_path):
    """Should a name ever escape the escaping, the page's policy still stops it."""
    Image.new("RGB", (2, 2)).save(tmp_path / "x.png")
    text = written["alone"].read_text(encoding="utf-8")
    take = "document.title='taken'"
    attack = f"<script>{take}</script><img id=foreign src=x.png onload={take} onerror={take}>"
    foreign = tmp_path / "foreign.html"
    foreign.write_text(text.replace("</main>", attack + "</main>"), encoding="utf-8")
    page.goto(foreign.as_uri())
    assert page.title() == "memory: certified error bars"
    assert page.evaluate("document.getElementById('foreign').naturalWidth") == 0
    assert any("Content Security Policy" in error for error in seen.errors)


def test_everything_can_be_reached_by_key(page, written):
    page.goto(written["alone"].as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"A", "BUTTON", "SUMMARY"} <= reached


def test_boxes_fade_onto_the_render(page, written):
    page.goto(written["full"].as_uri())
    opacity = "getComputedStyle(document.getElementById('right')).opacity"
    assert page.evaluate(opacity) == "1"
    page.get_by_label("Fade instead of divide").check()
    slider = page.get_by_role("slider")
    slider.fill("25")
    assert page.evaluate(opacity) == "0.25"
    assert "Strength" in (slider.get_attribute("aria-label") or "")
    page.get_by_label("Fade instead of divide").uncheck()
    assert page.evaluate(opacity) == "1"
