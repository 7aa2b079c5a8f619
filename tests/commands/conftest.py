# SPDX-License-Identifier: Apache-2.0
"""A small made capture and model on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certified_capture import certify_scene as certify
from certified_capture import made_capture, made_model, made_photos, made_predictor, made_truth
from splatcert.camera import Camera
from splatcert.certificate.store import remember_places
from splatcert.splats.files import save_ply
from splatcert.splats.gaussians import Splats
from splatcert.storage.png import to_pixels
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])


@pytest.fixture(scope="session")
def splats() -> Splats:
    return made_splats(400, sh_degree=1)


@pytest.fixture(scope="session")
def cameras() -> dict[str, Camera]:
    views = made_cameras(9, 48, 32)
    return {f"images/{index:02d}.png": camera for index, camera in enumerate(views)}


@pytest.fixture
def model(tmp_path: Path, splats: Splats) -> Path:
    save_ply(splats, tmp_path / "model.ply")
    return tmp_path / "model.ply"


@pytest.fixture
def capture(tmp_path: Path, cameras: dict[str, Camera]) -> Path:
    """A transforms.json of nine cameras, of which every 8th is held out."""
    folder = tmp_path / "capture"
    (folder / "images").mkdir(parents=True)
    frames = []
    for name, camera in cameras.items():
        Image.new("RGB", (camera.width, camera.height)).save(folder / name)
        to_world = np.linalg.inv(camera.world_to_camera) @ OPENGL
        frames.append({"file_path": name, "transform_matrix": to_world.tolist()})
    lens = next(iter(cameras.values()))
    shared = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy}
    content = {**shared, "w": lens.width, "h": lens.height, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def camera_list(tmp_path: Path, cameras: dict[str, Camera]) -> Path:
    """The same cameras as Inria's trainer writes them."""
    entries = [
        {
            "id": index,
            "img_name": Path(name).stem,
            "width": camera.width,
            "height": camera.height,
            "position": camera.centre.tolist(),
            "rotation": camera.world_to_camera[:3, :3].T.tolist(),
            "fx": camera.fx,
            "fy": camera.fy,
        }
        for index, (name, camera) in enumerate(cameras.items())
    ]
    (tmp_path / "cameras.json").write_text(json.dumps(entries))
    return tmp_path / "cameras.json"


@pytest.fixture(scope="session")
def certified(tmp_path_factory) -> Path:
    """A certificate of 36 made views and, beside it, its model; neither is to be changed."""
    root = tmp_path_factory.mktemp("certified")
    model = made_model(made_truth())
    save_ply(model, root / "model.ply")
    certificate = certify(made_capture(made_photos()), model, predictor=made_predictor())
    certificate.save(root / "cert")
    remember_places(root / "cert", root / "capture", root / "model.ply")
    return root / "cert"


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    """A capture of 36 photos and its model, as files."""
    root = tmp_path_factory.mktemp("place")
    cameras, pictures = made_photos()
    (root / "capture/images").mkdir(parents=True)
    frames = []
    for name, camera in cameras.items():
        Image.fromarray(to_pixels(pictures[name].numpy())).save(root / "capture/images" / name)
        to_world = np.linalg.inv(camera.world_to_camera) @ OPENGL
        frames.append({"file_path": f"images/{name}", "transform_matrix": to_world.tolist()})
    lens = next(iter(cameras.values()))
    shared = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy}
    content = {**shared, "w": lens.width, "h": lens.height, "frames": frames}
    (root / "capture/transforms.json").write_text(json.dumps(content))
    save_ply(made_model(made_truth()), root / "model.ply")
    return root
