# SPDX-License-Identifier: Apache-2.0
"""The lens of a frame of `transforms.json`: the frame's own entries, else the file's."""

from __future__ import annotations

import math
from typing import Literal

from splatcert.scene.json_file import Meta, Source, TransformsError
from splatcert.scene.lens import Lens, LensError

PERSPECTIVE = {"SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV"}
FISHEYE = {"OPENCV_FISHEYE", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE"}
OTHER_LENSES = ("ftheta_p0", "latlong", "equirectangular")
COEFFICIENTS = {"k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2"}


def stated_size(source: Source, frame: Meta, name: str) -> tuple[int, int] | None:
    """The picture size that the frame or the file states."""
    for meta in (frame, source.meta):
        width, height = source.number(meta, "w", name), source.number(meta, "h", name)
        if width is not None and height is not None:
            if width < 1 or height < 1:
                raise source.wrong(f"picture size is {width:g} x {height:g}", name)
            return int(width), int(height)
    return None


def frame_lens(source: Source, frame: Meta, size: tuple[int, int], name: str) -> Lens:
    """Intrinsics of one frame; what the frame says goes before what the file says."""
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
        raise source.wrong("no focal length: 'fl_x' or 'camera_angle_x' is needed", name)
    cx, cy = value("cx", width / 2), value("cy", height / 2)
    stated = stated_size(source, frame, name) is not None
    if not stated and max(abs(cx / width - 0.5), abs(cy / height - 0.5)) > 0.25:
        raise source.wrong(
            f"principal point ({cx:g}, {cy:g}) does not fit the {width} x {height} photo, and "
            "'w' and 'h' do not say what size it belongs to",
            name,
        )
    kind = _kind(source, frame, name)
    keys = ("k1", "k2", "k3", "k4") if kind == "fisheye" else ("k1", "k2", "p1", "p2", "k3")
    unused = COEFFICIENTS - set(keys)
    if extra := sorted(key for key in unused if value(key) != 0):
        raise source.wrong(f"a {kind} lens with {', '.join(extra)} is not understood", name)
    try:
        return Lens(
            fx=fx,
            fy=fy,
            cx=cx,
            cy=cy,
            width=width,
            height=height,
            kind=kind,
            distortion=tuple(value(key) for key in keys),
        )
    except LensError as error:
        raise source.wrong(str(error).replace("\n", " ").rstrip("."), name) from None


def _focal(source: Source, meta: Meta, axis: str, pixels: int, name: str) -> float | None:
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


def _kind(source: Source, frame: Meta, name: str) -> Literal["brown", "fisheye"]:
    """Brown or fisheye; a Brown lens without distortion is a pinhole."""
    meta = {**source.meta, **frame}
    model = str(meta.get("camera_model", "OPENCV"))
    other = [key for key in OTHER_LENSES if key in meta]
    if model not in PERSPECTIVE | FISHEYE or other:
        raise TransformsError(
            f"camera model {other[0] if other else model!r} is not a lens that is undistorted here."
            f"\n  In {source.path}, frame {name!r}.\n"
            "  Make perspective photos of it first, for example with `colmap image_undistorter`."
        )
    return "fisheye" if model in FISHEYE or meta.get("is_fisheye") else "brown"
