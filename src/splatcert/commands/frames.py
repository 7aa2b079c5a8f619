# SPDX-License-Identifier: Apache-2.0
"""A model in the coordinates of a capture, whatever its trainer did to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from splatcert.scene.scene import Scene
from splatcert.splats.files import describe_model, load_splats
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_frame import match_gsplat_frame
from splatcert.splats.transform import transform_splats


def load_for_scene(path: Path, scene: Scene) -> tuple[Splats, str]:
    """The splats in the scene's frame, and in words how they got there."""
    info = describe_model(path)
    if info.format == "gsplat" and info.frame == "model" and scene.points is not None:
        splats = load_splats(path, frame="model")
        poses = np.linalg.inv([camera.world_to_camera for camera in scene.cameras.values()])
        found = match_gsplat_frame(splats, poses, scene.points.xyz)
        moved = transform_splats(splats, np.linalg.inv(found.to_model))
        return moved, f"rebuilt from the capture ({found.name})"
    splats = load_splats(path)
    if info.format != "nerfstudio":
        return splats, "as stored"
    # nerfstudio's way back ends at the original data; a transforms.json may differ from it.
    return transform_splats(
        splats, scene.frame.original_to_scene
    ), "taken back by dataparser_transforms.json"
