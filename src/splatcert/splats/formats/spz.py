# SPDX-License-Identifier: Apache-2.0
"""Niantic's SPZ: versions 1 to 3 in one gzip stream, version 4 as one zstd stream per attribute.

Centres are fixed-point numbers (24 bits; half floats in version 1); scales, opacities,
colours and harmonics are bytes; rotations are three bytes, or the three smallest
components in ten bits each since version 3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatcert.splats.formats.frames import axes_to_ply
from splatcert.splats.formats.packed import (
    SLACK,
    Blob,
    FileModel,
    Floats,
    assemble,
    damaged,
    logits,
    refusal,
    unit_quaternions,
    whole_file,
)
from splatcert.splats.gaussians import MAX_SH_DEGREE, Splats
from splatcert.splats.transform import transform_splats

MAGIC = b"NGSP"
GZIP = b"\x1f\x8b"
LATEST = 4
LEGACY_HEADER, HEADER = 16, 32
ANTIALIASED, EXTENDED = 1, 2
MAX_RATIO = 1032
"""Deflate cannot shrink further; no real stream of attributes comes close."""
COLOUR_SCALE = 0.15
AXES_EXTENSION = 0xADBE0003
AXES = ("LDB RDB LUB RUB LDF RDF LUF RUF LFD RFD LFU RFU LBD RBD LBU RBU").split()
"""Named axis conventions by the number an extension stores, from 1."""
UNSAID = (
    "an SPZ file rarely says which way its axes point; converters differ by a half turn about x"
)


@dataclass(frozen=True)
class SpzHeader:
    """What the first bytes of an SPZ file promise."""

    file: Blob
    version: int
    count: int
    sh_degree: int
    fraction: int
    """Fractional bits of a coordinate."""
    flags: int
    streams: int = 0
    contents: int = 0
    """Where the list of streams starts; version 4 only."""

    @property
    def path(self) -> Path:
        """Of the file."""
        return self.file.path

    def sizes(self) -> dict[str, int]:
        """Bytes of every attribute, in file order."""
        harmonics = 3 * ((self.sh_degree + 1) ** 2 - 1)
        each = {
            "centres": 6 if self.version == 1 else 9,
            "opacities": 1,
            "colours": 3,
            "scales": 3,
            "rotations": 3 if self.version < 3 else 4,
            "harmonics": harmonics,
        }
        return {name: self.count * size for name, size in each.items()}


def open_spz(path: Path) -> FileModel:
    """Header of an SPZ file, checked against its length."""
    return open_spz_in(whole_file(path))


def open_spz_in(file: Blob) -> FileModel:
    """Header of SPZ data that a file holds, checked against its length."""
    header = _read_header(file)
    path, total = file.path, sum(header.sizes().values())
    if not total <= MAX_RATIO * file.size + SLACK or file.size > 2 * total + SLACK:
        raise damaged(
            path,
            f"the header promises {header.count} Gaussians, {total} bytes unpacked, "
            f"which does not fit {file.size} bytes of SPZ.",
        )
    axes = None
    if header.version == LATEST:
        _list_streams(header)
        axes = _axes(file.read(HEADER, header.contents - HEADER), header)
    elif header.flags & EXTENDED or _legacy_length(file) != LEGACY_HEADER + total:
        axes = _axes(_legacy_body(header)[1], header)  # says what is wrong, or finds extensions
    return FileModel(
        format="spz",
        files=(path,),
        count=header.count,
        sh_degree=header.sh_degree,
        antialiased=bool(header.flags & ANTIALIASED),
        decode=lambda: _decode(header),
        notes=(UNSAID if axes is None else f"stored with axes {axes}, read as RDF like a PLY",),
    )


def _read_header(file: Blob) -> SpzHeader:
    path, start = file.path, file.read(count=1 << 16)
    if start.startswith(GZIP):
        try:
            start = zlib.decompressobj(31).decompress(start, LEGACY_HEADER)
        except zlib.error as error:
            raise damaged(path, f"its gzip stream cannot be read: {error}.") from None
    if not start.startswith(MAGIC) or len(start) < LEGACY_HEADER:
        raise damaged(path, "not an SPZ file: it does not start with an NGSP header.")
    version, count, degree, fraction, flags, streams = struct.unpack_from("<IIBBBB", start, 4)
    if not 1 <= version <= LATEST:
        raise refusal(
            path,
            f"SPZ version {version}; splatcert reads versions 1 to {LATEST}.",
            "Export it again in version 3 or 4, or as PLY.",
        )
    if not count or degree > MAX_SH_DEGREE or fraction > 30:
        raise damaged(
            path,
            f"its SPZ header is not valid: {count} Gaussians, harmonics of degree {degree}, "
            f"{fraction} fractional bits.",
        )
    contents = 0
    if version == LATEST:
        if len(start) < HEADER:
            raise damaged(path, f"an SPZ header has {HEADER} bytes, but {len(start)} are there.")
        (contents,) = struct.unpack_from("<I", start, 16)
    return SpzHeader(file, version, count, degree, fraction, flags, streams, contents)


def _legacy_length(file: Blob) -> int:
    """Bytes that the gzip stream says it unpacks to; those of a file without gzip itself."""
    if not file.read(count=2).startswith(GZIP):
        return file.size
    return int.from_bytes(file.read(file.size - 4), "little")


def _legacy_body(header: SpzHeader) -> tuple[dict[str, bytes], bytes]:
    """Attributes of versions 1 to 3, and the extensions behind them."""
    data, sizes = header.file.read(), header.sizes()
    wanted = LEGACY_HEADER + sum(sizes.values())
    if data.startswith(GZIP):
        stream = zlib.decompressobj(31)
        try:
            data = stream.decompress(data, wanted + SLACK)
        except zlib.error as error:
            raise damaged(header.path, f"its gzip stream breaks off: {error}.") from None
        if len(data) >= wanted and not stream.eof:
            raise damaged(
                header.path,
                f"it unpacks to more than the {wanted} bytes of {header.count} Gaussians.",
            )
    if len(data) < wanted:
        raise damaged(
            header.path,
            f"{header.count} Gaussians need {wanted} bytes, but {len(data)} can be unpacked.",
        )
    return _split(data[LEGACY_HEADER:], sizes), data[wanted:]


def _split(data: bytes, sizes: Mapping[str, int]) -> dict[str, bytes]:
    parts, start = {}, 0
    for name, size in sizes.items():
        parts[name] = data[start : start + size]
        start += size
    return parts


def _list_streams(header: SpzHeader) -> dict[str, tuple[int, int, int]]:
    """Offset, packed and unpacked size of each stream of version 4."""
    sizes = {name: size for name, size in header.sizes().items() if size}
    length = header.file.size
    start = header.contents + 16 * header.streams
    if header.streams != len(sizes) or header.contents < HEADER or start > length:
        raise damaged(
            header.path,
            f"its list of {header.streams} streams at byte {header.contents} does not fit "
            f"{len(sizes)} attributes in {length} bytes.",
        )
    table = np.frombuffer(header.file.read(header.contents, start - header.contents), "<u8")
    found = {}
    for (name, wanted), (packed, unpacked) in zip(sizes.items(), table.reshape(-1, 2), strict=True):
        if int(unpacked) != wanted or int(packed) > length - start:
            raise damaged(
                header.path,
                f"the stream of {name} has {packed} bytes for {unpacked}; {wanted} are needed, "
                f"and {length - start} bytes are left in the file.",
            )
        found[name] = (start, int(packed), wanted)
        start += int(packed)
    return found


def _zstd_body(header: SpzHeader) -> dict[str, bytes]:
    try:
        import zstandard
    except ImportError:
        raise refusal(
            header.path,
            "SPZ version 4 is compressed with zstd, and the package zstandard is not installed.",
            "Install it: pip install 'splatcert[formats]'",
        ) from None
    parts = {"harmonics": b""}
    for name, (start, packed, wanted) in _list_streams(header).items():
        stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            header.file.read(start, packed)
        )
        try:
            parts[name] = stream.read(wanted + 1)  # never more than is needed
        except zstandard.ZstdError as error:
            raise damaged(header.path, f"the stream of {name} is damaged: {error}.") from None
        if len(parts[name]) != wanted:
            raise damaged(header.path, f"the stream of {name} does not unpack to {wanted} bytes.")
    return parts


def _axes(zone: bytes, header: SpzHeader) -> str | None:
    """The axis convention that an extension states; unknown extensions are skipped."""
    place = 0
    while header.flags & EXTENDED and place + 8 <= len(zone):
        kind, length = struct.unpack_from("<II", zone, place)
        payload = zone[place + 8 : place + 8 + length]
        if kind == AXES_EXTENSION and len(payload) == 4:
            number = int.from_bytes(payload, "little")
            if 1 <= number <= len(AXES):
                return AXES[number - 1]
        place += 8 + length
    return None


def _decode(header: SpzHeader) -> Splats:
    if header.version == LATEST:
        parts = _zstd_body(header)
        zone = header.file.read(HEADER, header.contents - HEADER)
    else:
        parts, zone = _legacy_body(header)
    arrays = {name: np.frombuffer(part, np.uint8) for name, part in parts.items()}
    rest = arrays["harmonics"].reshape(header.count, -1, 3)
    splats = assemble(
        means=_centres(arrays["centres"], header),
        quats=_rotations(arrays["rotations"], header),
        log_scales=arrays["scales"].reshape(-1, 3) / 16.0 - 10.0,
        logit_opacities=logits(np.arange(256) / 255.0)[arrays["opacities"]],
        constant=(arrays["colours"].reshape(-1, 3) / 255.0 - 0.5) / COLOUR_SCALE,
        rest=((np.arange(256) - 128) / 128.0).astype(np.float32)[rest],
        antialiased=bool(header.flags & ANTIALIASED),
    )
    axes = _axes(zone, header)
    return splats if axes in (None, "RDF") else transform_splats(splats, axes_to_ply(axes))


def _centres(data: NDArray[np.uint8], header: SpzHeader) -> Floats:
    if header.version == 1:
        return data.view("<f2").reshape(-1, 3).astype(np.float64)
    low, middle, high = data.reshape(-1, 3).astype(np.int32).T
    fixed = low | (middle << 8) | (high << 16)
    fixed -= (fixed & 0x800000) << 1  # sign of 24 bits
    return fixed.reshape(-1, 3) / float(1 << header.fraction)


def _rotations(data: NDArray[np.uint8], header: SpzHeader) -> Floats:
    """Rotations w, x, y, z; the file has w last."""
    if header.version < 3:
        xyz = data.reshape(-1, 3) / 127.5 - 1.0
        w = np.sqrt(np.maximum(0.0, 1.0 - (xyz**2).sum(axis=1)))
        return np.concatenate([w[:, None], xyz], axis=1)
    words = data.view("<u4")
    fields = np.stack([(words >> np.uint32(shift)) & np.uint32(0x3FF) for shift in (20, 10, 0)], 1)
    sizes = (fields & 0x1FF) / 511.0 * np.sqrt(0.5)
    others = np.where(fields & 0x200, -sizes, sizes)
    return np.roll(unit_quaternions(words >> np.uint32(30), others), 1, axis=1)
