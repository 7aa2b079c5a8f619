# SPDX-License-Identifier: Apache-2.0
"""Photos on disk: headers at once, pixels when asked for.

Pixels go from the file to the camera's grid in a fixed order: decode to 8-bit
RGB as stored (EXIF orientation is ignored, as COLMAP ignores it), composite
alpha on the background, undistort (`lens.py`), and, if a smaller picture is
asked for, average with OpenCV's INTER_AREA. Each step is deterministic.
Values stay sRGB-encoded; nothing is linearised.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from splatcert import camera as cameras
from splatcert.errors import InputError
from splatcert.scene.lens import Lens, Pixels, undistort
from splatcert.storage.lfs import refuse_pointer, start_of
from splatcert.storage.memory import BYTES_PER_PIXEL, require_memory

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "PPM")
"""Formats tried. Others are left out because some of their decoders run programs."""
SIXTEEN_BIT = {"I;16", "I;16B", "I;16L", "I;16N", "I"}
ALPHA = {"RGBA", "LA", "PA", "La", "RGBa"}
COUNTS_ABOVE = 0.999
"""A resampled pixel counts only if everything it was made from counts, up to rounding."""
Bytes = NDArray[np.uint8]
Rgb = tuple[float, float, float]


class ImageError(InputError):
    """A photo or mask that cannot be used."""


@dataclass(frozen=True)
class Header:
    """What the first bytes of a photo say."""

    size: tuple[int, int]
    """Width and height as stored."""
    has_alpha: bool


def read_header(path: Path) -> Header:
    """Size and kind of a photo without decoding it."""
    with _opened(path) as image:
        return Header(image.size, image.mode in ALPHA or "transparency" in image.info)


def exif_orientation(path: Path) -> int:
    """The orientation tag, 1 if there is none; only used in messages."""
    with _opened(path) as image:
        return int(image.getexif().get(0x0112, 1))


def exif_optics(path: Path) -> tuple[str, float, float]:
    """Camera model, focal length in millimetres and as on 35 mm film; empty and 0 if untold."""
    with _opened(path) as image:
        tags = image.getexif()
        more = tags.get_ifd(0x8769)
        lengths = []
        for tag in (0x920A, 0xA405):
            try:
                lengths.append(float(more.get(tag, 0) or 0))
            except (TypeError, ValueError, ZeroDivisionError):
                lengths.append(0.0)
        return str(tags.get(0x0110, "")).strip("\0 "), lengths[0], lengths[1]


@lru_cache(maxsize=1)
def _formats() -> tuple[str, ...]:
    """The formats that this build of PIL can open; others would fail with an obscure error."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """A photo opened by PIL, its failures turned into messages that name the file."""
    try:
        with Image.open(path, formats=_formats()) as image:
            width, height = image.size
            if width * height > cameras.MAX_PIXELS:
                raise _too_large(path, f"{width} x {height} pixels")
            require_memory(BYTES_PER_PIXEL * width * height, f"{path} ({width} x {height} pixels)")
            yield image
    except Image.DecompressionBombError:
        raise _too_large(path, "far more pixels") from None
    except FileNotFoundError:
        raise ImageError(f"no file at {path}.\n  Restore it, or leave out its view.") from None
    except InputError:
        raise
    except Exception as error:  # whatever makes a decoder fail, the file is at fault
        refuse_pointer(path, start_of(path), ImageError)
        raise ImageError(
            f"{path} cannot be decoded: {error}.\n"
            f"  It is damaged, or not in a supported format ({', '.join(_formats())}).\n"
            "  Copy it again, or convert it to 8-bit PNG or JPEG."
        ) from None


def _too_large(path: Path, size: str) -> ImageError:
    return ImageError(
        f"{path} claims {size}; the limit is {cameras.MAX_PIXELS} (splatcert.camera.MAX_PIXELS).\n"
        "  Shrink the photo, for example into a folder images_2."
    )


def decode(path: Path) -> tuple[Bytes, Bytes | None]:
    """Colours [H, W, 3] as stored, and alpha [H, W] where the file has it."""
    with _opened(path) as image:
        if image.mode == "F":
            raise ImageError(
                f"{path} holds floating-point values, not a photo.\n"
                "  Convert it to 8-bit PNG or JPEG in sRGB."
            )
        if image.mode in SIXTEEN_BIT:
            grey = np.rint(np.asarray(image, dtype=np.float64) / 257).clip(0, 255)
            return np.repeat(grey.astype(np.uint8)[..., None], 3, axis=2), None
        if image.mode in ALPHA or "transparency" in image.info:
            rgba = np.asarray(image.convert("RGBA"))
            return np.ascontiguousarray(rgba[..., :3]), np.ascontiguousarray(rgba[..., 3])
        return np.array(image.convert("RGB")), None


def decode_mask(path: Path) -> NDArray[np.bool_]:
    """A mask image, [H, W]: black is left out, anything else counts."""
    with _opened(path) as image:
        if image.mode not in SIXTEEN_BIT | {"1", "L"}:
            image = image.convert("L")  # noqa: PLW2901
        return np.asarray(image) != 0


DEFAULT_CACHE_BYTES = 1 << 30


class PixelCache:
    """Arrays of bytes by key. Whatever does not fit is decoded again when needed.

    A pickled copy starts empty, so that sending a scene to another process does
    not send its pictures.
    """

    def __init__(self, limit: int = DEFAULT_CACHE_BYTES) -> None:
        if limit < 0:
            raise InputError(f"a cache limit is a number of bytes, got {limit}")
        self.limit = limit
        self._arrays: OrderedDict[Hashable, NDArray[np.generic]] = OrderedDict()
        self._used = 0
        self._lock = Lock()

    @property
    def used(self) -> int:
        """Bytes held now; never more than `limit`."""
        return self._used

    def __len__(self) -> int:
        return len(self._arrays)

    def get(self, key: Hashable, make: Callable[[], NDArray[np.generic]]) -> NDArray[np.generic]:
        """The array under this key, made if it is not there; read-only."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        # Decoding happens outside the lock: two threads may then do the same
        # work once, which is cheaper than all threads waiting for each photo.
        array = make()
        array.setflags(write=False)
        with self._lock:
            self._keep(key, array)
        return array

    def _keep(self, key: Hashable, array: NDArray[np.generic]) -> None:
        if array.nbytes > self.limit or key in self._arrays:
            return
        while self._used + array.nbytes > self.limit:
            _, dropped = self._arrays.popitem(last=False)
            self._used -= dropped.nbytes
        self._arrays[key] = array
        self._used += array.nbytes

    def __reduce__(self) -> tuple[type[PixelCache], tuple[int]]:
        return PixelCache, (self.limit,)


@dataclass(frozen=True)
class Photo:
    """One photo on disk, and the steps from its file to its camera's pixel grid."""

    path: Path
    lens: Lens
    """The lens at the resolution of the file."""
    size: tuple[int, int]
    """Width and height of the finished picture."""
    background: Rgb | None = None
    """Colour below transparent pixels; None keeps colours as stored."""
    mask_path: Path | None = None
    alpha_is_mask: bool = False
    cache: PixelCache = field(default_factory=PixelCache, compare=False, repr=False)
    """Decoded pixels; a scene's photos share one."""

    @property
    def has_mask(self) -> bool:
        """Whether some pixels may not count."""
        return self.mask_path is not None or self.alpha_is_mask

    def image(self) -> Tensor:
        """[H, W, 3], float32 in [0, 1]."""
        pixels = self.cache.get((self, "image"), self.pixels)
        return torch.tensor(pixels).to(torch.float32).div_(255)

    def mask(self) -> Tensor:
        """[H, W], bool."""
        if not self.has_mask:
            return torch.ones(self.size[::-1], dtype=torch.bool)
        return torch.tensor(self.cache.get((self, "mask"), self.counted))

    def pixels(self) -> Bytes:
        """The finished picture, [H, W, 3]."""
        rgb, alpha = self._decoded()
        if alpha is not None and self.background is not None:
            rgb = _composite(rgb, alpha, self.background)
        return np.asarray(_reduced(undistort(rgb, self.lens), self.size), dtype=np.uint8)

    def counted(self) -> NDArray[np.bool_]:
        """Which of its pixels count, [H, W]."""
        weight = np.ones(self.lens.size[::-1], dtype=np.float32)
        if self.mask_path is not None:
            mask = decode_mask(self.mask_path).astype(np.float32)
            weight = _resized(mask, self.lens.size)
        if self.alpha_is_mask:
            _, alpha = self._decoded()
            if alpha is not None:
                weight = weight * (alpha >= 128)
        weight = _reduced(undistort(weight.astype(np.float32), self.lens), self.size)
        return np.asarray(weight, dtype=np.float32) > COUNTS_ABOVE

    def _decoded(self) -> tuple[Bytes, Bytes | None]:
        rgb, alpha = decode(self.path)
        if rgb.shape[1::-1] != self.lens.size:
            raise ImageError(
                f"{self.path} is now {rgb.shape[1]} x {rgb.shape[0]} pixels; it had "
                f"{self.lens.width} x {self.lens.height} when the scene was loaded.\n"
                "  Load the scene again."
            )
        return rgb, alpha


def reduced_size(size: tuple[int, int], factor: float) -> tuple[int, int]:
    """A size reduced by a factor of at most one, rounded to whole pixels."""
    width, height = (max(1, int(side * factor + 0.5)) for side in size)
    return width, height


def _composite(rgb: Bytes, alpha: Bytes, background: Rgb) -> Bytes:
    """Straight alpha over one colour, in encoded values, as the Blender benchmarks do."""
    weight = alpha[..., None].astype(np.float32) / 255
    colour = np.array(background, dtype=np.float32) * 255
    return np.rint(rgb * weight + colour * (1 - weight)).astype(np.uint8)


def _reduced(image: Pixels, size: tuple[int, int]) -> Pixels:
    if image.shape[1::-1] == size:
        return image
    smaller = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return smaller.astype(image.dtype, copy=False)


def _resized(mask: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """A mask brought to the photo's size, whichever of the two is larger."""
    if mask.shape[1::-1] == size:
        return mask
    grows = mask.shape[1] < size[0]
    how = cv2.INTER_NEAREST if grows else cv2.INTER_AREA
    return np.asarray(cv2.resize(mask, size, interpolation=how), dtype=np.float32)
