# SPDX-License-Identifier: Apache-2.0
"""SHA-256 hashes of a certificate's inputs.

Splats and photographs are hashed by content: the numbers that are rendered and the pixels
that are compared, whatever the file format. A photograph's file is hashed as well, so that
any tool can check it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splatcert.camera import Camera
from splatcert.certificate.content.record import QueryRecord, ScaleRecord
from splatcert.storage.schema import entries_of, to_plain
from splatcert.storage.whole import file_hash

if TYPE_CHECKING:
    from hashlib import _Hash

    from splatcert.scene.roles import LabelledView
    from splatcert.splats.gaussians import Splats

RENDERED = ("means", "quats", "log_scales", "logit_opacities", "sh")
"""Tensors that determine the pixels; further columns of a file do not."""
MARK_DIGITS = 16


def splats_hash(splats: Splats) -> str:
    """Hash of a model's content, whatever its file format.

    It covers name, shape and little-endian float32 values of each tensor that is rendered, in
    order, and whether the model is antialiased. Two layouts of one model agree if a reader
    finds the same float32 values in the same order; columns that are not rendered do not count.
    """
    digest = hashlib.sha256(b"splatcert splats 1\n")
    for name in RENDERED:
        _add(digest, name, getattr(splats, name))
    digest.update(b"antialiased" if splats.antialiased else b"classic")
    return digest.hexdigest()


def map_hash(values: Any) -> str:
    """Hash of the shape and float32 values of one array or tensor."""
    digest = hashlib.sha256()
    _add(digest, "", values)
    return digest.hexdigest()


def _add(digest: _Hash, name: str, values: Any) -> None:
    array = values if isinstance(values, np.ndarray) else values.detach().cpu().numpy()
    digest.update(f"{name} {list(array.shape)}\n".encode())
    digest.update(np.ascontiguousarray(array, dtype="<f4").data)


def label_hash(view: LabelledView) -> str:
    """Hash of the pixels of a labelled view as they are compared, and of which count."""
    digest = hashlib.sha256()
    _add(digest, "image", view.image())
    if view.has_mask:
        digest.update(b"mask")
        digest.update(np.packbits(view.mask().cpu().numpy()).data)
    return digest.hexdigest()


def photo_file_hash(view: LabelledView) -> str | None:
    """Hash of the photograph's file; None for pictures that do not come from files."""
    path = view.source.path
    return None if path is None else file_hash(path)


class Mark(NamedTuple):
    """Enough of a label to recognise it in another split, resolution or scene.

    Marks are stored in `views.npz` and in a predictor's card: 16 digits of two hashes.
    """

    photo: str
    """Hash of the photograph's file, or of its pixels if it has none."""
    place: str
    """Hash of the camera's pose."""

    def __str__(self) -> str:
        return f"{self.photo} {self.place}"


def photo_mark(image: str, file: str | None) -> str:
    """Mark of a photograph with these hashes."""
    return (image if file is None else file)[:MARK_DIGITS]


def place_mark(camera: Camera) -> str:
    """Mark of a camera's pose, whatever its pixel grid."""
    pose = camera.world_to_camera.astype("<f8").tobytes()
    return hashlib.sha256(pose).hexdigest()[:MARK_DIGITS]


@dataclass(frozen=True)
class SourceMarks:
    """Marks of one source scene's labels, by view."""

    scene: str
    learned: Mapping[str, Mark]
    """Labels that the predictor learned from."""
    others: Mapping[str, Mark]
    """Further labels of the same capture."""


def source_marks(card: Mapping[str, Any]) -> Iterator[SourceMarks]:
    """Marks of a predictor's labels as its card lists them, scene by scene."""
    for row in card.get("scenes", ()):
        marks: dict[bool, dict[str, Mark]] = {True: {}, False: {}}
        for entry, text in row.get("hashes", {}).items():
            role, _, name = entry.partition(" ")
            photo, _, place = text.partition(" ")
            if name:
                marks[role == card.get("views")][name] = Mark(photo, place)
        yield SourceMarks(str(row.get("scene")), learned=marks[True], others=marks[False])


def has_known_origin(card: Mapping[str, Any]) -> bool:
    """Whether a card names labels of every scene that was learned from."""
    scenes = list(source_marks(card))
    return bool(scenes) and all(scene.learned for scene in scenes)


def joint_hash(parts: Mapping[str, str] | Iterable[str]) -> str:
    """One hash for many named or listed texts; names and texts are delimited."""
    lines = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
    digest = hashlib.sha256()
    for name, text in lines:
        for piece in (str(name), text):
            encoded = piece.encode()
            digest.update(struct.pack("<q", len(encoded)) + encoded)
    return digest.hexdigest()


def freeze_hash(scale: ScaleRecord, queries: Iterable[QueryRecord]) -> str:
    """One hash over the frozen scale and every view's factor and shape."""
    names = entries_of(QueryRecord)
    rows = [{name: to_plain(getattr(query, name)) for name in names} for query in queries]
    return joint_hash([canonical(scale.parameters), *map(canonical, rows)])


UNSEALED = ("created", "seal")
"""Entries that the seal does not cover: the time, so that two runs agree, and the seal."""


def canonical(content: Mapping[str, Any]) -> str:
    """The one JSON text of these values: keys sorted, no spaces, ASCII."""
    return json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def seal_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text of a certificate's plain values."""
    sealed = {key: value for key, value in content.items() if key not in UNSEALED}
    return hashlib.sha256(canonical(sealed).encode()).hexdigest()
