# SPDX-License-Identifier: Apache-2.0
"""The common PLY of Gaussians, described from its header and the length of its body."""

from __future__ import annotations

from pathlib import Path

from splatcert.splats.formats.packed import FileModel, damaged
from splatcert.splats.ply import antialiased_of, extra_columns_of, read_ply, sh_degree_of
from splatcert.storage.ply_table import Header, read_blocks, read_header


def open_plain_ply(path: Path) -> FileModel:
    """Header of a PLY of Gaussians; a body that is cut short is refused."""
    header = read_header(path)
    degree = sh_degree_of(header)
    model = FileModel(
        format="ply",
        files=(path,),
        count=header.element("vertex").count,
        sh_degree=degree,
        antialiased=antialiased_of(header),
        extra=extra_columns_of(header),
        decode=lambda: read_ply(path, check=False),
        notes=("a PLY does not store its frame: exports of gsplat and nerfstudio keep theirs",),
    )
    _check_body(header)
    return model


def _check_body(header: Header) -> None:
    """Refuse a body of the wrong length, without reading more than a part of it."""
    vertex = header.element("vertex")
    next(read_blocks(header, vertex), None)
    if header.format != "ascii":
        return
    before = header.elements[: header.elements.index(vertex) + 1]
    needed, lines, last = sum(element.count for element in before), 0, b"\n"
    with header.path.open("rb") as file:
        file.seek(header.body_start)
        while block := file.read(1 << 20):
            lines, last = lines + block.count(b"\n"), block
    lines += not last.endswith(b"\n")
    if lines < needed:
        raise damaged(
            header.path, f"the header promises {needed} rows of text, but only {lines} are there."
        )
