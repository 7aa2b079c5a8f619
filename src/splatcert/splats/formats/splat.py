# SPDX-License-Identifier: Apache-2.0
"""The headerless `.splat` of antimatter15's viewer: 32 bytes per Gaussian, no harmonics.

Centre and linear scales are float32; colour, opacity and the rotation w, x, y, z are bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.splats.formats.packed import (
    SH_C0,
    Blob,
    FileModel,
    assemble,
    damaged,
    logits,
    refusal,
    whole_file,
)
from splatcert.splats.gaussians import Splats

RECORD = np.dtype(
    [("centre", "<f4", 3), ("scale", "<f4", 3), ("colour", "u1", 4), ("rotation", "u1", 4)]
)
SAMPLED = 4096
FARTHEST = 1e12
"""No scene is as large; random bytes read as float32 exceed this at once."""


def open_splat(path: Path) -> FileModel:
    """The count from the length of the file; a sample of records must look like Gaussians."""
    file = whole_file(path)
    size = file.size
    if not size or size % RECORD.itemsize:
        raise damaged(path, f"{size} bytes are not a whole number of 32-byte Gaussians (.splat).")
    sample = np.frombuffer(file.read(count=SAMPLED * RECORD.itemsize), RECORD)
    if not plausible(sample):
        raise refusal(
            path,
            "not a .splat file: its bytes do not read as centres and scales of Gaussians.",
            "Check where the file comes from, or export it again.",
        )
    return FileModel(
        format="splat",
        files=(path,),
        count=size // RECORD.itemsize,
        sh_degree=0,
        decode=lambda: _decode(file),
        notes=("a .splat file stores neither its frame nor view-dependent colour",),
    )


def plausible(records: NDArray[np.void]) -> bool:
    """Whether centres and scales are numbers that a scene can have, and not all zero."""
    with np.errstate(invalid="ignore"):
        near = np.abs(records["centre"]) < FARTHEST
        sized = (records["scale"] >= 0) & (records["scale"] < FARTHEST)
    return bool(near.all() and sized.all() and records["scale"].any())


def _decode(file: Blob) -> Splats:
    records = np.frombuffer(file.read(), RECORD)
    # Writers multiply by 128 and add 128, so 128 is zero.
    quats = (records["rotation"].astype(np.float64) - 128) / 128
    # The viewer draws a zero quaternion as no rotation.
    quats[~quats.any(axis=1)] = (1, 0, 0, 0)
    colour = records["colour"] / 255.0
    return assemble(
        means=records["centre"],
        quats=quats,
        log_scales=np.log(records["scale"].astype(np.float64)),
        logit_opacities=logits(colour[:, 3]),
        constant=(colour[:, :3] - 0.5) / SH_C0,
    )
