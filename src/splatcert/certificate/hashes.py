# SPDX-License-Identifier: Apache-2.0
"""What a certificate was made from, as SHA-256 sums.

Splats and photographs are hashed by content: the numbers that are rendered and the pixels
that are compared, whatever container they came in. A photograph's file is hashed as well,
so that its sum can be checked by any tool.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from splatcert.camera import Camera
from splatcert.raster.render import Backend
from splatcert.scene.roles import LabelledView
from splatcert.splats.gaussians import Splats
from splatcert.storage.whole import file_hash

if TYPE_CHECKING:
    from hashlib import _Hash

RENDERED = ("means", "quats", "log_scales", "logit_opacities", "sh")
"""Tensors that decide every pixel; further columns of a file do not."""
MARK_DIGITS = 16


def splats_hash(splats: Splats) -> str:
    """Content of a model, whatever file it was in.

    Name, shape and little-endian float32 values of each tensor that is rendered, in order,
    and whether it is antialiased. Two layouts of one model agree if a reader finds the same
    float32 values in the same order; columns that are not rendered do not count.
    """
    digest = hashlib.sha256(b"splatcert splats 1\n")
    for name in RENDERED:
        _add_tensor(digest, name, getattr(splats, name))
    digest.update(b"antialiased" if splats.antialiased else b"classic")
    return digest.hexdigest()


def tensor_hash(tensor: Tensor) -> str:
    """Shape and float32 values of one tensor."""
    digest = hashlib.sha256()
    _add_tensor(digest, "", tensor)
    return digest.hexdigest()


def _add_tensor(digest: _Hash, name: str, tensor: Tensor) -> None:
    values = tensor.detach().to("cpu", torch.float32).contiguous().numpy()
    digest.update(f"{name} {list(tensor.shape)}\n".encode())
    digest.update(np.ascontiguousarray(values, dtype="<f4").data)


def label_hash(view: LabelledView) -> str:
    """The pixels of a labelled view as they are compared, and which of them count."""
    digest = hashlib.sha256()
    _add_tensor(digest, "image", view.image())
    if view.has_mask:
        digest.update(b"mask")
        digest.update(np.packbits(view.mask().cpu().numpy()).data)
    return digest.hexdigest()


def photo_file_hash(view: LabelledView) -> str | None:
    """The photograph's file as it lies on disk; None for pictures that were never one."""
    return None if view.source.path is None else file_hash(view.source.path)


class Mark(NamedTuple):
    """Enough of a label to recognise it in another split, resolution or scene.

    Marks travel in `views.npz` and in a predictor's card: 16 digits of two hashes.
    """

    photo: str
    """Of the photograph's file, or of its pixels where it has none."""
    place: str
    """Of where its camera stood."""

    def __str__(self) -> str:
        return f"{self.photo} {self.place}"


def photo_mark(image: str, file: str | None) -> str:
    """Mark of a photograph with these hashes."""
    return (image if file is None else file)[:MARK_DIGITS]


def place_mark(camera: Camera) -> str:
    """Mark of where a camera stands and looks, whatever its pixel grid."""
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
    """What a predictor's card tells of the labels behind it, scene by scene."""
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
    """One sum for many named or listed texts; names and texts cannot run into each other."""
    lines = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
    digest = hashlib.sha256()
    for name, text in lines:
        for piece in (str(name), text):
            encoded = piece.encode()
            digest.update(struct.pack("<q", len(encoded)) + encoded)
    return digest.hexdigest()


def renderer_of(backend: Backend) -> dict[str, object]:
    """Name, version and constants of the renderer behind a back end."""
    if backend == "cpu":
        from splatcert.raster.native import renderer_identity
    elif backend == "cuda":
        from splatcert.raster.cuda import renderer_identity
    else:
        from splatcert.raster.reference import renderer_identity
    return renderer_identity()


UNSEALED = ("created", "seal")
"""Entries the seal leaves out: the time, so that two runs agree, and itself."""


def canonical(content: Mapping[str, Any]) -> str:
    """The one JSON text of these values: keys sorted, no spaces, ASCII."""
    return json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def seal_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text of a certificate's plain values."""
    sealed = {key: value for key, value in content.items() if key not in UNSEALED}
    return hashlib.sha256(canonical(sealed).encode()).hexdigest()
