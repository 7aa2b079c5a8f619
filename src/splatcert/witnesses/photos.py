# SPDX-License-Identifier: Apache-2.0
"""The photographs that a certificate's scale was made from, or a refusal that names others."""

from __future__ import annotations

from collections.abc import Sequence

from splatcert.certificate.content.view_records import TrainingRecord
from splatcert.certificate.hashes import label_hash
from splatcert.errors import InputError, be, listed
from splatcert.scene.roles import TrainingView

RESTORE = "  Boxes depend on these photos: restore them, or certify again."


class PhotosError(InputError):
    """Training photographs that are not the certified ones."""


def certified_photos(
    records: Sequence[TrainingRecord], views: Sequence[TrainingView] | None
) -> tuple[TrainingView, ...]:
    """The training views of a certificate, in its order, if their photographs are the same."""
    if views is None:
        raise PhotosError(
            "this certificate's boxes depend on the training photos, which were not given.\n"
            "  Pass the capture that they belong to: --data DATA, or its scene to "
            "load_certificate.\n"
            "  To predict without photos, certify with --scale paper."
        )
    known = {view.name: view for view in views}
    wanted = {record.name: record for record in records}
    if missing := [name for name in wanted if name not in known]:
        raise PhotosError(
            f"{len(missing)} of {len(wanted)} training photos {be(len(missing))} missing: "
            f"{listed(missing)}.\n{RESTORE}"
        )
    sizes = {name: (c.width, c.height) for name, c in ((n, known[n].camera) for n in wanted)}
    for name, record in wanted.items():
        certified = record.camera.width, record.camera.height
        if sizes[name] != certified:
            raise PhotosError(
                f"{name} is {sizes[name][0]} x {sizes[name][1]} pixels here, certified at "
                f"{certified[0]} x {certified[1]}.\n"
                "  Load the capture at its certified size, or certify again."
            )
    changed = [name for name, record in wanted.items() if label_hash(known[name]) != record.image]
    if changed:
        raise PhotosError(
            f"{len(changed)} of {len(wanted)} training photos have changed: {listed(changed)}.\n"
            f"{RESTORE}"
        )
    return tuple(known[name] for name in wanted)
