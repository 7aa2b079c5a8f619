# SPDX-License-Identifier: Apache-2.0
"""One small valid file or folder of every kind that splatcert reads."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "bench"), str(TESTS / "splats" / "formats")]

import packed_layouts  # noqa: E402
from made_studies import MadeScene  # noqa: E402

from certified_capture import made_model, made_predictor  # noqa: E402
from scene_writers import Colmap, Pose, ply, write_transforms  # noqa: E402
from splat_layouts import (  # noqa: E402
    gsplat_state,
    inria_table,
    mesh_faces,
    nerfstudio_state,
    write_gsplat_run,
    write_inria_folder,
    write_nerfstudio_run,
    write_table,
)
from splatcert.cli import main  # noqa: E402
from splatcert.config import TrainConfig  # noqa: E402
from splatcert.difficulty.predictor import PREDICTORS  # noqa: E402
from splatcert.raster.render import render  # noqa: E402
from splatcert.scene.load import load_scene  # noqa: E402
from splatcert.splats.files import save_ply  # noqa: E402
from splatcert.splats.gaussians import Splats  # noqa: E402
from splatcert.storage.png import to_pixels  # noqa: E402
from splatcert.storage.whole import file_hash  # noqa: E402
from splatcert.training.run import TrainingRun  # noqa: E402
from splatcert_bench.site.results import make_results, make_times, write_json  # noqa: E402
from splatcert_bench.statistics.choices import Protocol  # noqa: E402
from splatcert_bench.studies.collection import BenchStudies  # noqa: E402
from splatcert_bench.studies.study_file import save_study  # noqa: E402
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # noqa: E402
from ssh_keys import write_key  # noqa: E402

VIEWS, WIDTH, HEIGHT, GAUSSIANS = 18, 24, 16, 60
TRAIN = ("--iterations", "4", "--sh-degree", "1", "--random-points", "40", "--holdout", "3")
CFG_ARGS = (
    "Namespace(data_device='cuda', eval=True, images='images', resolution=-1, sh_degree=1, "
    "source_path='/data/truck', white_background=False)"
)
CFG_YML = "antialiased: false\nnormalize_world_space: false\ntest_every: 3\nmodel_type: 3dgs\n"
CONFIG_YML = """!!python/object:nerfstudio.engine.trainer.TrainerConfig
pipeline: !!python/object:nerfstudio.Pipeline
  datamanager: {dataparser: {eval_mode: interval, eval_interval: 3}}
  model: {rasterize_mode: classic, background_color: black}
"""


BENCH = """profile = "smoke"

[made]
views = 24
width = 24
height = 16
gaussians = 1500

[capture]
holdout = 2

[train]
iterations = 150
sh_degree = 0
max_gaussians = 1000

[members]
count = 0
folds = 0

[field]
max_steps = 2

[learn]
splits = 5

[study]
methods = ["gsu"]
ridges = []
guided = false
timed_views = 1
repeats = 1

[evaluate]
splits = 5
native_splits = 3
bootstrap = 10

[[scene]]
name = "one"
family = "first"
made = 1

[[scene]]
name = "two"
family = "second"
made = 2

[[pool]]
name = "both"
sources = ["one", "two"]
"""
"""A bench of seconds."""


def write_valid_files(root: Path) -> Path:
    """All of them below `root`; a second of work."""
    root.mkdir(parents=True)
    truth = made_splats(GAUSSIANS, sh_degree=1)
    model = made_model(truth)
    cameras = made_cameras(VIEWS, WIDTH, HEIGHT, turn=60)
    lens = cameras[0]
    poses = [Pose(camera.world_to_camera[:3, :3].T, camera.centre) for camera in cameras]
    pictures = [to_pixels(render(truth, camera).rgb.numpy()) for camera in cameras]
    xyz = truth.means[:20].double().numpy()
    rgb = np.full((20, 3), 90)

    def photos(folder: Path, pattern: str) -> list[str]:
        folder.mkdir(parents=True)
        for index, pixels in enumerate(pictures):
            Image.fromarray(pixels).save(folder / pattern.format(index))
        return [pattern.format(index) for index in range(VIEWS)]

    intrinsics = [lens.fx, lens.fy, lens.cx, lens.cy]
    for kind in ("bin", "txt"):
        names = photos(root / f"colmap_{kind}/images", "{:02d}.png")
        Colmap(
            [(1, "PINHOLE", WIDTH, HEIGHT, intrinsics)],
            [
                (i + 1, pose.quaternion, pose.translation, 1, name, [(1.0, 2.0, 7)])
                for i, (pose, name) in enumerate(zip(poses, names, strict=True))
            ],
            [(k + 1, p, (90, 90, 90), 0.5, [(1, 0), (2, 0)]) for k, p in enumerate(xyz)],
        ).write(root / f"colmap_{kind}/sparse/0", kind)

    meta = dict(zip(("fl_x", "fl_y", "cx", "cy"), intrinsics, strict=True))
    meta |= {"w": WIDTH, "h": HEIGHT, "ply_file_path": "points.ply"}
    names = photos(root / "transforms/images", "{:02d}.png")
    (root / "transforms/points.ply").write_bytes(ply(xyz, rgb))
    frames = [f"images/{name}" for name in names]
    write_transforms(root / "transforms", poses, meta=meta, names=frames, photos=False)

    names = photos(root / "blender/all", "r_{:02d}.png")
    angle = {"camera_angle_x": 2 * np.arctan(WIDTH / 2 / lens.fx)}
    for part, chosen in (("train", slice(0, 12)), ("test", slice(12, None))):
        write_transforms(
            root / "blender",
            poses[chosen],
            meta=angle,
            names=[f"./all/{Path(name).stem}" for name in names[chosen]],
            file=f"transforms_{part}.json",
            photos=False,
        )

    _write_models(root, model)
    (root / "cameras.json").write_text(json.dumps(_camera_entries(cameras)))
    _write_own_artefacts(root)
    (root / "bench.toml").write_text(BENCH)
    if shutil.which("ssh-keygen"):
        write_key(root / "key")
    return root


def write_results(root: Path) -> None:
    """Results of a bench of made studies, with the studies (`bench_out`) and without."""
    studies = [MadeScene(scene, 14).study() for scene in ("truck", "bicycle")]
    first = MadeScene("truck", 14)
    bench = BenchStudies(
        tuple(studies),
        {first.study().key: first.ratios()},
        tuple(first.picture(k) for k in (0, 5, 9)),
        Protocol(splits=5, native_splits=3, resamples=10),
    )
    for folder in (root / "results", root / "bench_out"):
        write_json(folder / "results.json", make_results(bench, {"profile": "made"}))
        write_json(folder / "times.json", make_times(bench, {"processor": "made up"}))
    stored = root / "bench_out" / "studies"
    stored.mkdir()
    for study in studies:
        save_study(study, stored / f"{study.key}.npz")
    for key, counts in bench.ratios.items():
        counts.save(stored / f"{key}.ratios.npz")
    for k, picture in enumerate(bench.pictures):
        picture.save(stored / f"{picture.study}.{k}.picture.npz")


def _camera_entries(cameras: list) -> list[dict]:
    return [
        {
            "id": index,
            "img_name": f"{index:02d}",
            "width": camera.width,
            "height": camera.height,
            "position": camera.centre.tolist(),
            "rotation": camera.world_to_camera[:3, :3].T.tolist(),
            "fx": camera.fx,
            "fy": camera.fy,
        }
        for index, camera in enumerate(cameras)
    ]


def _write_models(root: Path, model: Splats) -> None:
    table = inria_table(model)
    save_ply(model, root / "model.ply")
    write_table(root / "ascii.ply", table, text=True)
    write_table(root / "big.ply", table, byte_order=">", before=(mesh_faces(4),))
    (root / "model.spz").write_bytes(packed_layouts.spz(model))
    (root / "model4.spz").write_bytes(packed_layouts.spz(model, 4))
    (root / "model.splat").write_bytes(packed_layouts.splat(model))
    (root / "model.sog").write_bytes(packed_layouts.zipped(packed_layouts.sog(model)))
    packed_layouts.write_folder(root / "sog", packed_layouts.sog(model, 1))
    (root / "model.glb").write_bytes(packed_layouts.glb(*packed_layouts.splat_gltf(model)))
    (root / "packed.ply").write_bytes(packed_layouts.compressed_ply(model))
    inria = write_inria_folder(root / "inria", {7000: model}, CFG_ARGS)
    cameras = _camera_entries(made_cameras(2, WIDTH, HEIGHT))
    (inria / "cameras.json").write_text(json.dumps(cameras))
    write_gsplat_run(root / "gsplat", model, step=6999, cfg=CFG_YML)
    torch.save({"step": 1, "splats": gsplat_state(model)}, root / "gsplat.pt")
    write_nerfstudio_run(
        root / "nerfstudio", nerfstudio_state(model), transform=np.eye(4), config=CONFIG_YML
    )


def _pretend_it_trained_well(run: Path, model: Path) -> None:
    """Four steps give no likeness of the photos, without which nothing is certified."""
    shutil.copy(model, run / "splats.ply")
    record = json.loads((run / "train.json").read_text())
    record["result"]["splats"] = file_hash(model)
    (run / "train.json").write_text(json.dumps(record))


def _write_own_artefacts(root: Path) -> None:
    """A finished run, one that stopped half-way, certificates, a predictor and a guide."""
    capture, run, cert = (str(root / name) for name in ("transforms", "run", "cert"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["train", capture, "-o", run, *TRAIN]) == 0
        model = str(root / "model.ply")
        arguments = ["certify", capture, model, "-o", cert, "--holdout", "3", "--predictor", "none"]
        assert main([*arguments, "--alpha", "1/5"]) == 0  # six views are enough for it
        family = [*arguments[:3], "-o", str(root / "family"), *arguments[5:], "--alpha", "1/5"]
        assert main([*family, "--scale", "paper,constant"]) == 0
    shutil.copy(root / "cert/views.npz", root / "views.npz")
    shutil.copy(PREDICTORS / "guide.json", root / "guide.json")
    _pretend_it_trained_well(root / "run", root / "model.ply")
    half = root / "half_run"
    scene = load_scene(root / "transforms", holdout=3)
    config = TrainConfig(iterations=4, sh_degree=1, random_points=40)
    stopped = TrainingRun(half, scene, config)
    with stopped.opened():
        trainer = stopped.resume()
        trainer.step()
        stopped.save_checkpoint(trainer)
    made_predictor().save(root / "predictor.json")
    shutil.rmtree(root / "__pycache__", ignore_errors=True)
