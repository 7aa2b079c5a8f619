# SPDX-License-Identifier: Apache-2.0
"""What a file is, told by its content: a readable format, or a reason why it is not one.

Names lie: a file may be a pointer to itself, a mesh, or an index of other files.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from splatcert.splats.formats import glb, spz
from splatcert.splats.formats.compressed_ply import is_compressed, open_compressed_ply
from splatcert.splats.formats.glb import open_glb
from splatcert.splats.formats.packed import (
    FileFormat,
    FileModel,
    first_bytes,
    refusal,
    whole_file,
)
from splatcert.splats.formats.plain_ply import open_plain_ply
from splatcert.splats.formats.sog import META, is_sog_meta, open_sog
from splatcert.splats.formats.splat import open_splat
from splatcert.splats.formats.spz import open_spz
from splatcert.splats.ply import REQUIRED
from splatcert.splats.untrusted import ForeignFileError
from splatcert.storage import lfs
from splatcert.storage.ply_table import Header, read_header

OPENERS: dict[FileFormat, Callable[[Path], FileModel]] = {
    "ply": open_plain_ply,
    "compressed-ply": open_compressed_ply,
    "spz": open_spz,
    "splat": open_splat,
    "sog": open_sog,
    "glb": open_glb,
}
HEAD = 4096
MAX_JSON = 1 << 26
KSPLAT, KSPLAT_SECTION, KSPLAT_LEVELS = b"\0\1", 1024, 2
"""Version, bytes of a section's header, and highest compression level of a .ksplat file."""
OTHER_FILES = ("*.spz", "*.splat", "*.sog", "*.glb")
CONVERT = "Convert it: npx @playcanvas/splat-transform {name} model.ply"


def recognise(path: Path) -> FileFormat | None:
    """The format of a single file; None if it has no known one, as checkpoints do.

    Raises with the reason where a file is known but holds no splats that can be read.
    """
    start = refuse_pointer(path)
    if not start:
        raise refusal(path, "the file is empty.", "Copy or export it again.")
    if start.startswith((b"ply\n", b"ply\r")):
        return "compressed-ply" if is_compressed(_splats_header(path)) else "ply"
    if start.startswith(glb.MAGIC):
        return "glb"
    if start.startswith(spz.MAGIC) or (start.startswith(spz.GZIP) and _is_gzipped_spz(path, start)):
        return "spz"
    if start.startswith(b"PK\x03\x04"):
        return "sog" if _has_meta(path) else None
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _recognise_json(path)
    if _is_obj(start):
        raise _mesh(path, "an OBJ mesh")
    if _is_ksplat(path, start):
        raise refusal(
            path,
            "the .ksplat format of GaussianSplats3D, which splatcert does not read.",
            CONVERT.format(name=path.name),
        )
    return "splat" if path.suffix.lower() == ".splat" else None


def open_model_file(kind: FileFormat, path: Path) -> FileModel:
    """The header of a single file, and how to decode it."""
    return OPENERS[kind](path)


def refuse_pointer(path: Path) -> bytes:
    """The first bytes of a file, unless they are what Git LFS leaves in its place."""
    start = whole_file(path).read(count=HEAD)
    lfs.refuse_pointer(path, start, ForeignFileError)
    return start


def model_files(folder: Path) -> list[Path]:
    """Files of a folder that may each be a model; for an unzipped SOG, its meta.json alone."""
    if is_sog_meta(_json(folder / META)):
        return [folder / META]
    for name in ("lod-meta.json", "tileset.json"):
        if (folder / name).is_file():
            recognise(folder / name)  # says what it is
    files = sorted(folder.glob("*.ply"))
    # input.ply is the sparse cloud that Inria's trainer copies beside its models.
    named = [file for file in files if file.name in ("splats.ply", "point_cloud.ply")]
    if files:
        return named if len(named) == 1 else files
    return sorted(file for pattern in OTHER_FILES for file in folder.glob(pattern))


def _mesh(path: Path, what: str) -> ForeignFileError:
    return refusal(
        path, f"{what}, not Gaussian splats.", "Pass the trained splat model of the scene."
    )


def _splats_header(path: Path) -> Header:
    """A PLY header, unless the file is a mesh."""
    header = read_header(path)
    faces = sum(element.count for element in header.elements if element.name == "face")
    names = {name for e in header.elements if e.name == "vertex" for name in e.names}
    if faces and not set(REQUIRED) <= names:
        raise _mesh(path, f"a PLY mesh of {faces} faces")
    return header


def _is_gzipped_spz(path: Path, start: bytes) -> bool:
    try:
        inside = zlib.decompressobj(31).decompress(start, 16)
    except zlib.error:
        inside = b""
    if not inside.startswith(spz.MAGIC):
        raise refusal(
            path,
            f"a gzip file that does not hold SPZ; it starts with {first_bytes(inside)}.",
            "Unpack it with gunzip and pass what was inside.",
        )
    return True


def _has_meta(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        # A checkpoint's own reader says more than "not a zip file".
        return path.suffix.lower() == ".sog"
    if any(name.endswith("data.pkl") for name in names):
        return False
    if not any(name.rpartition("/")[2] == META for name in names):
        raise refusal(
            path,
            f"a zip archive without a model ({', '.join(names[:4])[:120] or 'empty'}).",
            "Unpack it and pass the model inside.",
        )
    return True


def _json(path: Path) -> object:
    """Parsed JSON of bounded size, or None."""
    if not path.is_file():
        return None
    try:
        data = whole_file(path).read(count=MAX_JSON + 1)
        return json.loads(data) if len(data) <= MAX_JSON else None
    except (ValueError, RecursionError):
        return None


def _recognise_json(path: Path) -> FileFormat | None:
    content = _json(path)
    if is_sog_meta(content):
        return "sog"
    keys = set(content) if isinstance(content, dict) else set()
    if {"lodLevels", "filenames"} <= keys or {"tree", "filenames"} <= keys:
        raise refusal(
            path,
            "the index of a streamed SOG model with several levels of detail.",
            "A certificate is about one set of Gaussians: pass the meta.json of one level,",
            f"or merge it: npx @playcanvas/splat-transform {path.name} model.ply",
        )
    if {"root", "geometricError"} <= keys:
        raise refusal(
            path,
            "a 3D Tiles tileset, an index of other files.",
            "Pass the .glb of one tile, or export the whole model as PLY.",
        )
    if {"asset", "meshes"} <= keys or {"asset", "scenes"} <= keys:
        raise refusal(
            path,
            "a text glTF file; splatcert reads only binary ones.",
            "Export one binary .glb file with KHR_gaussian_splatting, or a PLY.",
        )
    if keys == {"transform", "scale"}:
        raise refusal(
            path,
            "the frame of a nerfstudio run (dataparser_transforms.json), not its model.",
            "Pass the run's folder, which holds nerfstudio_models/step-*.ckpt.",
        )
    return None


def _is_ksplat(path: Path, start: bytes) -> bool:
    """Whether a file starts like .ksplat: version 0.1, room for sections, and a level."""
    if len(start) < HEAD or start[:2] != KSPLAT:
        return False
    sections, level = int.from_bytes(start[4:8], "little"), int.from_bytes(start[20:22], "little")
    fits = HEAD + KSPLAT_SECTION * sections <= path.stat().st_size
    return sections > 0 and level <= KSPLAT_LEVELS and fits


def _is_obj(start: bytes) -> bool:
    """Whether text starts like Wavefront OBJ: comments, then vertices or a material library."""
    lines = [line.strip() for line in start.splitlines()[:-1]]
    words = [line.split() for line in lines if line and not line.startswith(b"#")]
    known = {b"mtllib", b"o", b"g", b"v", b"vn", b"vt", b"f", b"s", b"usemtl"}
    vertices = sum(word[0] == b"v" and len(word) >= 4 for word in words)
    return bool(vertices) and all(word[0] in known for word in words)
