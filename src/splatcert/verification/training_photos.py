# SPDX-License-Identifier: Apache-2.0
"""Whether the model's own run lists calibration photos as trained on, or further held-out ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splatcert.certificate.content.record import Record
from splatcert.errors import listed
from splatcert.verification.checks import Check

if TYPE_CHECKING:
    from splatcert.capture import Capture


def check_training_photos(record: Record, capture: Capture) -> Check:
    """Check that the model's own run does not list calibration photos as trained on.

    A model fits photos it was trained on better than new ones, so a certificate calibrated on
    them overstates coverage, even if everything else agrees.
    """
    name, added = "training photos", set(capture.scene.added)
    photos = sorted(set(capture.scene.cameras) - added)
    seen = capture.account.trained_on(photos, own_split=capture.own_split)
    calibrated = {view.name for view in record.calibration}
    if seen is None:
        claim = " although the certificate says that its run does" * (
            record.scene.held_out_by == "model"
        )
        return Check(name, None, f"the model does not say which photos it was trained on{claim}")
    if capture.account.seen is None and calibrated & added:
        told = "the calibration photos were registered after the capture was made; the model "
        return Check(name, None, f"{told}does not say whether it was trained on them")
    if both := sorted(calibrated & set(seen)):
        return Check(
            name,
            False,
            f"the model's run lists {len(both)} of {len(calibrated)} calibration photos as "
            f"trained on: {listed(both)}",
        )
    told = f"the model's run lists none of the {len(calibrated)} calibration photos"
    return Check(name, True, told)


def check_left_out(record: Record, capture: Capture) -> tuple[Check, ...]:
    """Check that every photo the model has not seen calibrates, if its run says which those are.

    Whoever may leave out the hardest photos gets boxes that are too narrow, and nobody can tell
    from the rest by what rule they were chosen.
    """
    photos = sorted(set(capture.scene.cameras) - set(capture.scene.added))
    seen = capture.account.trained_on(photos, own_split=capture.own_split)
    if seen is None:
        return ()
    held_out = {view.name for view in (*record.calibration, *record.unlabelled)}
    unused = sorted(set(photos) - set(seen) - held_out)
    if not unused:
        return (Check("held-out photos", True, "all of them calibrate"),)
    left = f"{len(unused)} held-out photos did not calibrate: {listed(unused)}"
    return (Check("held-out photos", None, left),)
