# SPDX-License-Identifier: Apache-2.0
"""`transforms.json` as nerfstudio and instant-ngp write it.

Poses in the file are camera-to-world with OpenGL axes (x right, y up, z
backward); they are turned into world-to-camera with OpenCV axes. The world is
left as the file has it: instant-ngp's `scale`, `offset` and `aabb_scale` are
training settings and are ignored, nerfstudio's `applied_transform` is kept in
the scene's `frame`. Points of `ply_file_path` are in the file's own frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import listed
from splatcert.scene.dataset import Dataset, Part, Shot, WorldFrame
from splatcert.scene.lens import Lens, LensError
from splatcert.scene.photo_files import inside
from splatcert.scene.readers.ply_points import read_ply_points
from splatcert.storage.schema import JsonError, JsonFile, Meta, load_json

OPENGL_TO_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])
OLD_NERFSTUDIO_SWAP = [[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0]]
"""What nerfstudio applied to COLMAP data before its files recorded it."""
SizeOf = Callable[[str, str], "tuple[int, int] | None"]
"""Size of a photo, given folder and file, from its header; None where it is missing."""


def read_transforms(path: Path, size_of: SizeOf, *, allow_outside: bool = False) -> Dataset:
    """A nerfstudio or instant-ngp dataset; photos are opened only for sizes it leaves out."""
    source = load_json(path, "transforms file")
    root = path.parent
    shots = read_frames(source, size_of)
    points = None
    if ply := source.meta.get("ply_file_path"):
        file = inside(root / str(ply), [root], named_by=path, allow_outside=allow_outside)
        points = read_ply_points(file)
    return Dataset(
        format="transforms",
        root=root,
        source=path,
        shots=tuple(shots),
        points=points,
        frame=_frame(source, root),
        split=_own_split(source, [shot.name for shot in shots]),
    )


def read_frames(
    source: JsonFile, size_of: SizeOf, usual: tuple[int, int] | None = None
) -> list[Shot]:
    """All frames of one file, sorted by name.

    A frame of unknown size is as large as the first known one, or as `usual`:
    its photo may be held out and not have been copied.
    """
    frames = source.meta.get("frames")
    if not isinstance(frames, list) or not frames:
        raise source.wrong("'frames' must be a list of at least one frame")
    entries = [_read_frame(source, frame, index) for index, frame in enumerate(frames)]
    sizes = [
        stated_size(source, frame, name) or size_of(folder, file)
        for name, frame, folder, file in entries
    ]
    usual = next((size for size in sizes if size), usual)
    if usual is None:
        raise JsonError(
            f"none of the {len(entries)} photos that {source.path} names was found, beginning with "
            f"{entries[0][0]}.\n"
            "  Restore them, correct their 'file_path', or name their folder (--images FOLDER)."
        )
    shots: dict[str, Shot] = {}
    for (name, frame, folder, file), own in zip(entries, sizes, strict=True):
        if name in shots:
            raise source.wrong("the same photo appears in two frames", name)
        mask = frame.get("mask_path")
        shots[name] = Shot(
            name=name,
            lens=frame_lens(source, frame, own or usual, name),
            world_to_camera=_pose(source, frame.get("transform_matrix"), name),
            folder=folder,
            file=file,
            mask=None if mask is None else _clean(str(mask)),
        )
    return sorted(shots.values(), key=lambda shot: shot.name)


def _read_frame(source: JsonFile, frame: object, index: int) -> tuple[str, Meta, str, str]:
    """Name, entries, photo folder and photo file of one frame."""
    if not isinstance(frame, dict):
        raise source.wrong(f"frame {index} must be an object, got {frame!r:.60}")
    path = frame.get("file_path")
    if not isinstance(path, str) or not path:
        raise source.wrong(f"frame {index} has no 'file_path'")
    name = _clean(path)
    parts = PurePosixPath(name).parts
    plain = len(parts) > 1 and ".." not in parts and not PurePosixPath(name).is_absolute()
    folder, _, file = name.partition("/") if plain else ("", "", name)
    return name, frame, folder, file


def _clean(path: str) -> str:
    """A path as written on any system, without a leading `./`."""
    return str(PurePosixPath(path.replace("\\", "/")))


def _pose(source: JsonFile, value: object, name: str) -> NDArray[np.float64]:
    """World-to-camera in OpenCV axes from camera-to-world in OpenGL axes."""
    matrix = source.matrix(value, "'transform_matrix'", name)
    # Blender objects may have a scale, which moves no pixel of a pinhole. A huge one overflows
    # to infinite lengths, which are refused below.
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix[:3, :3], axis=0)
    if not np.isfinite(lengths).all():
        raise source.wrong("'transform_matrix' must hold a rotation; its axes are too long", name)
    left, _, right = np.linalg.svd(matrix[:3, :3] / np.maximum(lengths, 1e-12))
    rotation = left @ right
    deviation = float(np.abs(matrix[:3, :3] / np.maximum(lengths, 1e-12) - rotation).max())
    uneven = float(lengths.max() / max(lengths.min(), 1e-12))
    if deviation > 1e-2 or uneven > 1.01 or np.linalg.det(rotation) < 0:
        raise source.wrong(
            "'transform_matrix' must hold a rotation; its axes are sheared, mirrored or "
            f"unequal (off by {max(deviation, uneven - 1):.3g})",
            name,
        )
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, matrix[:3, 3]
    return np.asarray(np.linalg.inv(pose @ OPENGL_TO_OPENCV), dtype=np.float64)


def _frame(source: JsonFile, root: Path) -> WorldFrame:
    """What nerfstudio did to the original coordinates before writing the file."""
    transform = source.meta.get("applied_transform")
    if transform is None and (root / "colmap/sparse/0").is_dir():
        transform = OLD_NERFSTUDIO_SWAP
    scale = source.number(source.meta, "applied_scale")
    if scale is not None and scale <= 0:
        raise source.wrong(f"'applied_scale' must be positive, got {scale:g}")
    matrix = np.eye(4) if transform is None else source.matrix(transform, "'applied_transform'")
    return WorldFrame(matrix, 1.0 if scale is None else scale)


def _own_split(source: JsonFile, names: Iterable[str]) -> dict[str, Part] | None:
    """The file's `*_filenames` lists: test before val is held out, the rest is unused."""
    known = set(names)
    lists: dict[str, set[str]] = {}
    for part in ("train", "val", "test"):
        entries = source.meta.get(f"{part}_filenames")
        if entries is None:
            continue
        if not isinstance(entries, list) or not all(isinstance(e, str) for e in entries):
            raise source.wrong(f"'{part}_filenames' must be a list of file names")
        lists[part] = {_clean(entry) for entry in entries}
        if unknown := sorted(lists[part] - known):
            raise source.wrong(
                f"'{part}_filenames' names photos without a frame: {listed(unknown)}"
            )
    if not lists:
        return None
    held_out = lists.get("test") or lists.get("val") or set()
    if "train" not in lists:
        lists["train"] = known - lists.get("test", set()) - lists.get("val", set())
    if both := sorted(lists["train"] & held_out):
        raise source.wrong(f"photos are both training and held out: {listed(both)}")
    return {
        name: "held out" if name in held_out else "training" if name in lists["train"] else "unused"
        for name in known
    }


PERSPECTIVE = {"SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV"}
FISHEYE = {"OPENCV_FISHEYE", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE"}
OTHER_LENSES = ("ftheta_p0", "latlong", "equirectangular")
COEFFICIENTS = {"k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2"}


def stated_size(source: JsonFile, frame: Meta, name: str) -> tuple[int, int] | None:
    """The picture size that the frame or the file states."""
    for meta in (frame, source.meta):
        width, height = source.number(meta, "w", name), source.number(meta, "h", name)
        if width is not None and height is not None:
            if width < 1 or height < 1:
                raise source.wrong(f"picture size is {width:g} x {height:g}", name)
            return int(width), int(height)
    return None


def frame_lens(source: JsonFile, frame: Meta, size: tuple[int, int], name: str) -> Lens:
    """Intrinsics of one frame; its own entries override those of the file."""
    width, height = size

    def value(key: str, default: float = 0.0) -> float:
        for meta in (frame, source.meta):
            if (found := source.number(meta, key, name)) is not None:
                return found
        return default

    fx = fy = None
    for meta in (frame, source.meta):
        if fx is None and fy is None:
            fx = _focal(source, meta, "x", width, name)
            fy = _focal(source, meta, "y", height, name)
    fx = fy if fx is None else fx
    fy = fx if fy is None else fy
    if fx is None or fy is None:
        raise source.wrong("no focal length: 'fl_x' or 'camera_angle_x' is required", name)
    cx, cy = value("cx", width / 2), value("cy", height / 2)
    stated = stated_size(source, frame, name) is not None
    if not stated and max(abs(cx / width - 0.5), abs(cy / height - 0.5)) > 0.25:
        raise source.wrong(
            f"principal point ({cx:g}, {cy:g}) does not fit the {width} x {height} photo, and "
            "'w' and 'h' do not tell which size it belongs to",
            name,
        )
    kind = _kind(source, frame, name)
    keys = ("k1", "k2", "k3", "k4") if kind == "fisheye" else ("k1", "k2", "p1", "p2", "k3")
    unused = COEFFICIENTS - set(keys)
    if extra := sorted(key for key in unused if value(key) != 0):
        raise source.wrong(f"a {kind} lens with {', '.join(extra)} is not supported", name)
    try:
        distortion = tuple(value(key) for key in keys)
        return Lens(
            fx=fx, fy=fy, cx=cx, cy=cy, width=width, height=height, kind=kind, distortion=distortion
        )
    except LensError as error:
        raise source.wrong(str(error).replace("\n", " ").rstrip("."), name) from None


def _focal(source: JsonFile, meta: Meta, axis: str, pixels: int, name: str) -> float | None:
    """Focal length along one axis: pixels, radians or degrees, whichever is given."""
    if (focal := source.number(meta, f"fl_{axis}", name)) is not None:
        return focal
    angle = source.number(meta, f"camera_angle_{axis}", name)
    degrees = source.number(meta, f"{axis}_fov", name)
    if degrees is not None:
        angle = math.radians(degrees)
    if angle is None:
        return None
    if not 0 < angle < math.pi:
        raise source.wrong(
            f"the field of view along {axis} is {math.degrees(angle):g} degrees", name
        )
    return pixels / 2 / math.tan(angle / 2)


def _kind(source: JsonFile, frame: Meta, name: str) -> Literal["brown", "fisheye"]:
    """Brown or fisheye; a Brown lens without distortion is a pinhole."""
    meta = {**source.meta, **frame}
    model = str(meta.get("camera_model", "OPENCV"))
    other = [key for key in OTHER_LENSES if key in meta]
    if model not in PERSPECTIVE | FISHEYE or other:
        raise JsonError(
            f"camera model {other[0] if other else model!r} is not a lens that can be undistorted."
            f"\n  In {source.path}, frame {name!r}.\n"
            "  Make the photos perspective first, for example with `colmap image_undistorter`."
        )
    return "fisheye" if model in FISHEYE or meta.get("is_fisheye") else "brown"


def read_blender(root: Path, size_of: SizeOf) -> Dataset:
    """Training photos from `train`, held-out ones from `test`, or `val` if there is no test.

    `val` beside `test` is not used: published comparisons use it on neither side.
    """
    by_split: dict[str, dict[str, Shot]] = {}
    usual = None
    for name in ("train", "test", "val"):
        path = root / f"transforms_{name}.json"
        if path.is_file():
            frames = read_frames(load_json(path, "transforms file"), size_of, usual)
            by_split[name] = {shot.name: shot for shot in frames}
            usual = usual or frames[0].lens.size
    train = by_split["train"]
    held_out = by_split.get("test") or by_split.get("val") or {}
    if both := sorted(train.keys() & held_out.keys()):
        raise JsonError(
            f"{len(both)} photos are both training and held out: {listed(both)}.\n"
            f"  In the transforms files of {root}.\n"
            "  Photos used in training cannot be held out: remove them from one of the lists."
        )
    shots: dict[str, Shot] = {**by_split.get("val", {}), **held_out, **train}
    split: dict[str, Part] = dict.fromkeys(shots, "unused")
    split.update(dict.fromkeys(held_out, "held out"))
    split.update(dict.fromkeys(train, "training"))
    return Dataset(
        format="blender",
        root=root,
        source=root / "transforms_train.json",
        shots=tuple(sorted(shots.values(), key=lambda shot: shot.name)),
        split=split,
    )
