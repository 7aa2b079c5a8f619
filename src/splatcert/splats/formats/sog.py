# SPDX-License-Identifier: Apache-2.0
"""PlayCanvas SOG, versions 1 and 2: lossless WebP textures and a meta.json, zipped or in a folder.

Pixel i of every texture belongs to Gaussian i. Centres are 16 bits over a logarithmic range,
scales and colours index a codebook (version 2) or a range (version 1), and harmonics
are a palette entry per Gaussian.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from splatcert.errors import be, listed
from splatcert.splats.formats import packed
from splatcert.splats.formats.packed import Floats, damaged, refusal
from splatcert.splats.gaussians import Splats
from splatcert.storage.json_text import parse_json

META = "meta.json"
MAX_META = 1 << 24
MAX_PIXELS_PER_BYTE = 512
"""Textures of one repeated pixel unpack further than this; those of real scenes do not."""
COEFFICIENTS = {0: 0, 1: 3, 2: 8, 3: 15}
PALETTE_ROW = 64
Texture = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class SogBundle:
    """The files of a SOG model, wherever they are, and its checked description."""

    path: Path
    files: tuple[Path, ...]
    read: Callable[[str], bytes]
    """Content of a file by the name that meta.json has."""
    meta: Mapping[str, Any]

    @property
    def version(self) -> int:
        """1 where no version is stated."""
        return self.meta.get("version", 1)

    @property
    def count(self) -> int:
        """Gaussians."""
        return self.meta["count"] if self.version == 2 else self.meta["means"]["shape"][0]

    def numbers(self, part: str, key: str, *shape: int) -> Floats:
        """Numbers of the description, in the shape they must have."""
        try:
            values = np.array(self.meta[part][key], np.float64)
        except (KeyError, TypeError, ValueError, OverflowError):
            values = np.empty(0)
        if values.shape != shape or not np.isfinite(values).all():
            raise damaged(self.path, f"{META}: {part}.{key} must be {list(shape)} finite numbers.")
        return values

    def span(self, part: str, *shape: int) -> tuple[Floats, Floats]:
        """The least and the greatest of the values that a texture stands for."""
        return self.numbers(part, "mins", *shape), self.numbers(part, "maxs", *shape)

    def codebook(self, part: str) -> Floats:
        """The 256 values that bytes of a texture stand for."""
        return self.numbers(part, "codebook", 256)

    def texture(self, part: str, index: int = 0, *, needs: int | None = None) -> Texture:
        """Pixels of a texture, [H, W, 4], at least as many as are needed."""
        files = self.meta[part].get("files") if isinstance(self.meta.get(part), dict) else None
        if not isinstance(files, list) or len(files) <= index or not isinstance(files[index], str):
            raise damaged(self.path, f"{META}: {part}.files must name texture {index + 1}.")
        name, data = files[index], self.read(files[index])
        try:
            with Image.open(BytesIO(data), formats=["WEBP", "PNG"]) as image:
                width, height = image.size
                if width * height > MAX_PIXELS_PER_BYTE * len(data) + packed.SLACK:
                    raise ValueError(f"{width} x {height} pixels from {len(data)} bytes")
                pixels = np.asarray(image.convert("RGBA"))
        except UnidentifiedImageError:
            raise damaged(self.path, f"the texture {name} is not a WebP picture.") from None
        except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError) as why:
            reason = str(why).splitlines()[0][:120] if str(why) else type(why).__name__
            raise damaged(self.path, f"the texture {name} cannot be read: {reason}.") from None
        if needs is not None and width * height < needs:
            raise damaged(self.path, f"{name} has {width * height} pixels for {needs} Gaussians.")
        return pixels

    def rows(self, part: str, index: int = 0) -> Texture:
        """One pixel per Gaussian, [N, 4]."""
        return self.texture(part, index, needs=self.count).reshape(-1, 4)[: self.count]


def open_sog(path: Path) -> packed.FileModel:
    """A zipped SOG, or the folder or meta.json of an unzipped one."""
    bundle = _bundle(path)
    _check_meta(bundle)
    model = bundle.meta.get("model", "default")
    if model == "2dgs":
        raise refusal(
            path,
            "these are 2D Gaussians, flat discs with their own renderer.",
            "Train a 3DGS model of the scene instead.",
        )
    return packed.FileModel(
        format="sog",
        files=bundle.files,
        count=bundle.count,
        sh_degree=_degree(bundle),
        antialiased=_antialiased(bundle),
        decode=lambda: _decode(bundle),
        notes=("a SOG model does not store its frame",),
    )


def _antialiased(bundle: SogBundle) -> bool:
    return bundle.meta.get("model") == "antialiased" or bundle.meta.get("antialias") is True


def is_sog_meta(meta: object) -> bool:
    """Whether parsed JSON describes a SOG model."""
    return isinstance(meta, dict) and {"means", "scales", "quats", "sh0"} <= set(meta)


def _bundle(path: Path) -> SogBundle:
    if path.is_dir():
        path = path / META
    if path.suffix.lower() == ".json":
        folder = path.parent
        meta = _parse(path, packed.whole_file(path).read(count=MAX_META + 1))

        def read(name: str) -> bytes:
            return packed.whole_file(folder / _plain(path, name)).read()

        named = {name for part in meta.values() if isinstance(part, dict) for name in _names(part)}
        files = [folder / _plain(path, name) for name in sorted(named)]
        if missing := [file.name for file in files if not file.exists()]:
            count = f"{len(missing)} of {len(files)} textures {be(len(missing))} missing"
            raise damaged(path, f"{count}: {listed(missing)}.")
        return SogBundle(path, (path, *files), read, meta)
    return _zipped(path)


def _names(part: dict[str, Any]) -> list[str]:
    files = part.get("files")
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []


def _plain(path: Path, name: str) -> str:
    """A file's name; meta.json must not lead out of its folder."""
    if not name or PurePosixPath(name).name != name or "\\" in name or "\0" in name:
        raise damaged(
            path, f"{META} names the texture {name!r:.60}, which is not a plain file name."
        )
    return name


def _zipped(path: Path) -> SogBundle:
    limit = 8 * packed.whole_file(path).size + packed.SLACK

    def read(name: str) -> bytes:
        try:
            with zipfile.ZipFile(path) as archive, archive.open(name) as file:
                data = file.read(limit + 1)
        except KeyError:
            raise damaged(path, f"the archive has no {name}.") from None
        except Exception as why:  # zipfile, zlib and lzma each raise types of their own
            raise damaged(path, f"{name} cannot be unpacked: {str(why)[:120]}.") from None
        if len(data) > limit:
            raise damaged(path, f"{name} unpacks to more than {limit} bytes.")
        return data

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if len(set(names)) < len(names):
            raise ValueError("two of its members have the same name")
        found = [name for name in names if PurePosixPath(name).name == META]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise damaged(path, f"not a readable zip archive ({error}).") from None
    if not found:
        raise damaged(path, f"a zip archive without {META}, so not a SOG model.")
    place = min(found, key=len)
    prefix = place.removesuffix(META)
    return SogBundle(
        path, (path,), lambda name: read(prefix + _plain(path, name)), _parse(path, read(place))
    )


def _parse(path: Path, data: bytes) -> Mapping[str, Any]:
    if len(data) > MAX_META:
        raise damaged(path, f"{META} has more than {MAX_META} bytes.")
    try:
        meta = parse_json(data.decode())
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"{META} is not valid JSON ({error}).") from None
    if not is_sog_meta(meta):
        raise damaged(path, f"{META} does not describe a SOG model (means, scales, quats, sh0).")
    return meta


def _check_meta(bundle: SogBundle) -> None:
    if bundle.version not in (1, 2):
        raise refusal(
            bundle.path,
            f"SOG version {bundle.version!r:.20}; splatcert reads versions 1 and 2.",
            "Convert it: npx @playcanvas/splat-transform scene.sog scene.ply",
        )
    try:
        count = bundle.count
    except (KeyError, TypeError, IndexError):
        count = None
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count < 1 << 31:
        raise damaged(bundle.path, f"{META} states no usable number of Gaussians ({count!r:.30}).")


def _degree(bundle: SogBundle) -> int:
    palette = bundle.meta.get("shN")
    if palette is None:
        return 0
    if bundle.version == 2:
        bands = palette.get("bands") if isinstance(palette, dict) else None
        if bands not in COEFFICIENTS or isinstance(bands, bool):
            raise damaged(bundle.path, f"{META}: shN.bands must be 0 to 3, got {bands!r:.20}.")
        return int(bands)
    width = bundle.texture("shN").shape[1]
    for degree, coefficients in COEFFICIENTS.items():
        if degree and width == PALETTE_ROW * coefficients:
            return degree
    raise damaged(bundle.path, f"a palette of harmonics {width} pixels wide has no known degree.")


def _decode(bundle: SogBundle) -> Splats:
    low, high = (bundle.rows("means", index)[:, :3].astype(np.uint16) for index in (0, 1))
    logarithms = packed.lerp(*bundle.span("means", 3), (low | high << 8) / 65535.0)
    turns = bundle.rows("quats")
    quats = packed.unit_quaternions(
        np.maximum(turns[:, 3], 252) - 252, (turns[:, :3] / 255.0 * 2 - 1) * np.sqrt(0.5)
    )
    quats[turns[:, 3] < 252] = (1, 0, 0, 0)  # as PlayCanvas reads an unknown tag
    colours, scales = bundle.rows("sh0"), bundle.rows("scales")[:, :3]
    if bundle.version == 2:
        log_scales = bundle.codebook("scales")[scales]
        constant = bundle.codebook("sh0")[colours[:, :3]]
        opacities = packed.logits(np.arange(256) / 255.0)[colours[:, 3]]
    else:
        log_scales = packed.lerp(*bundle.span("scales", 3), scales / 255.0)
        levels = packed.lerp(*bundle.span("sh0", 4), colours / 255.0)
        constant, opacities = levels[:, :3], levels[:, 3]
    return packed.assemble(
        means=np.sign(logarithms) * np.expm1(np.abs(logarithms)),
        quats=quats,
        log_scales=log_scales,
        logit_opacities=opacities,
        constant=constant,
        rest=_harmonics(bundle),
        antialiased=_antialiased(bundle),
    )


def _harmonics(bundle: SogBundle) -> NDArray[np.float32] | None:
    """Each Gaussian's entry of the palette, [N, K, 3]; zero where the palette has none."""
    coefficients = COEFFICIENTS[_degree(bundle)]
    if not coefficients:
        return None
    centroids = bundle.texture("shN")[..., :3]
    height, width = centroids.shape[:2]
    if width != PALETTE_ROW * coefficients:
        raise damaged(bundle.path, f"the palette of harmonics is {width} pixels wide.")
    if bundle.version == 2:
        values = bundle.codebook("shN")
        entries = int(bundle.numbers("shN", "count"))
    else:
        values = packed.lerp(*bundle.span("shN"), np.arange(256) / 255.0)
        entries = PALETTE_ROW * height
    palette = values.astype(np.float32)[centroids.reshape(-1, coefficients, 3)]
    entries = min(entries, len(palette))
    labels = bundle.rows("shN", 1)[:, :2].astype(np.int64)
    chosen = labels[:, 0] | labels[:, 1] << 8
    known = np.append(palette[:entries], np.zeros((1, coefficients, 3), np.float32), axis=0)
    return known[np.minimum(chosen, entries)]
