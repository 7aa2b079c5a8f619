# SPDX-License-Identifier: Apache-2.0
"""A report shows named quantities with their own promise, and claims nothing more about them."""

from __future__ import annotations

import numpy as np
import pytest

import splatcert as sc
from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_truth
from splatcert.conformal import CalibrationTooSmall, Quantity, ViewConformal
from splatcert.report.quantities import QuantityError, ShownQuantity

SHAPE = (24, 32)


def calibrated(quantity: Quantity | None) -> ViewConformal:
    rng = np.random.default_rng(0)
    scales = [0.01 + rng.random(SHAPE) for _ in range(12)]
    residuals = [0.1 * scale * rng.random(SHAPE) for scale in scales]
    return ViewConformal("1/10", "1/10", quantity).conformalize(residuals, scales)


def test_a_quantity_is_shown_with_its_unit_and_its_own_promise(tmp_path):
    depth = calibrated(Quantity("depth", "m"))
    rendered, scale = np.linspace(2, 5, 24 * 32).reshape(SHAPE), np.full(SHAPE, 0.5)
    seen = np.arange(24 * 32).reshape(SHAPE) > 50
    boxes = depth.predict_interval(rendered[..., None], scale, seen)
    shown = ShownQuantity(depth, {"<lobby>": boxes})
    (view,) = shown.views()
    assert view.words.startswith("depth ±") and view.words.endswith(" m at its median pixel")
    assert "2.2 (dark) to 5 m" in view.panels[0].label
    stored = certify(made_capture(made_photos()), made_model(made_truth())).save(tmp_path / "cert")
    page = sc.write_report(stored, tmp_path / "page.html", quantities=[shown]).read_text("utf-8")
    assert "a box bounds the depth in m" in page and "&lt;lobby&gt;" in page
    assert "<lobby>" not in page and "The certificate does not store it" in page
    assert "Other quantities" not in sc.write_report(stored, tmp_path / "b.html").read_text("utf-8")


def test_unbounded_boxes_are_said_to_be(tmp_path):
    few = ViewConformal("1/10", "1/10", Quantity("normal"))
    with pytest.warns(CalibrationTooSmall):
        few.conformalize([np.ones(SHAPE)], [np.ones(SHAPE)])
    boxes = few.predict_interval(np.zeros((*SHAPE, 1)), np.ones(SHAPE))
    (view,) = ShownQuantity(few, {"view": boxes}).views()
    assert view.words == "every box is unbounded"


def test_a_quantity_without_a_name_is_refused():
    with pytest.raises(QuantityError, match="with a name and a unit"):
        ShownQuantity(calibrated(None), {})
