# SPDX-License-Identifier: Apache-2.0
"""The schema, and where a camera stands among the training cameras."""

from math import log
from pathlib import Path

import numpy as np
import pytest

from splatcert.difficulty.descriptor import (
    FEATURE_NAMES,
    FEATURES,
    CameraGeometry,
    DescriptorError,
    SchemaError,
    assemble,
    check_schema,
)
from splatcert_bench.synthetic.scenes import made_cameras

ROOT = Path(__file__).resolve().parents[2]
PAPER = """
g_dnn g_dk g_ang_min g_ang_k g_dens
r_alpha_mean r_alpha_p10 r_alpha_p50 r_grad_mean r_grad_p10 r_grad_p50 r_depth_mean r_depth_cv
sup_logE_mean sup_logE_p10 sup_logE_p50 sup_ang_mean sup_ang_p10 sup_ang_p50
sup_spread_mean sup_spread_p10 sup_spread_p50 f_gsu_logmean f_train_logmean
""".split()


def test_the_features_are_those_of_the_paper_and_each_is_explained():
    assert list(FEATURE_NAMES) == PAPER
    assert all(len(feature.meaning) > 5 and "\n" not in feature.meaning for feature in FEATURES)


def test_a_differing_schema_is_refused_by_the_entry_that_differs():
    check_schema(PAPER, "x")
    swapped = [*PAPER[:15], PAPER[16], PAPER[15], *PAPER[17:]]
    with pytest.raises(SchemaError, match=r"p.json: feature 16 is 'sup_ang_mean', .*_p50'"):
        check_schema(swapped, "p.json")
    with pytest.raises(SchemaError, match=r"has 23 features, .*24: 'f_train_logmean' is missing"):
        check_schema(PAPER[:-1], "p.json")
    with pytest.raises(SchemaError, match=r"has 25 features, .*'f_oof_logmean' is unknown here"):
        check_schema([*PAPER, "f_oof_logmean"], "p.json")


def test_the_page_has_every_feature():
    page = (
        Path(__file__).resolve().parents[2].joinpath("docs/view-difficulty.md").read_text("utf-8")
    )
    missing = [
        feature.name
        for feature in FEATURES
        if f"| `{feature.name}` | {feature.meaning.replace('|D|', '∥D∥')} |" not in page
    ]
    assert not missing


CAMERAS = made_cameras(14, 32, 24)
QUERY = made_cameras(31, 32, 24)[16]


def brute_force(cameras, query, extent):
    """The five features, one camera at a time."""
    away = [(float(np.linalg.norm(c.centre - query.centre)), c) for c in cameras]
    away.sort(key=lambda pair: pair[0])
    near = away[:5]
    angles = [float(np.arccos(np.clip(c.forward @ query.forward, -1, 1))) for _, c in near]
    spacings = []
    for camera in cameras:
        others = sorted(float(np.linalg.norm(camera.centre - c.centre)) for c in cameras)[1:6]
        spacings.append(sum(others) / len(others))
    reach = 2 * float(np.median(spacings))
    return [
        near[0][0] / extent,
        sum(d for d, _ in near) / len(near) / extent,
        min(angles),
        sum(angles) / len(angles),
        log(1 + sum(d <= reach for d, _ in away)),
    ]


def test_geometry_against_brute_force():
    found = CameraGeometry(CAMERAS, extent=3.0).features(QUERY)
    assert found == pytest.approx(brute_force(CAMERAS, QUERY, 3.0), rel=1e-12)
    assert (found > 0).all()


def test_out_of_fold_geometry_knows_only_the_other_cameras():
    geometry = CameraGeometry(CAMERAS, extent=3.0)
    for fold in range(5):
        excluded = np.arange(len(CAMERAS)) % 5 == fold
        others = [c for c, gone in zip(CAMERAS, excluded, strict=True) if not gone]
        for own in (c for c, gone in zip(CAMERAS, excluded, strict=True) if gone):
            found = geometry.features(own, excluded)
            assert found == pytest.approx(brute_force(others, own, 3.0), rel=1e-12)
            assert found[0] > 0, "its own pose must not be its nearest neighbour"
            assert geometry.features(own)[0] == 0


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_few_cameras_make_a_small_neighbourhood(count):
    found = CameraGeometry(CAMERAS[:count], extent=1.0).features(QUERY)
    assert np.isfinite(found).all()
    away = sorted(np.linalg.norm(c.centre - QUERY.centre) for c in CAMERAS[:count])[:5]
    assert found[1] == pytest.approx(np.mean(away))


def test_cameras_that_cannot_describe_are_refused():
    with pytest.raises(DescriptorError, match="there are no training cameras"):
        CameraGeometry([], extent=1.0)
    with pytest.raises(DescriptorError, match="are at one point"):
        CameraGeometry(CAMERAS[:1], extent=0.0)
    with pytest.raises(DescriptorError, match="0 of 14 training cameras are left"):
        CameraGeometry(CAMERAS, extent=1.0).features(QUERY, np.ones(14, dtype=bool))


def test_statistics_become_features():
    statistics, moments = list(range(1, 16)), [7.0, 8.0, 18.0, 19.0]
    values = assemble(np.arange(5.0), statistics, moments, 4.0)
    found = dict(zip(FEATURE_NAMES, values, strict=True))
    assert found["g_dens"] == 4 and found["r_alpha_mean"] == 1 and found["r_grad_p50"] == 6
    assert found["sup_logE_mean"] == 7 and found["sup_spread_p50"] == 15
    assert found["r_depth_mean"] == 7 / 4 and found["r_depth_cv"] == 8 / 7
    assert found["f_gsu_logmean"] == log(18) and found["f_train_logmean"] == log(19)


def test_an_empty_view_has_a_finite_descriptor():
    found = assemble(np.zeros(5), [0.0] * 15, [0.0] * 4, 1.0)
    assert np.isfinite(found).all()
    assert found[-1] == log(1e-3)


@pytest.mark.parametrize(
    ("statistic", "moment", "name"),
    [(7, None, "sup_logE_p10"), (None, 1, "r_depth_cv"), (None, 3, "f_train_logmean")],
)
def test_a_feature_that_is_no_number_is_refused_by_name(statistic, moment, name):
    statistics, moments = [1.0] * 15, [1.0] * 4
    if statistic is not None:
        statistics[statistic] = np.nan
    if moment is not None:
        moments[moment] = np.nan
    with pytest.raises(DescriptorError, match=f"{name} of a view is not finite"):
        assemble(np.zeros(5), statistics, moments, 1.0)
