# SPDX-License-Identifier: Apache-2.0
"""Malformed inputs made by hand: what an attacker, a broken disk or bad luck would write."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import torch

from splatcert.splats.files import load_splats, save_ply

Spoil = Callable[[Path], object]

STUDY = "studies/truck-fastgs-model.npz"
CHECKPOINT = "nerfstudio_models/step-000029999.ckpt"
BOMB_SIDE = 60_000
MILLION_LAUGHS = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 40))]
)
MERGED_LAUGHS = "\n".join(
    [
        "a0: &a0 {x: 1}",
        *(f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}" for k in range(1, 40)),
    ]
)


def replaced(old: bytes, new: bytes, file: str = "") -> Spoil:
    def spoil(it: Path) -> None:
        path = it / file if file else it
        data = path.read_bytes()
        assert old in data, old
        path.write_bytes(data.replace(old, new, 1))

    return spoil


def written(content: bytes | str, file: str = "") -> Spoil:
    data = content.encode() if isinstance(content, str) else content
    return lambda it: (it / file if file else it).write_bytes(data)


def edited(change: Callable[[Any], object], file: str = "") -> Spoil:
    """A JSON file with one change."""

    def spoil(it: Path) -> None:
        path = it / file if file else it
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return spoil


def frame(**entries: Any) -> Spoil:
    return edited(lambda meta: meta["frames"][1].update(entries), "transforms.json")


def meta(**entries: Any) -> Spoil:
    return edited(lambda content: content.update(entries), "transforms.json")


def camera(**entries: Any) -> Spoil:
    return edited(lambda content: content[0].update(entries))


def poisoned(name: str, value: float, rows: slice | int = 3) -> Spoil:
    """Splats with one value of one tensor, in some rows."""

    def spoil(it: Path) -> None:
        splats = load_splats(it)
        tensor = getattr(splats, name).clone()
        tensor[rows] = value
        save_ply(replace(splats, **{name: tensor}), it)

    return spoil


def kept(count: int) -> Spoil:
    """The first few Gaussians alone."""

    def spoil(it: Path) -> None:
        splats = load_splats(it)
        save_ply(splats[:count], it)

    return spoil


def placed(offset: tuple[float, float, float]) -> Spoil:
    """A Gaussian relative to the first camera: at its centre, behind it, far away."""

    def spoil(it: Path) -> None:
        from splatcert_bench.synthetic.scenes import made_cameras

        one = made_cameras(18, 24, 16, turn=60)[0]
        splats = load_splats(it)
        means = splats.means.clone()
        means[0] = torch.tensor(one.centre + one.world_to_camera[:3, :3].T @ np.array(offset))
        save_ply(replace(splats, means=means), it)

    return spoil


def checkpoint(file: str, change: Callable[[dict], object]) -> Spoil:
    """A torch file with other content; `change` gets the splats' tensors and returns it all."""

    def spoil(it: Path) -> None:
        path = it / file if file else it
        with catch_warnings():
            simplefilter("ignore")  # some of what is made here is deprecated
            torch.save(change(made(path)), path)

    return spoil


def made(path: Path) -> dict:
    content = torch.load(path, weights_only=False)
    return content.get("splats") or content["pipeline"]


class _Exploit:
    def __reduce__(self) -> tuple:
        return os.system, ("touch pwned",)


def _with(name: str, change: Callable[[torch.Tensor], object]) -> Callable[[dict], object]:
    return lambda splats: {"step": 1, "splats": {**splats, name: change(splats[name])}}


def _endless(tensor: torch.Tensor) -> torch.Tensor:
    """A huge tensor over the storage of one number: its file is small, a copy is not."""
    return tensor.flatten()[:1].expand(1 << 36, *tensor.shape[1:])


def _all_endless(splats: dict) -> object:
    return {"splats": {name: _endless(tensor) for name, tensor in splats.items()}}


def raw_pickle(it: Path) -> None:
    it.write_bytes(pickle.dumps({"splats": _Exploit()}, protocol=2))


def png_bomb(width: int, height: int) -> bytes:
    """A valid PNG of one colour: large on the screen, small on the disk."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    packer = zlib.compressobj(9)
    row = b"\0" * (width // 8 + 2)
    rows = b"".join(packer.compress(row) for _ in range(min(height, 100))) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def link(file: str, target: str) -> Spoil:
    """A file replaced by a link."""

    def spoil(it: Path) -> None:
        path = it / file if file else it
        path.unlink()
        path.symlink_to(target)

    return spoil


def pipe(file: str = "") -> Spoil:
    """A file replaced by a pipe that nobody writes to, as an archive can hold."""

    def spoil(it: Path) -> None:
        path = it / file if file else it
        path.unlink()
        os.mkfifo(path)

    return spoil


def as_folder(file: str = "") -> Spoil:
    def spoil(it: Path) -> None:
        path = it / file if file else it
        path.unlink()
        path.mkdir()

    return spoil


def toml(more: str, instead_of: str = "") -> Spoil:
    """A bench's file with more at its end, perhaps in place of something."""
    return lambda it: it.write_text(it.read_text().replace(instead_of, "") + "\n" + more + "\n")


def toml_head(more: str) -> Spoil:
    """A bench's file with more at its beginning."""
    return lambda it: it.write_text(more + "\n" + it.read_text())


def sparse(size: int, file: str = "") -> Spoil:
    """A file that claims much of the disk and takes none."""

    def spoil(it: Path) -> None:
        with (it / file if file else it).open("wb") as one:
            one.truncate(size)

    return spoil


def nested(depth: int) -> list:
    """Lists in lists."""
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


def numbers(kind: str, change: Callable[[dict[str, np.ndarray]], object]) -> Spoil:
    """A study, its ratios or its picture with other arrays."""

    def spoil(it: Path) -> None:
        path = it / STUDY.replace(".npz", f"{kind}.npz")
        archive(change)(path)

    return spoil


def study(change: Callable[[dict, dict[str, np.ndarray]], object]) -> Spoil:
    """A study with another header or other arrays."""

    def both(arrays: dict[str, np.ndarray]) -> None:
        header = json.loads(str(arrays.pop("header")))
        change(header, arrays)
        arrays["header"] = np.array(json.dumps(header))

    return numbers("", both)


def without(file: str) -> Spoil:
    return lambda it: (it / file).unlink()


def archive(change: Callable[[dict[str, np.ndarray]], object]) -> Spoil:
    """Per-view arrays with one change."""

    def spoil(it: Path) -> None:
        with np.load(it) as found:
            arrays = dict(found)
        change(arrays)
        with it.open("wb") as file:
            np.savez(file, **arrays)

    return spoil


def npz_bomb(it: Path) -> None:
    """An array that unpacks to 64 GiB from a few bytes, or claims to."""
    head = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (1 << 33,)}
    np.lib.format.write_array_header_1_0(head, claim)
    with zipfile.ZipFile(it, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("format.npy", head.getvalue() + bytes(1 << 20))


def npz_member(header: bytes, body: bytes = b"") -> Spoil:
    """An archive of one array with this header, which NumPy parses as Python."""
    text = header + b" " * (-(len(header) + 11) % 64) + b"\n"

    def spoil(it: Path) -> None:
        with zipfile.ZipFile(it, "w") as file:
            magic = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text))
            file.writestr("format.npy", magic + text + body)

    return spoil


def npz_unpacking(it: Path) -> None:
    """An archive that really unpacks to far more than a certificate ever holds."""
    with zipfile.ZipFile(it, "w", zipfile.ZIP_DEFLATED) as file:
        head = io.BytesIO()
        size = 65 << 20
        claim = {"descr": "|u1", "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(head, claim)
        with file.open("format.npy", "w", force_zip64=True) as member:
            member.write(head.getvalue())
            for _ in range(65):
                member.write(bytes(1 << 20))


def tensors(file: str, header: dict | bytes, body: bytes = b"") -> Spoil:
    """A safetensors file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return written(struct.pack("<Q", len(text)) + text + body, file)


def lens(text: str) -> Spoil:
    return written(f"1 {text}\n", "sparse/0/cameras.txt")


COUNT = b"element vertex 60"
HANDMADE: dict[str, dict[str, Spoil]] = {
    "model.ply": {
        "a-pipe": pipe(),
        "a-device": link("", "/dev/zero"),
        "count-huge": replaced(COUNT, b"element vertex 1099511627776"),
        "count-absurd": replaced(COUNT, b"element vertex 99999999999999999999"),
        "count-one-more": replaced(COUNT, b"element vertex 61"),
        "count-one-less": replaced(COUNT, b"element vertex 59"),
        "count-negative": replaced(COUNT, b"element vertex -1"),
        "count-words": replaced(COUNT, b"element vertex many"),
        "big-endian-by-name": replaced(b"binary_little", b"binary_big"),
        "unknown-format": replaced(b"binary_little_endian", b"binary_middle_endian"),
        "ascii-by-name": replaced(b"binary_little_endian", b"ascii"),
        "list-column": replaced(b"property float opacity", b"property list int float opacity"),
        "double-column": replaced(b"property float opacity", b"property double opacity"),
        "twice-the-same-column": replaced(b"property float scale_1", b"property float scale_0"),
        "no-opacity": replaced(b"property float opacity", b"property float opaque"),
        "flat": replaced(b"property float scale_2", b"property float flat_one"),
        "endless-list": replaced(COUNT, b"element face 3\nproperty list uint uint a\n" + COUNT),
        "empty-element": replaced(COUNT, b"element nothing 1099511627776\n" + COUNT),
        "million-columns": replaced(
            COUNT, COUNT + b"\n" + b"\n".join(b"property char c%d" % k for k in range(30_000))
        ),
        "endless-line": written(b"ply\n" + b"x" * 100_000),
        "old-lines": replaced(b"ply\n", b"ply\r"),
        "nothing-but-ply": written(b"ply\n"),
        "zeros": written(bytes(4096)),
        "a-zip": written(b"PK\x03\x04" + bytes(100)),
        "a-folder": as_folder(),
        "dangling-link": link("", "nowhere.ply"),
        "link-loop": link("", "model.ply"),
        "nan-mean": poisoned("means", float("nan")),
        "inf-mean": poisoned("means", float("inf"), slice(2, 9)),
        "huge-mean": poisoned("means", 1e30),
        "nan-scale": poisoned("log_scales", float("nan")),
        "inf-scale": poisoned("log_scales", float("inf")),
        "no-scale": poisoned("log_scales", float("-inf")),
        "tiny-scale": poisoned("log_scales", -200.0),
        "huge-scale": poisoned("log_scales", 80.0),
        "enormous-scale": poisoned("log_scales", 1e30),
        "zero-rotation": poisoned("quats", 0.0, slice(4, 7)),
        "tiny-rotation": poisoned("quats", 1e-30),
        "huge-rotation": poisoned("quats", 1e30),
        "opaque": poisoned("logit_opacities", float("inf")),
        "all-opaque": poisoned("logit_opacities", float("inf"), slice(None)),
        "transparent": poisoned("logit_opacities", float("-inf"), slice(None)),
        "nan-opacity": poisoned("logit_opacities", float("nan")),
        "nan-colour": poisoned("sh", float("nan")),
        "huge-colour": poisoned("sh", 1e38),
        "one": kept(1),
        "none": kept(0),
        "at-the-camera": placed((0.0, 0.0, 0.0)),
        "behind-the-camera": placed((0.0, 0.0, -1.0)),
        "in-the-near-plane": placed((0.0, 0.0, 0.01)),
        "far-away": placed((0.0, 0.0, 1e8)),
    },
    "ascii.ply": {
        "words": replaced(b"end_header\n", b"end_header\nhello world\n"),
        "nothing-after-header": lambda it: it.write_bytes(
            it.read_bytes().split(b"end_header\n")[0] + b"end_header\n"
        ),
    },
    "gsplat.pt": {
        "a-pipe": pipe(),
        "a-device": link("", "/dev/zero"),
        "code": raw_pickle,
        "code-inside": checkpoint("", lambda s: {"splats": s, "more": _Exploit()}),
        "not-named": checkpoint("", lambda s: [1, 2]),
        "no-splats": checkpoint("", lambda s: {"step": 1}),
        "splats-no-table": checkpoint("", lambda s: {"splats": [s]}),
        "missing-tensor": checkpoint(
            "", lambda s: {"splats": {k: v for k, v in s.items() if k != "quats"}}
        ),
        "wrong-shape": checkpoint("", _with("means", lambda t: t[:, :2])),
        "no-axes": checkpoint("", _with("means", lambda t: t[0, 0])),
        "flat-harmonics": checkpoint("", _with("shN", lambda t: t.flatten(1))),
        "odd-degree": checkpoint("", _with("shN", lambda t: t[:, :2])),
        "complex": checkpoint("", _with("means", lambda t: t.to(torch.complex64))),
        "integers": checkpoint("", _with("means", lambda t: t.to(torch.int32))),
        "sparse": checkpoint("", _with("means", lambda t: t.to_sparse())),
        "quantised": checkpoint(
            "", _with("means", lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8))
        ),
        "on-no-device": checkpoint("", _with("means", lambda t: t.to("meta"))),
        "a-list": checkpoint("", _with("means", lambda t: t.tolist())),
        "nan": checkpoint("", _with("means", lambda t: t * float("nan"))),
        "endless": checkpoint("", _all_endless),
        "half": checkpoint("", lambda s: {"splats": {k: v.half() for k, v in s.items()}}),
    },
    "gsplat": {
        "pipe": pipe("cfg.yml"),
        "rank-missing": lambda it: (it / "ckpts/ckpt_6999_rank0.pt").rename(
            it / "ckpts/ckpt_6999_rank1.pt"
        ),
        "rank-huge": lambda it: (it / "ckpts/ckpt_6999_rank0.pt").rename(
            it / "ckpts/ckpt_6999_rank999999.pt"
        ),
        "laughs": written(MILLION_LAUGHS, "cfg.yml"),
        "merged-laughs": written(MERGED_LAUGHS, "cfg.yml"),
        "object": written(
            "antialiased: !!python/object/apply:os.system ['touch pwned']", "cfg.yml"
        ),
        "itself": written("a: &a [*a]\nb: &b {c: *b}", "cfg.yml"),
        "sixty": written("test_every: " + ":".join(["59"] * 5000), "cfg.yml"),
        "other-types": written("test_every: [1]\nantialiased: {}\nmodel_type: 3", "cfg.yml"),
        "list": written("- 1\n- 2", "cfg.yml"),
        "tabs": written("a:\n\t- b", "cfg.yml"),
        "too-large": written("# " + "x" * (2 << 20), "cfg.yml"),
    },
    "nerfstudio": {
        "no-pipeline": checkpoint(CHECKPOINT, lambda s: {"step": 1, "pipeline": [s]}),
        "other-model": checkpoint(CHECKPOINT, lambda s: {"pipeline": {"_model.field.w": s}}),
        "endless": checkpoint(
            CHECKPOINT,
            lambda s: {"pipeline": {key: _endless(value) for key, value in s.items()}},
        ),
        "number-keys": checkpoint(CHECKPOINT, lambda s: {"pipeline": {1: 2, **s}}),
        "no-scale": edited(lambda c: c.update(scale=0.0), "dataparser_transforms.json"),
        "nan-scale": edited(lambda c: c.update(scale=float("nan")), "dataparser_transforms.json"),
        "huge-scale": edited(lambda c: c.update(scale=10**400), "dataparser_transforms.json"),
        "sheared": edited(
            lambda c: c.update(transform=[[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
            "dataparser_transforms.json",
        ),
        "laughs": written(MILLION_LAUGHS, "config.yml"),
        "object": written("!!python/object/apply:os.system ['touch pwned']", "config.yml"),
        "strange-split": written(
            "pipeline: {datamanager: {dataparser: {eval_mode: [1], train_split_fraction: .nan}}}",
            "config.yml",
        ),
    },
    "inria": {
        "pipe": pipe("cfg_args"),
        "device": link("cfg_args", "/dev/zero"),
        "code": written("Namespace(eval=__import__('os').system('touch pwned'))", "cfg_args"),
        "lambda": written("(lambda: Namespace)()(eval=True)", "cfg_args"),
        "deep": written("Namespace(eval=" + "(" * 50_000 + ")" * 50_000 + ")", "cfg_args"),
        "deep-minus": written("Namespace(eval=" + "-" * 60_000 + "1)", "cfg_args"),
        "power": written("Namespace(sh_degree=9**9**9**9)", "cfg_args"),
        "other-types": written("Namespace(eval='yes', images=3, resolution='x')", "cfg_args"),
        "stars": written("Namespace(*[1], **{'eval': True})", "cfg_args"),
        "iteration-huge": lambda it: (it / "point_cloud/iteration_7000").rename(
            it / "point_cloud/iteration_99999999999999999999"
        ),
        "iteration-words": lambda it: (it / "point_cloud/iteration_7000").rename(
            it / "point_cloud/iteration_last"
        ),
    },
    "colmap_bin": {
        "cameras-pipe": pipe("sparse/0/cameras.bin"),
        "points-pipe": pipe("sparse/0/points3D.bin"),
        "photo-pipe": pipe("images/01.png"),
        "cameras-device": link("sparse/0/cameras.bin", "/dev/zero"),
        "text-inside": lambda it: (it / "sparse/0/images.bin").write_bytes(
            b"# Image list\n1 1 0 0 0 0 0 0 1 a.png\n\n"
        ),
        "no-cameras": without("sparse/0/cameras.bin"),
        "no-images": without("sparse/0/images.bin"),
        "model-link-loop": lambda it: (it / "sparse/1").symlink_to("1"),
        "model-beside-cut": lambda it: (
            (it / "sparse/1").mkdir(),
            (it / "sparse/1/images.bin").write_bytes(struct.pack("<Q", 2**63)),
        ),
        "model-number-huge": lambda it: (it / "sparse/0").rename(it / f"sparse/{'9' * 200}"),
        "photos-folder-is-root": lambda it: (
            (it / "images").rename(it / "photos"),
            (it / "images").symlink_to("/"),
        ),
        "folder-for-cameras": as_folder("sparse/0/cameras.bin"),
        "no-photos": written(struct.pack("<Q", 0), "sparse/0/images.bin"),
        "photos-swapped": lambda it: (it / "sparse/0/images.bin").write_bytes(
            (it / "sparse/0/points3D.bin").read_bytes()
        ),
        "name-outside": replaced(
            b"01.png\0", b"../../../../../../etc/passwd\0", "sparse/0/images.bin"
        ),
        "name-absolute": replaced(b"01.png\0", b"/etc/passwd\0", "sparse/0/images.bin"),
        "name-very-long": replaced(b"01.png\0", b"x" * 3000 + b"\0", "sparse/0/images.bin"),
        "name-control": replaced(b"01.png\0", b"\x1b[2J\n\n\n\n\n\n\0", "sparse/0/images.bin"),
        "photo-link-outside": link("images/01.png", "/etc/hostname"),
        "photo-link-loop": link("images/01.png", "01.png"),
        "photo-missing": without("images/01.png"),
        "photo-held-out-missing": without("images/00.png"),
        "photo-folder": as_folder("images/01.png"),
        "photo-bomb": written(png_bomb(BOMB_SIDE, BOMB_SIDE), "images/01.png"),
        "photo-other-size": written(png_bomb(24, 17), "images/01.png"),
        "photo-text": written("this is no picture", "images/01.png"),
        "photo-postscript": written(
            "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 24 16\n", "images/01.png"
        ),
        "points-nan": replaced(
            struct.pack("<d", 0.5), struct.pack("<d", float("nan")), "sparse/0/points3D.bin"
        ),
        "photos-empty": lambda it: [p.write_bytes(b"") for p in (it / "images").iterdir()],
    },
    "colmap_txt": {
        "images-pipe": pipe("sparse/0/images.txt"),
        "images-device": link("sparse/0/images.txt", "/dev/zero"),
        "no-pixels": lens("PINHOLE 0 16 20 20 12 8"),
        "negative-focal": lens("PINHOLE 24 16 -20 -20 12 8"),
        "no-focal": lens("PINHOLE 24 16 0 0 12 8"),
        "nan-focal": lens("PINHOLE 24 16 nan nan 12 8"),
        "infinite-focal": lens("PINHOLE 24 16 inf inf 12 8"),
        "enormous-focal": lens("PINHOLE 24 16 1e300 1e300 12 8"),
        "tiny-focal": lens("PINHOLE 24 16 1e-300 1e-300 12 8"),
        "centre-far-away": lens("PINHOLE 24 16 20 20 1e9 8"),
        "enormous-picture": lens("PINHOLE 24000000000 16000000000 20 20 12 8"),
        "digits": lens("PINHOLE " + "9" * 5000 + " 16 20 20 12 8"),
        "mad-distortion": lens("OPENCV 24 16 20 20 12 8 1e300 -1e300 1e9 1"),
        "fisheye": lens("OPENCV_FISHEYE 24 16 20 20 12 8 5 -9 4 1"),
        "unknown-lens": lens("HOLOGRAPHIC 24 16 20"),
        "panorama": lens("EQUIRECTANGULAR 24 16 24 16"),
        "too-few-numbers": lens("PINHOLE 24 16 20"),
        "zero-rotation": written("1 0 0 0 0 0 0 0 1 00.png\n\n", "sparse/0/images.txt"),
        "point-id-digits": written(
            f"1 1 0 0 0 0 0 0 1 00.png\n1 2 {'1' * 80}\n", "sparse/0/images.txt"
        ),
        "number-digits": written(
            f"# Number of cameras: {'9' * 5000}\n1 PINHOLE 24 16 20 20 12 8\n",
            "sparse/0/cameras.txt",
        ),
        "photo-twice": written(
            "1 1 0 0 0 0 0 0 1 a.png\n\n2 1 0 0 0 0 0 0 1 a.png\n\n", "sparse/0/images.txt"
        ),
        "other-camera": written("1 1 0 0 0 0 0 0 9 00.png\n\n", "sparse/0/images.txt"),
        "huge-shift": written(
            "".join(f"{k + 1} 1 0 0 0 1e300 0 {k}e299 1 {k:02d}.png\n\n" for k in range(12)),
            "sparse/0/images.txt",
        ),
        "same-centre": written(
            "".join(f"{k + 1} 1 0 0 0 0 0 0 1 {k:02d}.png\n\n" for k in range(12)),
            "sparse/0/images.txt",
        ),
        "huge-point": written("1 1e300 -1e300 1e300 9 9 9 0.5\n" * 2, "sparse/0/points3D.txt"),
        "no-points": written("# none\n", "sparse/0/points3D.txt"),
        "point-id": written("-1 0 0 0 9 9 9 0.5\n", "sparse/0/points3D.txt"),
        "colour-300": written("1 0 0 0 300 9 9 0.5\n", "sparse/0/points3D.txt"),
    },
    "transforms": {
        "file-is-pipe": pipe("transforms.json"),
        "file-is-device": link("transforms.json", "/dev/zero"),
        "points-are-pipe": pipe("points.ply"),
        "photo-is-pipe": pipe("images/01.png"),
        "outside": frame(file_path="../../../../../../etc/passwd"),
        "absolute": frame(file_path="/etc/passwd"),
        "null-byte": frame(file_path="images/\0.png"),
        "name-too-long": frame(file_path="images/" + "x" * 400),
        "not-unicode": frame(file_path="images/\ud800.png"),
        "many-lines": frame(file_path="a\nb\nc\nd\ne\nf"),
        "mask-outside": frame(mask_path="../../../etc/passwd"),
        "mask-absolute": frame(mask_path="/dev/zero"),
        "points-outside": meta(ply_file_path="/etc/passwd"),
        "points-device": meta(ply_file_path="/dev/zero"),
        "points-number": meta(ply_file_path=7),
        "points-folder": meta(ply_file_path="images"),
        "huge-number": meta(fl_x=10**400),
        "huge-matrix": frame(transform_matrix=[[10**400] * 4] * 4),
        "zero-matrix": frame(transform_matrix=[[0] * 4] * 4),
        "mirrored": frame(
            transform_matrix=[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]]
        ),
        "giant-matrix": frame(transform_matrix=[[1e308] * 4] * 4),
        "negative-focal": meta(fl_x=-20, fl_y=-20),
        "picture-8000-6000": meta(w=8000, h=6000),
        "picture-one": meta(w=1, h=1),
        "picture-huge": meta(w=1e18, h=1e18),
        "picture-fraction": meta(w=0.5, h=0.5),
        "angle-pi": meta(fl_x=None, fl_y=None, camera_angle_x=3.2),
        "no-frames": meta(frames=[]),
        "frames-object": meta(frames={"0": {}}),
        "frame-number": edited(lambda m: m["frames"].append(5), "transforms.json"),
        "frame-twice": edited(lambda m: m["frames"].append(m["frames"][0]), "transforms.json"),
        "train-names": meta(train_filenames=["nobody.png"]),
        "train-object": meta(train_filenames={"a": 1}),
        "scale-zero": meta(applied_scale=0),
        "applied-zero": meta(applied_transform=[[0] * 4] * 3),
        "lens-unknown": meta(camera_model="MAGIC"),
        "no-size": lambda it: (
            meta(w=None, h=None)(it),
            [path.unlink() for path in (it / "images").iterdir()],
        ),
        "points-no-vertices": replaced(b"element vertex 20", b"element corner 20", "points.ply"),
        "points-twice": replaced(b"property float nx", b"property float x", "points.ply"),
        "points-lists": replaced(b"property float nx", b"property list int int n", "points.ply"),
        "points-count": replaced(b"vertex 20", b"vertex 4000000000", "points.ply"),
        "points-nan": replaced(b"property float x", b"property int x", "points.ply"),
        "photos-one-pixel": lambda it: (
            [path.write_bytes(png_bomb(1, 1)) for path in (it / "images").iterdir()]
        ),
        "file-is-folder": as_folder("transforms.json"),
        "ply-is-itself": link("points.ply", "points.ply"),
    },
    "cameras.json": {
        "a-pipe": pipe(),
        "a-device": link("", "/dev/zero"),
        "no-list": written("{}"),
        "empty-list": written("[]"),
        "same-name": edited(lambda content: content.append(content[0])),
        "no-pixels": camera(width=0),
        "negative-focal": camera(fx=-20.0),
        "enormous-focal": camera(fx=1e300, fy=1e300),
        "one-pixel": camera(width=1, height=1),
        "enormous": camera(width=10**6, height=10**6),
        "beyond": camera(width=10**12, height=10**12),
        "infinite": camera(width=float("inf")),
        "huge-number": camera(fx=10**400),
        "outside": camera(img_name="../../escaped"),
        "absolute": camera(img_name="/srv/escaped"),
        "long-name": camera(img_name="x" * 400),
        "null-name": camera(img_name="a\0b"),
        "far-away": camera(position=[1e300, 1e300, 1e300]),
        "nowhere": camera(position=[float("nan"), 0, 0]),
        "no-rotation": camera(rotation=[[0] * 3] * 3),
        "digits": written('[{"fx": ' + "9" * 5000 + "}]"),
        "a-folder": as_folder(),
    },
    "run": {
        "train-pipe": pipe("train.json"),
        "splats-pipe": pipe("splats.ply"),
        "no-result": edited(lambda c: c.update(result=None), "train.json"),
        "list": written("[]", "train.json"),
        "request-list": edited(lambda c: c.update(request=[]), "train.json"),
        "config-list": edited(lambda c: c["request"].update(config=[]), "train.json"),
        "result-list": edited(lambda c: c.update(result=[1]), "train.json"),
        "sizes-huge": edited(lambda c: c["request"].update(sizes=[[10**400]]), "train.json"),
        "labels-list": edited(lambda c: c.update(labels=[5]), "metrics.json"),
        "metrics-list": written("[]", "metrics.json"),
        "splats-cut": lambda it: (it / "splats.ply").write_bytes(
            (it / "splats.ply").read_bytes()[:500]
        ),
        "train-folder": as_folder("train.json"),
    },
    "half_run": {
        "pipe": pipe("checkpoint.safetensors"),
        "header-huge": written(struct.pack("<Q", 1 << 62) + b"{}", "checkpoint.safetensors"),
        "header-empty": tensors("checkpoint.safetensors", {}),
        "offsets-beyond": tensors(
            "checkpoint.safetensors",
            {"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}},
        ),
        "header-no-json": tensors("checkpoint.safetensors", b"{{{{"),
        "step-words": lambda it: _edit_checkpoint(it, lambda t, m: m.update(step="soon")),
        "step-negative": lambda it: _edit_checkpoint(it, lambda t, m: m.update(step="-5")),
        "step-huge": lambda it: _edit_checkpoint(it, lambda t, m: m.update(step="9" * 30)),
        "rows-missing": lambda it: _edit_checkpoint(
            it, lambda t, m: t.update({"value.means": t["value.means"][:5]})
        ),
        "moments-missing": lambda it: _edit_checkpoint(
            it, lambda t, m: t.update({"first.sh": t["first.sh"][:, :1]})
        ),
        "doubles": lambda it: _edit_checkpoint(
            it, lambda t, m: t.update({"value.means": t["value.means"].double()})
        ),
        "statistics-short": lambda it: _edit_checkpoint(
            it, lambda t, m: t.update({k: v[:2] for k, v in t.items() if k.startswith("stats")})
        ),
        "nan": lambda it: _edit_checkpoint(it, lambda t, m: t["value.means"].fill_(float("nan"))),
        "tensor-missing": lambda it: _edit_checkpoint(it, lambda t, m: t.pop("second.quats")),
    },
    "cert": {
        "main-pipe": pipe("certificate.json"),
        "views-pipe": pipe("views.npz"),
        "field-pipe": pipe("field.safetensors"),
        "places-pipe": pipe("places.json"),
        "no-field": without("field.safetensors"),
        "no-views": without("views.npz"),
        "main-folder": as_folder("certificate.json"),
        "schema-1": edited(lambda c: c.update(schema=1), "certificate.json"),
        "schema-list": edited(lambda c: c.update(schema=[2]), "certificate.json"),
        "threshold": edited(lambda c: c["guarantee"].update(threshold=1e-9), "certificate.json"),
        "alpha-digits": edited(
            lambda c: c["guarantee"].update(alpha="1/" + "9" * 5000), "certificate.json"
        ),
        "alpha-unicode": edited(lambda c: c["guarantee"].update(alpha="²/1"), "certificate.json"),
        "alpha-arabic": edited(lambda c: c["guarantee"].update(alpha="١/١٠"), "certificate.json"),
        "literal-list": edited(lambda c: c["scale"].update(unit=["deployed"]), "certificate.json"),
        "number-list": edited(lambda c: c["guarantee"].update(threshold=[]), "certificate.json"),
        "number-object": edited(lambda c: c["guarantee"].update(threshold={}), "certificate.json"),
        "views-none": edited(lambda c: c.update(calibration=[]), "certificate.json"),
        "files-outside": edited(
            lambda c: c.update(files={"../../x": "0" * 64}), "certificate.json"
        ),
        "views-text": written("hello", "views.npz"),
        "field-header": written(struct.pack("<Q", 1 << 62), "field.safetensors"),
        "field-other": tensors("field.safetensors", {}),
        "field-link": link("field.safetensors", "/dev/zero"),
        "places-deep": written("[" * 20_000 + "]" * 20_000, "places.json"),
        "places-device": written('{"model": "/dev/zero", "data": "/dev"}', "places.json"),
        "places-null": written('{"model": "a\\u0000b", "data": 5}', "places.json"),
        "places-long": written(f'{{"model": "{"x" * 5000}"}}', "places.json"),
        "places-outside": written('{"model": "/etc/passwd", "data": "/etc"}', "places.json"),
        "places-two-gigabytes": sparse(2 << 30, "places.json"),
    },
    "bench.toml": {
        "a-pipe": pipe(),
        "garbage": written(bytes(range(256)) * 64),
        "deep-list": toml("x = " + "[" * 20_000 + "]" * 20_000),
        "deep-table": toml("x = " + "{a = " * 5_000 + "1" + "}" * 5_000),
        "deep-key": toml(".".join(["a"] * 20_000) + " = 1"),
        "digits": toml("backend = " + "9" * 5_000),
        "too-large": written('profile = "smoke"\n# ' + "x" * (2 << 20)),
        "two-gigabytes": sparse(2 << 30),
        "device": link("", "/dev/zero"),
        "a-folder": as_folder(),
        "nothing": written(""),
        "bom": written("\ufeffprofile = 'smoke'"),
        "profile-list": replaced(b'profile = "smoke"', b'profile = ["smoke"]'),
        "profile-none": replaced(b'profile = "smoke"\n', b""),
        "key-unknown": toml("[surprise]\nx = 1"),
        "section-list": toml("[[train]]\niterations = 5", "[train]\niterations = 150\n"),
        "scenes-none": lambda it: it.write_text('profile = "cpu"\nscene = []\n'),
        "scenes-words": lambda it: it.write_text('profile = "cpu"\nscene = ["a", "b"]\n'),
        "scene-date": replaced(b'family = "first"', b"family = 1979-05-27"),
        "name-slash": replaced(b'name = "one"', b'name = "../../one"'),
        "name-absolute": replaced(b'name = "one"', b'name = "/srv/one"'),
        "name-dots": replaced(b'name = "one"', b'name = ".."'),
        "name-lines": replaced(b'name = "one"', b'name = "a\\nb\\nc\\nd\\ne\\nf"'),
        "name-null": replaced(b'name = "one"', b'name = "a\\u0000b"'),
        "name-long": replaced(b'name = "one"', b'name = "' + b"x" * 5_000 + b'"'),
        "name-learn": replaced(b'name = "one"', b'name = "learn"'),
        "name-twice": replaced(b'name = "one"', b'name = "two"'),
        "path-lines": replaced(b"made = 1", b'path = "a\\nb\\nc\\nd\\ne\\nf"'),
        "path-device": replaced(b"made = 1", b'path = "/dev/zero"'),
        "path-nowhere": replaced(b"made = 1", b'path = "nowhere"'),
        "paths-nowhere": lambda it: it.write_text(
            'profile = "cpu"\n'
            + "".join(f'[[scene]]\nname = "s{k}"\nfamily = "f"\npath = "p{k}"\n' for k in range(9))
        ),
        "path-and-made": replaced(b"made = 1", b'made = 1\npath = "nowhere"'),
        "made-minus": replaced(b"made = 1", b"made = -1"),
        "made-huge": replaced(b"made = 1", b"made = 99999999999999999999"),
        "model-nowhere": replaced(b"made = 1", b'made = 1\nmodel = "/etc"'),
        "densities-twice": replaced(b"made = 1", b'made = 1\ndensities = ["vanilla", "vanilla"]'),
        "densities-unknown": replaced(b"made = 1", b'made = 1\ndensities = ["magic"]'),
        "pool-outside": replaced(b'name = "both"', b'name = "../../../both"'),
        "pool-unknown": replaced(b'["one", "two"]', b'["nobody"]'),
        "pool-target": replaced(b'["one", "two"]', b'["one"]\ntargets = ["nobody"]'),
        "pool-twice": toml('[[pool]]\nname = "both"\nsources = ["one"]'),
        "members-huge": replaced(b"count = 0", b"count = 999999999"),
        "members-one": replaced(b"count = 0", b"count = 1"),
        "members-minus": replaced(b"count = 0", b"count = -1"),
        "folds-huge": replaced(b"folds = 0", b"folds = 999999999"),
        "member-steps": replaced(b"count = 0", b"count = 2\niterations = 0"),
        "holdout-none": replaced(b"holdout = 2", b"holdout = 0"),
        "resolution-minus": replaced(b"holdout = 2", b"holdout = 2\nresolution = -5"),
        "views-huge": replaced(b"views = 24", b"views = 999999999"),
        "views-few": replaced(b"views = 24", b"views = 2"),
        "width-huge": replaced(b"width = 24", b"width = 999999999"),
        "gaussians-huge": replaced(b"gaussians = 1500", b"gaussians = 999999999999"),
        "steps-words": replaced(b"iterations = 150", b'iterations = "many"'),
        "steps-minus": replaced(b"iterations = 150", b"iterations = -1"),
        "ridge-infinite": replaced(b"max_steps = 2", b"max_steps = 2\nridge = inf"),
        "ridge-nan": replaced(b"max_steps = 2", b"max_steps = 2\nridge = nan"),
        "field-folds": replaced(b"max_steps = 2", b"max_steps = 2\nfolds = 999999999"),
        "splits-huge": replaced(b"native_splits = 3", b"native_splits = 99999999999999999999"),
        "bootstrap-none": replaced(b"bootstrap = 10", b"bootstrap = 0"),
        "seed-minus": replaced(b"bootstrap = 10", b"bootstrap = 10\nseed = -1"),
        "learn-beta": replaced(b"[learn]", b'[learn]\nbeta = "1/0"'),
        "learn-beta-unstored": replaced(b"[learn]", b'[learn]\nbeta = "7/23"'),
        "betas-words": replaced(b"repeats = 1", b'repeats = 1\nbetas = ["1/10", "lots"]'),
        "repeats-none": replaced(b"repeats = 1", b"repeats = 0"),
        "method-unknown": replaced(b'"gsu"', b'"magic"'),
        "method-no-class": replaced(b'"gsu"', b'"os:system"'),
        "method-relative": replaced(b'"gsu"', b'"..x:y"'),
        "method-nameless": replaced(b'"gsu"', b'":x"'),
        "backend-unknown": toml_head('backend = "magic"'),
    },
    "results": {
        "results-pipe": pipe("results.json"),
        "times-pipe": pipe("times.json"),
        "no-results": without("results.json"),
        "results-folder": as_folder("results.json"),
        "results-list": written("[]", "results.json"),
        "results-two-gigabytes": sparse(2 << 30, "results.json"),
        "format-other": edited(lambda c: c.update(format="x" * 9_000), "results.json"),
        "protocol-none": edited(lambda c: c.update(protocol=None), "results.json"),
        "alpha-zero": edited(lambda c: c["protocol"].update(alpha="1/0"), "results.json"),
        "splits-huge": edited(lambda c: c["protocol"].update(splits=10**12), "results.json"),
        "tables-number": edited(lambda c: c.update(tables=7), "results.json"),
        "table-outside": edited(
            lambda c: c["tables"][0].update(name="../../escaped"), "results.json"
        ),
        "table-digits": edited(
            lambda c: c["tables"][0]["columns"][0].update(digits=10**9), "results.json"
        ),
        "table-cell": edited(
            lambda c: c["tables"][0]["rows"][0]["cells"][0].update(ours=[{}]), "results.json"
        ),
        "chart-outside": edited(
            lambda c: c["charts"][0].update(name="../../escaped"), "results.json"
        ),
        "chart-unknown": edited(lambda c: c["charts"][0].update(name="magic"), "results.json"),
        "chart-empty": edited(lambda c: c["charts"][0].update(data={}), "results.json"),
        "chart-words": edited(
            lambda c: [chart.update(data={k: "x" for k in chart["data"]}) for chart in c["charts"]],
            "results.json",
        ),
        "picture-outside": edited(
            lambda c: c.update(pictures=[{"name": "../../x", "title": "", "caption": ""}]),
            "results.json",
        ),
        "missing-nothing": edited(lambda c: c.update(missing={"a": ""}), "results.json"),
        "missing-numbers": edited(lambda c: c.update(missing={"a": 5}), "results.json"),
        "studies-object": edited(lambda c: c.update(studies={"a": 1}), "results.json"),
        "studies-numbers": edited(lambda c: c.update(studies=[1, 2]), "results.json"),
        "settings-list": edited(lambda c: c.update(settings=[1]), "results.json"),
        "times-list": written("[1]", "times.json"),
        "times-deep": written("[" * 20_000 + "]" * 20_000, "times.json"),
        "times-table": edited(lambda c: c.update(tables=[{"name": 5}]), "times.json"),
        "times-outside": edited(
            lambda c: [t.update(name="../../escaped") for t in c["tables"]], "times.json"
        ),
        "times-machine": edited(lambda c: c.update(machine=[]), "times.json"),
        "times-missing": edited(lambda c: c.update(missing=[5]), "times.json"),
        "times-folder": as_folder("times.json"),
    },
    "bench_out": {
        "study-pipe": pipe(STUDY),
        "studies-empty": lambda it: [path.unlink() for path in (it / "studies").iterdir()],
        "study-text": written("hello", STUDY),
        "study-bomb": lambda it: npz_bomb(it / STUDY),
        "study-other": lambda it: shutil.copy(
            it / STUDY.replace(".npz", ".ratios.npz"), it / STUDY
        ),
        "study-lambda": study(lambda h, a: h["predictions"]["pool"].update(lambda_a="1e999999999")),
        "study-beta": study(lambda h, a: h.update(betas=["1/0"] * len(h["betas"]))),
        "study-names": study(lambda h, a: h.update(names=[1] * len(h["names"]))),
        "study-one-name": study(lambda h, a: h.update(names=["a"] * len(h["names"]))),
        "study-scene": study(lambda h, a: h.update(scene="<script>alert(1)</script>|x\n# y")),
        "study-facts": study(lambda h, a: h.update(facts={"seconds.train": 10**400})),
        "study-deep": study(lambda h, a: h.update(facts=nested(900))),
        "study-no-pool": study(lambda h, a: h.update(predictions={})),
        "study-sources": study(lambda h, a: h["predictions"]["pool"].update(sources=["nobody"])),
        "study-words": study(lambda h, a: a.update(pixels=np.array(["a"] * len(a["pixels"])))),
        "study-complex": study(lambda h, a: a.update(psnr=a["psnr"] * 1j)),
        "study-short": study(lambda h, a: a.update(field_means=a["field_means"][:2])),
        "study-empty": study(lambda h, a: a.update({"map.gsu.scores": np.empty(0)})),
        "study-zeros": study(lambda h, a: a.update({k: v * 0 for k, v in a.items()})),
        "study-minus": study(lambda h, a: a.update({k: -v for k, v in a.items() if "map" in k})),
        "study-huge": study(
            lambda h, a: a.update({k: v * 0 + 1e308 for k, v in a.items() if v.dtype.kind == "f"})
        ),
        "ratios-other": lambda it: npz_member(b"{}")(it / STUDY.replace(".npz", ".ratios.npz")),
        "ratios-short": numbers(".ratios", lambda a: a.update({"map.gsu": a["map.gsu"][:3]})),
        "ratios-none": numbers(".ratios", lambda a: a.update({"map.gsu": a["map.gsu"] * 0})),
        "ratios-float": numbers(".ratios", lambda a: a.update({"map.gsu": a["map.gsu"] * 1.5})),
        "ratios-no-maps": numbers(".ratios", lambda a: [a.pop(k) for k in list(a) if "map" in k]),
        "picture-flat": numbers(".0.picture", lambda a: a.update(render=a["render"][..., 0])),
        "picture-small": numbers(".0.picture", lambda a: a.update(field=a["field"][:2])),
        "picture-nan": numbers(".0.picture", lambda a: a.update(residual=a["residual"] * np.nan)),
        "picture-other": numbers(".0.picture", lambda a: a.update(study=np.array("nobody"))),
        "picture-name": numbers(".0.picture", lambda a: a.update(name=np.array("nobody"))),
        "picture-no-field": numbers(".0.picture", lambda a: a.update(field=a["field"] * 0)),
    },
    "views.npz": {
        "a-pipe": pipe(),
        "a-device": link("", "/dev/zero"),
        "pickle": archive(lambda a: a.update(scene=np.array([{}], dtype=object))),
        "bomb": npz_bomb,
        "unpacking": npz_unpacking,
        "header-open": npz_member(b"{'descr': '<f8', 'shape': (3,"),
        "header-deep": npz_member(b"(" * 5000 + b")" * 5000),
        "header-code": npz_member(b"__import__('os').system('touch pwned')"),
        "header-minus": npz_member(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -8)}"),
        "texts-of-no-length": npz_member(
            b"{'descr': '<U0', 'fortran_order': False, 'shape': (8589934592,)}"
        ),
        "object": npz_member(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"cos\n"),
        "missing-array": archive(lambda a: a.pop("training_psnr")),
        "shape": archive(lambda a: a.update(training_pixels=np.zeros((2, 2), np.int64))),
        "nan": archive(lambda a: a.update(training_descriptors=a["training_descriptors"] * np.nan)),
        "huge": archive(lambda a: a.update(training_oracle=a["training_oracle"] * 1e308)),
        "beta": archive(lambda a: a.update(betas=np.array(["1/0"]))),
        "version": archive(lambda a: a.update(version=np.array("two"))),
        "names": archive(lambda a: a.update(training_names=np.zeros(8))),
        "text": written("hello"),
        "npy": lambda it: np.save(it.open("wb"), np.zeros(3)),
    },
    "predictor.json": {
        "a-pipe": pipe(),
        "a-device": link("", "/dev/zero"),
        "no-object": written("[1]"),
        "weights-short": edited(lambda c: c.update(weights=[1.0])),
        "weights-huge": edited(lambda c: c.update(weights=[1e308] * len(c["weights"]))),
        "weights-nan": edited(lambda c: c.update(weights=[float("nan")] * len(c["weights"]))),
        "features": edited(lambda c: c.update(features=["a"])),
        "lambda": edited(lambda c: c.update(lambda_a="1/0")),
        "beta": edited(lambda c: c.update(beta="2")),
        "card-list": edited(lambda c: c.update(card={"scenes": 5})),
        "a-folder": as_folder(),
    },
}


def _edit_checkpoint(it: Path, change: Callable[[dict, dict], object]) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file

    path = it / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        known = {name: file.get_tensor(name).clone() for name in file.keys()}
        facts = dict(file.metadata())
    change(known, facts)
    save_file({name: tensor.contiguous() for name, tensor in known.items()}, path, metadata=facts)
