# SPDX-License-Identifier: Apache-2.0
"""One trained splat as three other trainers would leave it gets one and the same threshold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scene_writers import Colmap, Pose
from splat_layouts import (
    gsplat_world,
    moved_along,
    nerfstudio_state,
    nerfstudio_world,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
)
from splatcert import TrainConfig, cli, load_scene, train
from splatcert.raster.render import render
from splatcert.splats.gaussians import Splats
from splatcert.storage.png import to_pixels
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

VIEWS, WIDTH, HEIGHT = 80, 60, 40
INRIA = "Namespace(sh_degree=2, white_background=False, eval=True, resolution=1, images='images')"
GSPLAT = "data_dir: data\ntest_every: 8\nnormalize_world_space: true\nantialiased: false\n"
NERFSTUDIO = """!!python/object:nerfstudio.engine.trainer.TrainerConfig
method_name: splatfacto
pipeline: !!python/object:nerfstudio.pipelines.base_pipeline.VanillaPipelineConfig
  datamanager: !!python/object:nerfstudio.data.datamanagers.FullImageDatamanagerConfig
    dataparser: !!python/object:nerfstudio.data.dataparsers.ColmapDataParserConfig
      eval_mode: interval
      eval_interval: 8
  model: !!python/object:nerfstudio.models.splatfacto.SplatfactoModelConfig
    background_color: black
    rasterize_mode: classic
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    """Photographs of a made courtyard with a COLMAP reconstruction."""
    root = tmp_path_factory.mktemp("three") / "capture"
    (root / "images").mkdir(parents=True)
    truth = made_splats(3_000, sh_degree=1)
    lens, images = None, []
    for index, camera in enumerate(made_cameras(VIEWS, WIDTH, HEIGHT)):
        name = f"{index:03d}.png"
        pixels = to_pixels(render(truth, camera).rgb.numpy())
        Image.fromarray(pixels).save(root / "images" / name)
        pose = Pose(camera.world_to_camera[:3, :3].T, camera.centre)
        images.append((index + 1, pose.quaternion, pose.translation, 1, name, []))
        lens = [camera.fx, camera.fy, camera.cx, camera.cy]
    points = [
        (k + 1, xyz, (128, 128, 128), 0.5, [(1, 0), (2, 0)])
        for k, xyz in enumerate(truth.means[::5].double().numpy())
    ]
    assert lens is not None
    Colmap([(1, "PINHOLE", WIDTH, HEIGHT, lens)], images, points).write(root / "sparse/0", "bin")
    return root


@pytest.fixture(scope="module")
def trained(capture) -> Splats:
    config = TrainConfig(iterations=400, sh_degree=2, max_gaussians=3_000)
    return train(load_scene(capture), config)


@pytest.fixture(scope="module")
def runs(capture, trained) -> dict[str, Path]:
    """What Inria's, gsplat's and nerfstudio's trainers would have left behind."""
    root, scene = capture.parent, load_scene(capture)
    poses = np.linalg.inv([camera.world_to_camera for camera in scene.cameras.values()])
    assert scene.points is not None
    world = gsplat_world(poses, scene.points.xyz.astype(np.float32).astype(np.float64))
    transform, scale = nerfstudio_world(poses)
    moved = moved_along(trained, np.diag([scale] * 3 + [1.0]) @ transform)
    return {
        "inria": write_inria_folder(root / "inria", {30_000: trained}, INRIA),
        "gsplat": write_gsplat_run(root / "gsplat", moved_along(trained, world), cfg=GSPLAT),
        "nerfstudio": write_nerfstudio_run(
            root / "nerfstudio",
            nerfstudio_state(moved),
            transform=transform,
            scale=scale,
            config=NERFSTUDIO,
        ),
    }


@pytest.mark.parametrize("name", ["inria", "gsplat", "nerfstudio"])
def test_inspect_names_each(runs, capture, trained, name, capsys):
    assert cli.main(["inspect", str(runs[name]), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["kind"], known["format"]) == ("model", name)
    assert known["count"] == len(trained) and known["split"] == 8
    assert cli.main(["inspect", str(runs[name]), "--data", str(capture), "--json"]) == 0
    placed = json.loads(capsys.readouterr().out)["placed"]
    assert placed["psnr"] > placed["flat"] + 3


TO_THE_END = ["--field.progress", "0", "--field.tolerance", "1e-5", "--field.max-steps", "200"]


PAPER = ["--scale", "paper"]


@pytest.mark.parametrize(
    ("options", "within"), [([], 5e-5), (PAPER, 5e-5), ([*PAPER, *TO_THE_END], 2e-5)]
)
def test_certify_gives_all_three_the_same_threshold(
    runs, capture, tmp_path, capsys, options, within
):
    """Also where the fit ends early: nothing in its way down may depend on the frame's axes."""
    thresholds = {}
    for name, path in runs.items():
        words = ["certify", str(capture), str(path), "-o", str(tmp_path / name), "--json"]
        assert cli.main([*words, *options]) == 0
        known = json.loads(capsys.readouterr().out)
        assert known["scene"]["held_out_by"] == "model"
        assert known["views"]["calibration"] == VIEWS // 8
        thresholds[name] = known["guarantee"]["threshold"]
    assert 0 < thresholds["inria"] < (1 if "paper" in options else 10)
    assert thresholds["gsplat"] == pytest.approx(thresholds["inria"], rel=within)
    assert thresholds["nerfstudio"] == pytest.approx(thresholds["inria"], rel=within)


@pytest.mark.parametrize("name", ["gsplat", "nerfstudio"])
def test_a_model_in_its_trainers_frame_renders_from_its_certificate(
    runs, capture, tmp_path, name, capsys
):
    """The certificate remembers where both are, and finds the frame again by itself."""
    cert, out = capture.parent / f"{name}.cert", tmp_path / "out"
    assert cli.main(["certify", str(capture), str(runs[name]), "-o", str(cert)]) == 0
    assert cli.main(["render", str(cert), "-o", str(out), "--no-film", "--maps", "none"]) == 0
    assert len(list((out / "rgb").iterdir())) == VIEWS // 8
