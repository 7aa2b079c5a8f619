# SPDX-License-Identifier: Apache-2.0
"""SIFT features and matches of photos, in a COLMAP database that survives an interruption."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.progress import Progress
from splatcert.scene.pixels import decode
from splatcert.scene.readers.colmap import ColmapCamera
from splatcert.storage.whole import write_text_whole

LONG_SIDE = 1600
"""Larger photos are reduced to this before features are found; positions are scaled back."""
MOST_FEATURES = 4096
PAIRS_AT_ONCE = 64
"""Pairs between two reports of progress, and the most that an interruption loses."""
SEED = 0
VERSION = f"sift {LONG_SIDE} {MOST_FEATURES}"
"""Part of every key, so that features found by different settings are never mixed."""


class RegistrationError(InputError):
    """Photos that cannot be registered."""


def require_pycolmap() -> ModuleType:
    """COLMAP as a library, without its log."""
    try:
        import pycolmap
    except ImportError as error:
        raise RegistrationError(
            "splatcert register requires pycolmap, which is not installed.\n"
            "  Install it: pip install 'splatcert[register]'"
        ) from error
    pycolmap.logging.minloglevel = int(pycolmap.logging.FATAL)
    return pycolmap


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A photo with features to be found, and the camera that took it."""

    path: Path
    sha256: str
    camera: ColmapCamera
    knows_focal: bool = True
    """Whether the focal length is more than a guess."""
    place: int | None = None
    """Position in the capture; None for a new photo."""

    @property
    def key(self) -> str:
        """Its name in the database: one word that changes with pixels, camera and settings."""
        what = (VERSION, self.sha256, self.camera.model, self.camera.params, self.knows_focal)
        digest = hashlib.sha256(repr(what).encode()).hexdigest()[:24]
        return f"new-{digest}" if self.place is None else f"old-{self.place:05d}-{digest}"


class FeatureDatabase:
    """Keypoints, descriptors and verified matches of pictures, on disk."""

    def __init__(self, path: Path, threads: int) -> None:
        self.colmap = require_pycolmap()
        self.path = path
        self.threads = threads
        self.ids: dict[str, int] = {}
        self._open = self.colmap.Database.open(path)

    def close(self) -> None:
        """Release the file."""
        self._open.close()

    def find_features(self, pictures: Sequence[Picture], doing: str, on: Progress) -> None:
        """Find the features of every picture that has none yet."""
        known = {image.name: image.image_id for image in self._open.read_all_images()}
        self.ids |= {p.key: known[p.key] for p in pictures if p.key in known}
        missing = [p for p in pictures if p.key not in known or not self._has(known[p.key])]
        pool = ThreadPoolExecutor(self.threads)
        try:
            done = len(pictures) - len(missing)
            for picture, found in zip(missing, pool.map(self._extract, missing), strict=True):
                on(doing, done, len(pictures))
                self._store(picture, *found)
                done += 1
        finally:
            pool.shutdown(cancel_futures=True)
        on(doing, len(pictures), len(pictures))

    def _has(self, key: int) -> bool:
        return self._open.exists_keypoints(key) and self._open.exists_descriptors(key)

    def _extract(self, picture: Picture) -> tuple[NDArray[np.float32], Any]:
        colmap = self.colmap
        options = colmap.FeatureExtractionOptions()
        options.num_threads, options.use_gpu = 1, False
        options.sift.max_num_features = MOST_FEATURES
        grey = cv2.cvtColor(decode(picture.path)[0], cv2.COLOR_RGB2GRAY)
        height, width = grey.shape
        factor = min(1.0, LONG_SIDE / max(height, width))
        if factor < 1:
            size = (max(1, round(width * factor)), max(1, round(height * factor)))
            grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
        extractor = colmap.FeatureExtractor.create(options, colmap.Device.cpu)
        keypoints, descriptors = extractor.extract(colmap.Bitmap.from_array(grey))
        table = np.array(colmap.keypoints_to_matrix(keypoints), dtype=np.float32)
        reduced = grey.shape[1], grey.shape[0]
        table[:, :2] *= picture.camera.width / reduced[0], picture.camera.height / reduced[1]
        table[:, 2] *= picture.camera.width / reduced[0]
        return table, descriptors

    def _store(self, picture: Picture, keypoints: NDArray[np.float32], descriptors: Any) -> None:
        colmap, data = self.colmap, self._open
        with colmap.DatabaseTransaction(data):
            if picture.key not in self.ids:
                camera = colmap_camera(colmap, picture)
                camera_id = data.write_camera(camera)
                sensor = colmap.sensor_t(colmap.SensorType.CAMERA, camera_id)
                rig = colmap.Rig()
                rig.add_ref_sensor(sensor)
                rig_id = data.write_rig(rig)
                key = data.write_image(colmap.Image(name=picture.key, camera_id=camera_id))
                frame = colmap.Frame()
                frame.rig_id = rig_id
                frame.add_data_id(colmap.data_t(sensor, key))
                data.write_frame(frame)
                self.ids[picture.key] = key
            data.write_keypoints(self.ids[picture.key], keypoints)
            data.write_descriptors(self.ids[picture.key], descriptors)

    def sample(self, picture: Picture, count: int) -> NDArray[np.float32]:
        """Descriptors of the largest features, unit length, [<= count, 128]."""
        key = self.ids[picture.key]
        keypoints = self._open.read_keypoints(key)
        rows = np.asarray(self._open.read_descriptors(key).data, dtype=np.float32)
        chosen = rows[np.argsort(-keypoints[:, 2], kind="stable")[:count]]
        return chosen / np.maximum(np.linalg.norm(chosen, axis=1, keepdims=True), 1e-9)

    def positions(self, picture: Picture) -> NDArray[np.float64]:
        """Keypoints in pixels of the camera, corner at (0, 0), [N, 2]."""
        return np.asarray(self._open.read_keypoints(self.ids[picture.key])[:, :2], np.float64)

    def match(self, pairs: Iterable[tuple[Picture, Picture]], doing: str, on: Progress) -> None:
        """Match and verify pairs of pictures, except those already done."""
        colmap = self.colmap
        pairs = list(pairs)
        missing = [pair for pair in pairs if not self._matched(*pair)]
        matching, verifying = colmap.FeatureMatchingOptions(), colmap.TwoViewGeometryOptions()
        matching.num_threads, matching.use_gpu = self.threads, False
        verifying.ransac.random_seed = SEED
        listing = self.path.with_name("pairs.txt")
        for first in range(0, len(missing), PAIRS_AT_ONCE):
            on(doing, len(pairs) - len(missing) + first, len(pairs))
            batch = missing[first : first + PAIRS_AT_ONCE]
            write_text_whole(listing, "".join(f"{a.key} {b.key}\n" for a, b in batch))
            pairing = colmap.ImportedPairingOptions()
            pairing.match_list_path = listing
            colmap.match_image_pairs(
                self.path, matching, pairing, verifying, device=colmap.Device.cpu
            )
        on(doing, len(pairs), len(pairs))

    def _matched(self, one: Picture, other: Picture) -> bool:
        return self._open.exists_two_view_geometry(self.ids[one.key], self.ids[other.key])

    def verified(self, one: Picture, other: Picture) -> NDArray[np.int64]:
        """Features of one and of the other that match, [M, 2]."""
        ids = self.ids[one.key], self.ids[other.key]
        if not self._open.exists_two_view_geometry(*ids):
            return np.empty((0, 2), np.int64)
        found = self._open.read_two_view_geometry(*ids).inlier_matches
        return np.asarray(found, np.int64).reshape(-1, 2)


def colmap_camera(colmap: ModuleType, picture: Picture, key: int = 0) -> Any:
    """The camera of a picture as COLMAP's own type."""
    camera = picture.camera
    return colmap.Camera(
        model=camera.model,
        width=camera.width,
        height=camera.height,
        params=list(camera.params),
        camera_id=key or camera.id,
        has_prior_focal_length=picture.knows_focal,
    )
