# SPDX-License-Identifier: Apache-2.0
"""Writers of every dataset format, and projection by hand, independent of the readers."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

MODEL_IDS = {
    "SIMPLE_PINHOLE": 0,
    "PINHOLE": 1,
    "SIMPLE_RADIAL": 2,
    "RADIAL": 3,
    "OPENCV": 4,
    "OPENCV_FISHEYE": 5,
    "FULL_OPENCV": 6,
    "FOV": 7,
    "SIMPLE_RADIAL_FISHEYE": 8,
    "RADIAL_FISHEYE": 9,
    "THIN_PRISM_FISHEYE": 10,
}


@dataclass
class Pose:
    """A camera-to-world rotation (OpenCV axes, columns right, down, forward) and centre."""

    rotation: np.ndarray
    centre: np.ndarray

    @property
    def opengl(self) -> np.ndarray:
        """Camera-to-world with the axes right, up, backward."""
        matrix = np.eye(4)
        matrix[:3, 0] = self.rotation[:, 0]
        matrix[:3, 1] = -self.rotation[:, 1]
        matrix[:3, 2] = -self.rotation[:, 2]
        matrix[:3, 3] = self.centre
        return matrix

    @property
    def quaternion(self) -> np.ndarray:
        """World-to-camera, w x y z, from the eigenvector of Bar-Itzhack's matrix."""
        m = self.rotation.T
        k = np.array(
            [
                [m[0, 0] - m[1, 1] - m[2, 2], 0, 0, 0],
                [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], 0, 0],
                [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], 0],
                [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], np.trace(m)],
            ]
        )
        x, y, z, w = np.linalg.eigh(k / 3)[1][:, -1]
        return np.array([w, x, y, z])

    @property
    def translation(self) -> np.ndarray:
        return -self.rotation.T @ self.centre

    def project(self, points, fx, fy, cx, cy) -> np.ndarray:
        """Pinhole pixels of world points, one at a time, straight from the definition."""
        pixels = []
        for point in points:
            offset = point - self.centre
            right, down, forward = (float(offset @ self.rotation[:, k]) for k in range(3))
            pixels.append((fx * right / forward + cx, fy * down / forward + cy))
        return np.array(pixels)


def ring(count: int, radius: float = 4.0, seed: int = 0) -> list[Pose]:
    """Cameras on a wobbling ring, looking near the origin, y down."""
    rng = np.random.default_rng(seed)
    poses = []
    for angle in np.linspace(0, 2 * np.pi, count, endpoint=False):
        centre = np.array([radius * np.cos(angle), rng.uniform(-1, 0.5), radius * np.sin(angle)])
        forward = rng.normal(scale=0.2, size=3) - centre
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.1, -1.0, 0.05])
        right /= np.linalg.norm(right)
        down = np.cross(forward, right)
        poses.append(Pose(np.column_stack([right, down, forward]), centre))
    return poses


def cloud(count: int = 20, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.8, 0.8, size=(count, 3))


def photo(path: Path, size: tuple[int, int], seed: int = 0, **save) -> np.ndarray:
    """A noisy photo, so that no two pixels agree by chance."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, **save)
    return pixels


@dataclass
class Colmap:
    """A reconstruction to be written; entries may be spoiled before writing."""

    cameras: list[tuple[int, str, int, int, list[float]]]
    images: list[tuple[int, np.ndarray, np.ndarray, int, str, list[tuple[float, float, int]]]]
    points: list[tuple[int, np.ndarray, tuple[int, int, int], float, list[tuple[int, int]]]]

    def write(self, folder: Path, kind: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for stem, content in (self.binary() if kind == "bin" else self.text()).items():
            (folder / f"{stem}.{kind}").write_bytes(content)

    def binary(self) -> dict[str, bytes]:
        cameras = struct.pack("<Q", len(self.cameras))
        for key, model, width, height, params in self.cameras:
            cameras += struct.pack("<iiQQ", key, MODEL_IDS[model], width, height)
            cameras += struct.pack(f"<{len(params)}d", *params)
        images = struct.pack("<Q", len(self.images))
        for key, rotation, shift, camera, name, seen in self.images:
            images += struct.pack("<i", key) + struct.pack("<7d", *rotation, *shift)
            images += struct.pack("<i", camera) + name.encode() + b"\0"
            images += struct.pack("<Q", len(seen))
            images += b"".join(struct.pack("<ddq", *one) for one in seen)
        points = struct.pack("<Q", len(self.points))
        for key, xyz, rgb, error, track in self.points:
            points += struct.pack("<Q3d3Bd", key, *xyz, *rgb, error)
            points += struct.pack("<Q", len(track))
            points += b"".join(struct.pack("<ii", *pair) for pair in track)
        return {"cameras": cameras, "images": images, "points3D": points}

    def text(self) -> dict[str, bytes]:
        def words(*values) -> str:
            return " ".join(v if isinstance(v, str) else f"{v:.17g}" for v in values)

        cameras = [f"# Number of cameras: {len(self.cameras)}"]
        cameras += [words(k, m, w, h, *p) for k, m, w, h, p in self.cameras]
        images = [f"# Number of images: {len(self.images)}, mean observations per image: 0"]
        for key, rotation, shift, camera, name, seen in self.images:
            images.append(words(key, *rotation, *shift, camera, name))
            images.append(words(*(value for one in seen for value in one)))
        points = [f"# Number of points: {len(self.points)}, mean track length: 2"]
        for key, xyz, rgb, error, track in self.points:
            points.append(words(key, *xyz, *rgb, error, *(v for pair in track for v in pair)))
        return {
            stem: ("# A comment\n" + "\n".join(lines) + "\n").encode()
            for stem, lines in (("cameras", cameras), ("images", images), ("points3D", points))
        }


def reconstruction(
    count: int = 9,
    size: tuple[int, int] = (64, 48),
    model: str = "PINHOLE",
    params: tuple[float, ...] = (50.0, 51.0, 30.0, 25.0),
    points: int = 20,
) -> tuple[Colmap, list[Pose], np.ndarray]:
    """A ring of photos of a cloud, with every point observed in every photo."""
    poses, xyz = ring(count), cloud(points)
    pinhole = params if len(params) == 4 else (50.0, 50.0, size[0] / 2, size[1] / 2)
    images = []
    for index, pose in enumerate(poses):
        pixels = pose.project(xyz, *pinhole[:4])
        seen = [(x, y, 100 + k) for k, (x, y) in enumerate(pixels)]
        name = f"photo_{index:02d}.png"
        images.append((index + 1, pose.quaternion, pose.translation, 1, name, seen))
    cloud3d = [
        (100 + k, p, (k, 2 * k, 255 - k), 0.5, [(i + 1, k) for i in range(count)])
        for k, p in enumerate(xyz)
    ]
    return Colmap([(1, model, *size, list(params))], images, cloud3d), poses, xyz


def write_colmap(root: Path, kind: str = "bin", place: str = "sparse/0", **options) -> list[Pose]:
    """A whole COLMAP dataset with photos."""
    model, poses, _ = reconstruction(**options)
    model.write(root / place, kind)
    for index, image in enumerate(model.images):
        photo(root / "images" / image[4], options.get("size", (64, 48)), seed=index)
    return poses


def write_transforms(
    root: Path,
    poses: list[Pose],
    size: tuple[int, int] = (64, 48),
    *,
    meta: dict,
    frame: dict | None = None,
    names: list[str] | None = None,
    file: str = "transforms.json",
    photos: bool = True,
) -> list[str]:
    """A transforms file with its photos; returns the frames' paths."""
    names = names or [f"./images/frame_{k:02d}.png" for k in range(len(poses))]
    frames = []
    for index, (pose, name) in enumerate(zip(poses, names, strict=True)):
        frames.append(
            {"file_path": name, "transform_matrix": pose.opengl.tolist(), **(frame or {})}
        )
        if photos:
            photo(root / name, size, seed=index)
    root.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(json.dumps({**meta, "frames": frames}))
    return names


def edit_json(path: Path, change) -> None:
    """Apply a change to a JSON file in place."""
    meta = json.loads(path.read_text())
    change(meta)
    path.write_text(json.dumps(meta))


def ply(xyz: np.ndarray, rgb: np.ndarray, layout: str = "binary_little_endian") -> bytes:
    """A point cloud with normals in between, so that only names find the colours."""
    names = ["x", "y", "z", "nx", "ny", "nz"]
    header = f"ply\nformat {layout} 1.0\ncomment made\nelement vertex {len(xyz)}\n"
    header += "".join(f"property float {name}\n" for name in names)
    header += "".join(f"property uchar {name}\n" for name in ("red", "green", "blue"))
    header += "element face 0\nproperty list uchar int vertex_indices\nend_header\n"
    if layout == "ascii":
        rows = [
            " ".join(map(str, [*p, 0, 0, 1, *c])) for p, c in zip(xyz.tolist(), rgb, strict=True)
        ]
        return (header + "\n".join(rows) + "\n").encode()
    order = "<" if "little" in layout else ">"
    body = b"".join(
        struct.pack(f"{order}6f3B", *p, 0, 0, 1, *c) for p, c in zip(xyz, rgb, strict=True)
    )
    return header.encode() + body
