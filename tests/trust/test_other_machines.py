# SPDX-License-Identifier: Apache-2.0
"""An honest certificate is valid on a different kind of machine; a gainful forgery is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from resealed import changed, numbers, tensors

from certified_capture import (
    certify_scene,
    made_capture,
    made_model,
    made_photos,
    made_predictor,
    made_truth,
    verify_scene,
)
from splatcert.capture import open_capture
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.store import read_certificate, read_content
from splatcert.deploy import certified_capture, verify
from splatcert.pipeline import certify
from splatcert.raster import native
from splatcert.scales.paper import PaperScale
from splatcert.scales.thaw import half_widths
from splatcert.scene import pixels
from splatcert.splats.files import save_ply
from splatcert.verification.checks import CheckFailed
from splatcert.verification.recompute import compare
from splatcert.verification.tolerances import OTHER_DECODER, SAME_PIXELS

ISAS = native.available_isas()
OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def photos():
    return made_photos()


@pytest.fixture(autouse=True)
def restored():
    yield
    native.set_isa(ISAS[0])


@pytest.fixture(scope="module")
def by_isa(photos) -> dict[str, Certificate]:
    """The same capture certified under every instruction set of this machine."""
    made = {}
    for isa in ISAS:
        native.set_isa(isa)
        model = made_model(made_truth())
        made[isa] = certify_scene(made_capture(photos), model, predictor=made_predictor())
    return made


def failures(stored: Certificate, again: Certificate) -> dict[str, str]:
    """Failed checks of a certificate against the one that `verify` would recompute here."""
    model, scale = made_model(made_truth()), PaperScale(made_predictor())
    maps = half_widths(stored, again, model, scale)
    return {one.name: one.detail for one in compare(stored, again, maps) if not one.passed}


@pytest.mark.parametrize("here", ISAS)
@pytest.mark.parametrize("there", ISAS)
def test_a_certificate_is_valid_under_every_instruction_set(by_isa, there, here):
    native.set_isa(here)
    assert not failures(by_isa[there], by_isa[here])


def test_the_command_verifies_it_too(by_isa, photos, tmp_path):
    by_isa[ISAS[0]].save(tmp_path / "cert")
    native.set_isa(ISAS[-1])
    found = verify_scene(tmp_path / "cert", made_capture(photos), made_model(made_truth()))
    assert found.passed, found.failures
    assert {"new scores", "new q", "new factors", "half-widths"} <= {c.name for c in found.checks}


def narrower_scores(content: dict[str, Any]) -> None:
    for view in content["calibration"]:
        view["score"] *= 0.999


def smaller_threshold(content: dict[str, Any]) -> None:
    content["guarantee"]["threshold"] *= 0.999


def smaller_factors(content: dict[str, Any]) -> None:
    for view in content["calibration"]:
        view["factor"] *= 0.999


def smaller_units(content: dict[str, Any]) -> None:
    units = content["scale"]["parameters"]
    units["feature_means"] = [mean * 1.01 for mean in units["feature_means"]]


def lower_field(arrays: dict[str, np.ndarray]) -> None:
    arrays["coefficients"] *= 0.999


def lower_in_places(arrays: dict[str, np.ndarray]) -> None:
    arrays["coefficients"][::50] *= 0.5


def one_gaussian(arrays: dict[str, np.ndarray]) -> None:
    worst = np.abs(arrays["coefficients"]).max(axis=1).argmax()
    arrays["coefficients"][worst] *= 0.9


def more_support(arrays: dict[str, np.ndarray]) -> None:
    arrays["support"] *= 1.02


def moved_descriptors(arrays: dict[str, np.ndarray]) -> None:
    arrays["training_descriptors"] = arrays["training_descriptors"] * 1.001


def one_descriptor(arrays: dict[str, np.ndarray]) -> None:
    changed = arrays["training_descriptors"].copy()
    changed[3] *= 1.2
    arrays["training_descriptors"] = changed


def lower_oracle(arrays: dict[str, np.ndarray]) -> None:
    arrays["held_out_oracle"] = arrays["held_out_oracle"] * 0.999


FORGERIES = {
    changed: (
        (narrower_scores, "new scores"),
        (smaller_threshold, "new q"),
        (smaller_factors, "new factors"),
        (smaller_units, "new factors"),
    ),
    tensors: (
        (lower_field, "field"),
        (lower_in_places, "half-widths"),
        (one_gaussian, "field"),
        (more_support, "field"),
    ),
    numbers: (
        (moved_descriptors, "numbers"),
        (one_descriptor, "numbers"),
        (lower_oracle, "numbers"),
    ),
}


@pytest.mark.parametrize(
    ("spoil", "change", "named"),
    [(spoil, *case) for spoil, cases in FORGERIES.items() for case in cases],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_gainful_change_under_a_new_seal_fails(by_isa, tmp_path, spoil, change, named):
    """Recomputing finds each by itself, whatever else the change contradicts."""
    folder = by_isa[ISAS[0]].save(tmp_path / "cert")
    spoil(change)(folder)
    assert named in failures(read_certificate(folder), by_isa[ISAS[0]])


@pytest.fixture(scope="module")
def on_disk(photos, tmp_path_factory) -> tuple[Path, Path, Path]:
    """Capture, model and certificate as files."""
    folder = tmp_path_factory.mktemp("files")
    cameras, pictures = photos
    (folder / "capture" / "images").mkdir(parents=True)
    frames = []
    for name, camera in cameras.items():
        grey = (255 * pictures[name].numpy()).round().astype(np.uint8)
        Image.fromarray(grey).save(folder / "capture" / "images" / name)
        to_world = np.linalg.inv(camera.world_to_camera) @ OPENGL
        frames.append({"file_path": f"images/{name}", "transform_matrix": to_world.tolist()})
    lens = next(iter(cameras.values()))
    shared = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy}
    content = {**shared, "w": lens.width, "h": lens.height, "frames": frames}
    (folder / "capture" / "transforms.json").write_text(json.dumps(content))
    save_ply(made_model(made_truth()), folder / "model.ply")
    capture = open_capture(folder / "capture", folder / "model.ply", holdout="3")
    certify(capture, scale=PaperScale(made_predictor())).save(folder / "cert")
    return folder / "capture", folder / "model.ply", folder / "cert"


def verify_decoded(on_disk, monkeypatch, step):
    """Verify with an image library whose pixels differ by `step(shape)` of 255."""
    data, model, folder = on_disk
    plain = pixels.decode

    def decode(path):
        colours, alpha = plain(path)
        moved = colours.astype(np.int64) + step(colours.shape)
        return moved.clip(0, 255).astype(np.uint8), alpha

    monkeypatch.setattr(pixels, "decode", decode)
    return verify(folder, certified_capture(read_content(folder)[1], data, model))


def test_pixels_that_differ_by_a_step_pass_with_a_note(on_disk, monkeypatch):
    """One value in fifty; the residuals of this capture are only a few steps large."""
    rng = np.random.default_rng(0)

    def step(shape):
        return rng.integers(0, 2, shape) * (rng.random(shape) < 1 / 50)

    found = verify_decoded(on_disk, monkeypatch, step)
    assert found.passed, found.failures
    told = {check.name: check.detail for check in found.checks}["photos"]
    assert "all 36 files match; 36 decode to slightly different pixels here" in told


def test_pixels_that_differ_much_fail_although_the_files_match(on_disk, monkeypatch):
    found = verify_decoded(on_disk, monkeypatch, lambda shape: 20)
    assert "new scores" in {check.name for check in found.failures}


def test_different_files_fail_even_by_a_step(on_disk, photos):
    """Only the certified file may decode differently; a retouched one is a different photo."""
    stored = read_certificate(on_disk[2])
    first = stored.record.calibration[0]
    retouched = replace(first, image="0" * 64, file="0" * 64)
    record = replace(stored.record, calibration=(retouched, *stored.record.calibration[1:]))
    told = {c.name: c for c in compare(replace(stored, record=record), stored)}
    assert told["photos"].passed is False and first.name in told["photos"].detail


@pytest.mark.parametrize("tolerance", [SAME_PIXELS, OTHER_DECODER])
def test_outliers_are_few_and_limited(tolerance):
    again = np.ones(100_000)
    allowed = int(tolerance.share * again.size)
    stored = again.copy()
    stored[:allowed] += 0.9 * tolerance.far
    assert tolerance.check("numbers", stored, again, 1.0) == pytest.approx(0.9 * tolerance.far)
    stored[allowed] += 2 * tolerance.near
    with pytest.raises(CheckFailed, match=f"{allowed + 1:,} of 100,000 numbers differ"):
        tolerance.check("numbers", stored, again, 1.0)
    one = again.copy()
    one[0] += 1.1 * tolerance.far
    with pytest.raises(CheckFailed, match="the worst by"):
        tolerance.check("numbers", one, again, 1.0)
    for value in (np.nan, np.inf):
        one[0] = value
        with pytest.raises(CheckFailed):
            tolerance.check("numbers", one, again, 1.0)
    assert tolerance.check("numbers", one, one, 1.0) == 0.0
