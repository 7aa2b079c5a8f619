# SPDX-License-Identifier: Apache-2.0
"""PLY as a container: a header that names columns, and one element read as a table.

Nothing here knows about Gaussians. Sizes are checked against the file before any
memory is allocated, so a false header costs an error message and nothing more.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.storage.whole import require_regular_file

MAX_HEADER_LINE = 4096
MAX_HEADER_LINES = 20_000
MAX_ROWS = 1 << 40
BLOCK_ROWS = 8192
TYPES = {
    "i1": ("char", "int8"),
    "u1": ("uchar", "uint8"),
    "i2": ("short", "int16"),
    "u2": ("ushort", "uint16"),
    "i4": ("int", "int32"),
    "u4": ("uint", "uint32"),
    "f4": ("float", "float32"),
    "f8": ("double", "float64"),
}
SCALARS = {name: kind for kind, names in TYPES.items() for name in names}
FORMATS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}


class PlyError(InputError):
    """A PLY file that cannot be read."""


@dataclass(frozen=True)
class Property:
    """One column; `length` is the type of the count in front of a list, else empty."""

    name: str
    kind: str
    length: str = ""


@dataclass(frozen=True)
class Element:
    """One table of the file."""

    name: str
    count: int
    properties: tuple[Property, ...]

    @property
    def has_lists(self) -> bool:
        """Rows differ in size."""
        return any(p.length for p in self.properties)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns in file order."""
        return tuple(p.name for p in self.properties)

    def row_bytes(self) -> int:
        """Bytes of a row; with lists, of the shortest possible row."""
        return sum(np.dtype(p.length or p.kind).itemsize for p in self.properties)


@dataclass(frozen=True)
class Header:
    """What the text part of a PLY file promises."""

    path: Path
    format: str
    elements: tuple[Element, ...]
    comments: tuple[str, ...]
    body_start: int
    file_bytes: int

    def element(self, name: str) -> Element:
        """The element of this name, or a message that lists the others."""
        for element in self.elements:
            if element.name == name:
                return element
        found = ", ".join(f"{e.count} {e.name}" for e in self.elements) or "no elements"
        raise PlyError(f"{self.path}: no element named {name!r}; the file has {found}")


def read_header(path: Path) -> Header:
    """Parse the header alone; the body is not touched."""
    try:
        with require_regular_file(path).open("rb") as file:
            lines, body_start = _header_lines(file, path)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise PlyError(f"{path}: cannot be read: {error.strerror}") from None
    style, comments = "", []
    elements: list[tuple[str, int, list[Property]]] = []
    for number, line in enumerate(lines, start=2):
        words = line.split()
        keyword = words[0] if words else ""
        if keyword == "comment":
            comments.append(line.strip()[len("comment") :].strip())
        elif keyword == "format" and len(words) == 3 and words[1] in FORMATS and not style:
            style = words[1]
        elif keyword == "element" and len(words) == 3 and _is_count(words[2]):
            if words[1] in (name for name, _, _ in elements):
                raise _bad_line(path, number, line, f"element {words[1]!r} is declared twice")
            elements.append((words[1], int(words[2]), []))
        elif keyword == "property" and elements:
            _add_property(elements[-1][2], words[1:], path, number, line)
        elif keyword not in ("obj_info", ""):
            raise _bad_line(path, number, line, "this is not a PLY header line")
    if not style:
        raise PlyError(f"{path}: the header names no format; expected one of {', '.join(FORMATS)}")
    tables = tuple(Element(name, count, tuple(props)) for name, count, props in elements)
    return Header(path, style, tables, tuple(comments), body_start, size)


def _header_lines(file: BinaryIO, path: Path) -> tuple[list[str], int]:
    if file.readline(MAX_HEADER_LINE).rstrip(b"\r\n") != b"ply":
        raise PlyError(f"{path}: not a PLY file; its first line is not 'ply'")
    lines: list[str] = []
    while len(lines) < MAX_HEADER_LINES:
        raw = file.readline(MAX_HEADER_LINE)
        if not raw.endswith(b"\n"):
            reason = (
                "is longer than 4096 bytes" if len(raw) == MAX_HEADER_LINE else "is the last one"
            )
            raise PlyError(
                f"{path}: header line {len(lines) + 2} {reason}, and 'end_header' is missing.\n"
                "  The file is truncated or not a PLY; export it again."
            )
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if text.strip() == "end_header":
            return lines, file.tell()
        lines.append(text)
    raise PlyError(
        f"{path}: {MAX_HEADER_LINES} header lines without 'end_header'; this is not a PLY"
    )


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 14 and int(word) <= MAX_ROWS


def _bad_line(path: Path, number: int, line: str, why: str) -> PlyError:
    return PlyError(f"{path}: header line {number} is {line[:80]!r}: {why}.\n  Export it again.")


def _add_property(
    properties: list[Property], words: list[str], path: Path, number: int, line: str
) -> None:
    if len(words) == 4 and words[0] == "list" and words[1] in SCALARS and words[2] in SCALARS:
        added = Property(words[3], SCALARS[words[2]], SCALARS[words[1]])
        if added.length.startswith("f"):
            raise _bad_line(path, number, line, "a list cannot have a fractional length")
    elif len(words) == 2 and words[0] in SCALARS:
        added = Property(words[1], SCALARS[words[0]])
    else:
        raise _bad_line(path, number, line, "unknown property type")
    if not added.name.isascii() or not added.name.isprintable():
        raise _bad_line(path, number, line, "property names must be plain text")
    if added.name in (p.name for p in properties):
        raise _bad_line(path, number, line, f"property {added.name!r} is declared twice")
    properties.append(added)


def read_blocks(header: Header, element: Element) -> Iterator[tuple[int, NDArray[np.void]]]:
    """Rows of one element in file order, as (first row, structured array) blocks.

    Blocks stay in the processor's cache, so taking sixty columns apart costs one
    pass over memory instead of sixty.
    """
    if element.has_lists:
        lists = ", ".join(p.name for p in element.properties if p.length)
        raise PlyError(f"{header.path}: {element.name} has list properties ({lists}), not numbers")
    dtype = np.dtype([(p.name, FORMATS[header.format] + p.kind) for p in element.properties])
    with header.path.open("rb") as file:
        file.seek(header.body_start)
        if header.format == "ascii":
            yield from _ascii_blocks(header, element, file, dtype)
            return
        for other in header.elements[: header.elements.index(element)]:
            _skip_binary(header, other, file)
        _check_room(header, element, file.tell())
        for start in range(0, element.count, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, element.count - start)
            block = np.frombuffer(file.read(rows * dtype.itemsize), dtype)
            if len(block) != rows:
                raise PlyError(f"{header.path}: the file shrank while it was read")
            yield start, block


def read_columns(header: Header, element: Element) -> dict[str, NDArray[np.generic]]:
    """All rows of one element, a column per property, in the machine's byte order."""
    blocks = [block for _, block in read_blocks(header, element)]
    return {
        p.name: np.concatenate([np.empty(0, p.kind), *(block[p.name] for block in blocks)])
        for p in element.properties
    }


def _check_room(header: Header, element: Element, start: int) -> None:
    """Refuse a count that promises more or fewer bytes than follow."""
    later = header.elements[header.elements.index(element) + 1 :]
    own = element.count * element.row_bytes()
    needed = own + sum(e.count * e.row_bytes() for e in later)
    left = header.file_bytes - start
    exact = not any(e.has_lists for e in later)
    if needed > left or (exact and left - needed >= max(element.row_bytes(), 1)):
        raise PlyError(
            f"{header.path}: the header promises {element.count} rows of {element.name} with "
            f"{element.row_bytes()} bytes each\n  ({needed} bytes to the end of the file), "
            f"but {left} bytes follow.\n"
            f"  The file is {'truncated' if needed > left else 'mislabelled'}; export it again."
        )


def _skip_binary(header: Header, element: Element, file: BinaryIO) -> None:
    left = header.file_bytes - file.tell()
    if element.count * element.row_bytes() > left:
        raise PlyError(
            f"{header.path}: {element.count} rows of {element.name} need at least "
            f"{element.count * element.row_bytes()} bytes, but {left} follow.\n"
            "  The file is truncated; export it again."
        )
    if not element.has_lists:
        file.seek(element.count * element.row_bytes(), os.SEEK_CUR)
        return
    order = FORMATS[header.format]
    for row in range(element.count if element.properties else 0):
        for p in element.properties:
            repeat = 1
            if p.length:
                counted = np.dtype(order + p.length)
                raw = file.read(counted.itemsize)
                repeat = int(np.frombuffer(raw, counted)[0]) if len(raw) == counted.itemsize else -1
            file.seek(max(repeat, 0) * np.dtype(p.kind).itemsize, os.SEEK_CUR)
            if repeat < 0 or file.tell() > header.file_bytes:
                raise PlyError(
                    f"{header.path}: row {row} of {element.name} runs past the end of the file.\n"
                    "  The file is truncated; export it again."
                )


def _ascii_blocks(
    header: Header, element: Element, file: BinaryIO, dtype: np.dtype
) -> Iterator[tuple[int, NDArray[np.void]]]:
    shortest = 2 * len(element.properties) * element.count - 1
    if shortest > header.file_bytes - header.body_start:
        raise PlyError(
            f"{header.path}: {element.count} rows of {element.name} with "
            f"{len(element.properties)} numbers cannot fit in the "
            f"{header.file_bytes - header.body_start} bytes after the header.\n"
            "  The file is truncated; export it again."
        )
    numbers = np.dtype([(name, "f8") for name in element.names])  # some writers put 12.0 for 12
    lines = filter(str.strip, io.TextIOWrapper(file, encoding="ascii", errors="replace"))
    for other in header.elements[: header.elements.index(element)]:
        for _ in islice(lines, other.count):
            pass
    for start in range(0, element.count, BLOCK_ROWS):
        rows = list(islice(lines, min(BLOCK_ROWS, element.count - start)))
        if len(rows) < min(BLOCK_ROWS, element.count - start):
            raise PlyError(
                f"{header.path}: {element.count} rows of {element.name} were promised, "
                f"{start + len(rows)} found.\n  The file is truncated; export it again."
            )
        try:
            block = _exact(np.loadtxt(rows, numbers, comments=None, ndmin=1, encoding=None), dtype)
        except ValueError as error:
            raise PlyError(
                f"{header.path}: {element.name} rows {start} to {start + len(rows) - 1}: {error}"
            ) from None
        yield start, block
    if element == header.elements[-1] and next(lines, None) is not None:
        raise PlyError(
            f"{header.path}: more rows of {element.name} than the {element.count} promised.\n"
            "  The file is mislabelled; export it again."
        )


def _exact(rows: NDArray[np.void], dtype: np.dtype) -> NDArray[np.void]:
    """Rows of text in the types of the header, which whole numbers must fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        typed = rows.astype(dtype)
    for name in (n for n in dtype.names or () if dtype[n].kind != "f"):
        if (wrong := rows[name][typed[name] != rows[name]]).size:
            raise ValueError(f"{name} cannot be {wrong[0]:g}, its type is {dtype[name]}")
    return typed
