# SPDX-License-Identifier: Apache-2.0
"""`splatcert export`: copies that other tools open, with columns that mean what is said."""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from plyfile import PlyData

from splat_layouts import assert_same_bits
from splatcert import cli, load_certificate, load_splats, open_view
from splatcert.export import STORED, OrbitError, SafeOrbit
from splatcert.report.colours import WidthScale
from splatcert.scene.camera_paths import look_at
from splatcert.splats.formats.save import save_spz
from splatcert_bench.synthetic.scenes import made_cameras

RULE = "views_seen >= 3 and uncertainty < 0.2 and opacity > 0.05"


@pytest.fixture(scope="module")
def exported(certified, tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "out"
    assert cli.main(["export", str(certified), "-o", str(out), "--keep", RULE]) == 0
    return out


@pytest.mark.parametrize("format", ["spz", "glb"])
def test_other_formats_open_again(certified, tmp_path, format, capsys):
    out = tmp_path / "out"
    assert cli.main(["export", str(certified), "-o", str(out), "--format", format]) == 0
    assert f"support.{format}" in capsys.readouterr().out
    again = load_splats(out / f"support.{format}")
    whole = load_splats(certified.parent / "model.ply")
    assert len(again) == len(whole)
    assert float((again.means - whole.means).abs().max()) < 1e-3


def test_the_orbit_of_the_calibration_cameras_travels_in_spz(certified, tmp_path, capsys):
    """SPZ_ADOBE_safe_orbit_camera: type, length and three floats after the Gaussians."""
    out = tmp_path / "out"
    line = ["export", str(certified), "-o", str(out), "--safe-orbit", "--format"]
    assert cli.main([*line, "glb"]) == 2
    assert "--safe-orbit requires --format spz" in capsys.readouterr().err
    assert cli.main([*line, "spz"]) == 0
    assert "Safe orbit" in capsys.readouterr().out
    known = json.loads((out / "safe_orbit.json").read_text())
    for stem in ("support", "uncertainty"):
        data = gzip.decompress((out / f"{stem}.spz").read_bytes())
        assert data[14] & 2
        kind, length, *limits = struct.unpack("<II3f", data[-20:])
        assert (kind, length) == (0xADBE0002, 12)
        stored = known["elevation_min"], known["elevation_max"], known["radius_min"]
        assert limits == pytest.approx(stored, rel=1e-6)
    centre, up = np.array(known["centre"]), np.array(known["up"])
    for view in load_certificate(certified).record.calibration:
        away = view.camera.centre - centre
        radius = np.linalg.norm(away)
        elevation = np.arcsin(away @ up / radius)
        assert radius >= known["radius_min"] - 1e-9
        assert known["elevation_min"] - 1e-9 <= elevation <= known["elevation_max"] + 1e-9
    plain, whole = tmp_path / "plain.spz", load_splats(certified.parent / "model.ply")
    save_spz(whole, plain)
    assert_same_bits(load_splats(plain), load_splats(out / "support.spz"))


def test_cameras_that_look_outward_have_no_orbit():
    outward = [
        replace(camera, world_to_camera=look_at(camera.centre, camera.centre, np.eye(3)[1]))
        for camera in made_cameras(8, 48, 32)
    ]
    with pytest.raises(OrbitError, match="Omit --safe-orbit"):
        SafeOrbit.of(outward)


@pytest.fixture(scope="module")
def certificate(certified):
    return load_certificate(certified, load_splats(certified.parent / "model.ply"))


def table(path):
    return PlyData.read(str(path))["vertex"].data


def test_usual_columns_are_untouched_and_the_rest_follow(exported, certified, certificate):
    whole, model = table(exported / "support.ply"), table(certified.parent / "model.ply")
    assert whole.dtype.names == (*model.dtype.names, *STORED)
    for name in model.dtype.names:
        np.testing.assert_array_equal(whole[name], model[name])
    np.testing.assert_array_equal(whole["exposure"], certificate.fitted.support.exposure)
    assert set(json.loads((exported / "columns.json").read_text())) == set(STORED)


def test_views_seen_counts_the_views_one_by_one(exported, certificate):
    seen = np.zeros(len(certificate.fitted.splats), dtype=int)
    for view in certificate.record.training:
        camera = view.camera
        ones = torch.ones(camera.height, camera.width, 1)
        seen += (open_view(certificate.splats, camera).scatter(ones)[:, 0] >= 0.25).numpy()
    np.testing.assert_array_equal(table(exported / "support.ply")["views_seen"], seen)


def test_uncertainty_is_in_the_units_of_the_boxes(exported, certificate):
    """Weighted by how much each shows, it averages to about the half-width of a usual view."""
    rows = table(exported / "support.ply")
    mean = np.average(rows["uncertainty"], weights=rows["exposure"])
    assert mean == pytest.approx(certificate.threshold, rel=0.25)
    least = float(1 - certificate.rule.lambda_b) * certificate.threshold
    assert rows["uncertainty"].min() >= least * (1 - 1e-6)


def test_baked_colours_are_those_of_the_scale(exported, certificate):
    baked, rows = load_splats(exported / "uncertainty.ply"), table(exported / "support.ply")
    assert not baked.sh[:, 1:].any()
    colours = baked.sh[:, 0].numpy() * 0.28209479177387814 + 0.5
    expected = WidthScale.of(certificate).colours(rows["uncertainty"]) / 255
    np.testing.assert_allclose(colours, expected, atol=1e-6)
    assert Image.open(exported / "legend.png").size[0] > 256


def test_the_rule_keeps_what_it_says_and_tells_how_many_go(exported, certified, tmp_path, capsys):
    whole, kept = table(exported / "support.ply"), table(exported / "kept.ply")
    opacity = 1 / (1 + np.exp(-whole["opacity"]))
    chosen = (whole["views_seen"] >= 3) & (whole["uncertainty"] < 0.2) & (opacity > 0.05)
    assert 0 < chosen.sum() < len(whole)
    np.testing.assert_array_equal(kept["x"], whole["x"][chosen])
    words = ["export", str(certified), "-o", str(tmp_path), "--keep", RULE]
    assert cli.main(words) == 0
    gone = len(whole) - chosen.sum()
    said = " ".join(capsys.readouterr().out.split())
    assert f"{chosen.sum()} Gaussians; {gone} removed ({gone / len(whole):.1%})" in said
    assert "the certificate does not cover its renders" in said
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == chosen.sum()


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ("views > 3", "not a column. Did you mean views_seen?"),
        ("opacity > 2", "none of 400 Gaussians satisfies"),
        ("import os", "cannot be parsed"),
    ],
)
def test_a_rule_that_cannot_be_used_leaves_nothing(certified, tmp_path, rule, named, capsys):
    out = tmp_path / "out"
    assert cli.main(["export", str(certified), "-o", str(out), "--keep", rule]) == 2
    assert named in capsys.readouterr().err
    assert not out.exists() or not list(out.iterdir())
