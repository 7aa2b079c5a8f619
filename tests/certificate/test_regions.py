# SPDX-License-Identifier: Apache-2.0
"""Regions of a capture: who belongs to which, and what each tells about coverage."""

from dataclasses import replace

import numpy as np

from splatcert.certificate.regions import FEWEST, halved, left_out_coverage, regions_of


def test_views_are_halved_where_they_spread_most():
    places = np.array([[x, 0.1 * y, 0.0] for x in range(8) for y in range(2)], dtype=float)
    groups = halved(places)
    assert [len(rows) for rows in groups] == [4, 4, 4, 4]
    reach = [(places[rows, 0].min(), places[rows, 0].max()) for rows in groups]
    assert sorted(reach) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert sorted(np.concatenate(groups)) == list(range(16))


def test_few_views_stay_together():
    places = np.random.default_rng(0).normal(size=(2 * FEWEST - 1, 3))
    (alone,) = halved(places)
    assert alone.tolist() == list(range(len(places)))


def test_all_cameras_in_one_place_still_make_groups():
    assert [len(rows) for rows in halved(np.zeros((9, 3)))] == [5, 4]


def test_a_certificate_tells_its_regions(certificate):
    found = regions_of(certificate)
    views = certificate.record.calibration
    assert sum(region.views for region in found) == len(views)
    assert {region.around for region in found} <= {view.name for view in views}
    assert all(0 <= region.covered <= region.views for region in found)
    assert all(region.half_width > 0 and region.needed > 0 for region in found)


def test_a_left_out_view_does_not_cover_itself(certificate):
    """The hardest view is covered by its own threshold and missed by that of the others."""
    covered = left_out_coverage(certificate.scores, certificate)
    hardest = int(certificate.scores.argmax())
    assert not covered[hardest]
    assert covered.mean() >= 1 - float(certificate.alpha) - 1 / len(covered)


def test_too_few_views_have_no_regions(certificate):
    few = replace(certificate.record, calibration=certificate.record.calibration[: FEWEST + 1])
    assert regions_of(replace(certificate, record=few)) == ()
