# SPDX-License-Identifier: Apache-2.0
"""`study.npz` and its companions: saved whole, read back equal, refused when they do not fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_studies import MadeScene

from splatcert.conformal.maps import TENTHS
from splatcert.storage.whole import ArtefactError
from splatcert_bench.studies.counts import (
    BINS,
    EDGES,
    TENTH_EDGES,
    RatioCounts,
    ViewPicture,
    bins_of,
    count_ratios,
    count_tenths,
)
from splatcert_bench.studies.study import SHAPE, StudyError
from splatcert_bench.studies.study_file import load_guided, load_study, save_guided, save_study


@pytest.fixture(scope="module")
def made():
    return MadeScene("truck", views=5)


def assert_same(left, right):
    assert type(left) is type(right)
    if dataclasses.is_dataclass(left):
        left, right = vars(left), vars(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name in left:
            assert_same(left[name], right[name])
    else:
        np.testing.assert_array_equal(left, right)


def test_what_is_saved_is_what_is_loaded(made, tmp_path):
    save_study(made.study(), tmp_path / "study.npz")
    stored = dataclasses.replace(load_study(tmp_path / "study.npz"), guided=made.study().guided)
    assert_same(made.study(), stored)
    save_guided(made.study().guided, tmp_path / "guided.npz")
    assert_same(dict(made.study().guided), load_guided(tmp_path / "guided.npz"))
    made.ratios().save(tmp_path / "ratios.npz")
    assert_same(made.ratios(), RatioCounts.load(tmp_path / "ratios.npz"))
    picture = made.picture(2)
    picture.save(tmp_path / "picture.npz")
    assert_same(picture, ViewPicture.load(tmp_path / "picture.npz"))


def test_equal_studies_are_equal_bytes(made, tmp_path):
    for name in ("a.npz", "b.npz"):
        save_study(made.study(), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_arrays_that_do_not_fit_are_refused(made):
    study = made.study()
    with pytest.raises(StudyError, match="pixels is"):
        dataclasses.replace(study, pixels=np.ones(4, dtype=np.int64))
    with pytest.raises(StudyError, match=SHAPE):
        dataclasses.replace(study, maps={"gsu": study.maps["gsu"]})
    broken = dataclasses.replace(study.maps["gsu"], means=np.full(5, np.nan))
    with pytest.raises(StudyError, match=r"map\.gsu\.means is not finite"):
        dataclasses.replace(study, maps={**study.maps, "gsu": broken})


def test_unknown_maps_pools_and_levels_are_named(made):
    study = made.study()
    with pytest.raises(StudyError, match="no map 'fisher'"):
        study.map("fisher")
    with pytest.raises(StudyError, match="pool 'mine'"):
        study.prediction("mine")
    with pytest.raises(StudyError, match="beta = 1/3"):
        study.beta_index("1/3")


def test_another_file_is_refused(made, tmp_path):
    made.ratios().save(tmp_path / "ratios.npz")
    with pytest.raises(ArtefactError, match="study"):
        load_study(tmp_path / "ratios.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ArtefactError, match="ratios"):
        RatioCounts.load(tmp_path / "text.npz")


def test_ratios_are_counted_at_the_next_edge_above():
    counts = count_ratios([0.0, EDGES[0], EDGES[0] * 1.0001, EDGES[700], 1e6])
    assert counts.sum() == 5
    assert (counts[0], counts[1], counts[700], counts[BINS - 1]) == (2, 1, 1, 1)
    assert EDGES[1] / EDGES[0] < 1.003


def test_bins_are_those_of_a_search_among_the_edges():
    drawn = 2.0 ** np.random.default_rng(0).uniform(-16, 14, 20_000)
    near = [np.nextafter(EDGES[:-1], toward) for toward in (0, np.inf)]
    ratios = np.concatenate([drawn, EDGES[:-1], *near, [0.0, -0.0, 5e-324, 1e300, np.inf]])
    assert np.array_equal(bins_of(ratios), np.searchsorted(EDGES, ratios, side="left"))
    coarse = np.searchsorted(TENTH_EDGES, ratios, side="left")
    tenths = np.arange(ratios.size) % TENTHS
    by_hand = np.zeros((TENTHS, len(TENTH_EDGES)))
    np.add.at(by_hand, (tenths, coarse), 1)
    assert np.array_equal(count_tenths(ratios, tenths), by_hand)
