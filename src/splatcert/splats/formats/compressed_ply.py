# SPDX-License-Identifier: Apache-2.0
"""Compressed PLY of PlayCanvas and SuperSplat: chunks of 256 Gaussians, 16 bytes each.

A chunk stores the range of its centres, logarithmic scales and colours; a Gaussian stores
its place in that range in 11, 10 and 11 bits (colour and opacity in 8 each) and its
rotation as the three smallest components. Harmonics follow in one byte per number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.splats.formats.packed import (
    SH_C0,
    FileModel,
    Floats,
    assemble,
    damaged,
    lerp,
    logits,
    unit_quaternions,
)
from splatcert.splats.gaussians import Splats
from splatcert.splats.ply import antialiased_of
from splatcert.storage.ply_table import Element, Header, read_blocks, read_header

CHUNK = 256
AXES = ("x", "y", "z")
SCALES = ("scale_x", "scale_y", "scale_z")
COLOURS = ("r", "g", "b")
WORDS = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
DEGREES = {0: 0, 9: 1, 24: 2, 45: 3}
Table = dict[str, NDArray]


def is_compressed(header: Header) -> bool:
    """Whether a PLY header is one of this layout."""
    vertex = [element.names for element in header.elements if element.name == "vertex"]
    chunked = any(element.name == "chunk" for element in header.elements)
    return chunked or (bool(vertex) and "packed_position" in vertex[0])


def open_compressed_ply(path: Path) -> FileModel:
    """Header of a compressed PLY, checked against the length of the file."""
    header = read_header(path)
    chunk, vertex = header.element("chunk"), header.element("vertex")
    ranges = (*AXES, *SCALES, *(COLOURS if "min_r" in chunk.names else ()))
    _require(header, chunk, {f"{end}_{name}": "f4" for end in ("min", "max") for name in ranges})
    _require(header, vertex, dict.fromkeys(WORDS, "u4"))
    if chunk.count != -(-vertex.count // CHUNK):
        raise damaged(
            path,
            f"{vertex.count} Gaussians need {-(-vertex.count // CHUNK)} chunks of {CHUNK}, "
            f"but the header lists {chunk.count}.",
        )
    harmonics = next((element for element in header.elements if element.name == "sh"), None)
    count = 0 if harmonics is None else len(harmonics.properties)
    if count not in DEGREES or (harmonics and harmonics.count != vertex.count):
        raise damaged(
            path,
            f"{harmonics.count if harmonics else 0} rows of {count} harmonics do not fit "
            f"{vertex.count} Gaussians; degrees 1 to 3 have 9, 24 or 45 per Gaussian.",
        )
    if harmonics:
        _require(header, harmonics, {f"f_rest_{k}": "u1" for k in range(count)})
    next(read_blocks(header, header.elements[0]), None)  # refuses a body of the wrong length
    return FileModel(
        format="compressed-ply",
        files=(path,),
        count=vertex.count,
        sh_degree=DEGREES[count],
        antialiased=antialiased_of(header),
        decode=lambda: _decode(header, harmonics),
        notes=("a PLY does not store its frame",),
    )


def _require(header: Header, element: Element, columns: dict[str, str]) -> None:
    kinds = {p.name: p.kind for p in element.properties if not p.length}
    wrong = [name for name, kind in columns.items() if kinds.get(name) != kind]
    if wrong:
        raise damaged(
            header.path,
            f"not a compressed PLY of a known layout: {element.name} needs "
            f"{', '.join(wrong[:4])} as {columns[wrong[0]]}.",
        )


def _table(header: Header, element: Element) -> Table:
    """Every column of an element."""
    blocks = [block for _, block in read_blocks(header, element)]
    if not blocks:
        return {p.name: np.empty(0, p.kind) for p in element.properties}
    rows = np.concatenate(blocks)
    return {name: rows[name] for name in element.names}


def _bits(words: NDArray, shift: int, width: int) -> Floats:
    """Some bits of each word as a share of their largest value."""
    most = (1 << width) - 1
    return ((words >> np.uint32(shift)) & np.uint32(most)) / most


def _three(words: NDArray) -> tuple[Floats, Floats, Floats]:
    return _bits(words, 21, 11), _bits(words, 11, 10), _bits(words, 0, 11)


def _decode(header: Header, harmonics: Element | None) -> Splats:
    chunk = _table(header, header.element("chunk"))
    packed = _table(header, header.element("vertex"))
    position, rotation, scale, colour = (packed[name].astype(np.uint32) for name in WORDS)
    of = np.arange(len(position)) // CHUNK

    def spread(names: tuple[str, ...], shares: tuple[Floats, ...]) -> Floats:
        columns = zip(names, shares, strict=True)
        return np.stack(
            [lerp(chunk[f"min_{n}"][of], chunk[f"max_{n}"][of], s) for n, s in columns], 1
        )

    channels = (_bits(colour, 24, 8), _bits(colour, 16, 8), _bits(colour, 8, 8))
    rgb = spread(COLOURS, channels) if "min_r" in chunk else np.stack(channels, axis=1)
    small = np.stack([_bits(rotation, shift, 10) for shift in (20, 10, 0)], axis=1)
    return assemble(
        means=spread(AXES, _three(position)),
        quats=unit_quaternions(rotation >> np.uint32(30), (small - 0.5) * np.sqrt(2.0)),
        log_scales=spread(SCALES, _three(scale)),
        logit_opacities=logits(_bits(colour, 0, 8)),
        constant=(rgb - 0.5) / SH_C0,
        rest=None if harmonics is None else _rest(_table(header, harmonics)),
        antialiased=antialiased_of(header),
    )


def _rest(table: Table) -> NDArray[np.float32]:
    """Harmonics from bytes over -4 to 4; all red ones come first, then green, then blue."""
    values = (np.arange(256) + 0.5) / 256
    values[[0, 255]] = 0.0, 1.0
    numbers = ((values - 0.5) * 8).astype(np.float32)
    columns = np.stack([numbers[table[f"f_rest_{k}"]] for k in range(len(table))], axis=1)
    return columns.reshape(len(columns), 3, -1).transpose(0, 2, 1)
