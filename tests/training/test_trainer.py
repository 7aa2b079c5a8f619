# SPDX-License-Identifier: Apache-2.0
"""Training learns, goes on where it stopped, keeps its limits, and says what is wrong."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from plyfile import PlyData
from small_capture import made_scene

from splatcert.commands.demo import PHOTOGRAPHS
from splatcert.config import ConfigError, TrainConfig
from splatcert.errors import InputError
from splatcert.raster import native
from splatcert.raster.reference import ReferenceView, project
from splatcert.raster.render import render
from splatcert.scene.scene import scene_from_tensors
from splatcert.splats.files import load_splats
from splatcert.splats.gaussians import Splats
from splatcert.training.density import DensityStats, grow, within_limit
from splatcert.training.initial import CaptureError, initial_splats
from splatcert.training.losses import measure, summarise
from splatcert.training.optimise import DivergedError, Trainer, train
from splatcert.training.run import RunError, TrainingRun
from splatcert.training.table import PARAMETERS, GaussianTable
from splatcert_bench.synthetic.scenes import made_cameras

SHORT = TrainConfig(iterations=120, sh_degree=1)


def equal(a: Splats, b: Splats) -> bool:
    return all(torch.equal(getattr(a, n), getattr(b, n)) for n in PARAMETERS)


@pytest.mark.parametrize("density", ["fastgs", "vanilla"])
def test_training_improves_held_out_views(scene, density):
    config = TrainConfig(iterations=250, density=density, sh_degree=1, max_gaussians=2_500)
    start, _ = initial_splats(scene, config)
    trained = train(scene, config)
    views = scene.held_out.reveal("evaluation", by="test")
    before = summarise(measure(start, views))["psnr"]
    after = summarise(measure(trained, views))["psnr"]
    assert after > before + 3
    assert len(trained) != len(start)


@pytest.mark.parametrize(
    ("density", "recipe"), [("fastgs", "fast"), ("vanilla", "fast"), ("fastgs", "published")]
)
def test_a_run_cut_anywhere_goes_on_to_the_same_bits(scene, density, recipe, tmp_path):
    config = replace(SHORT, density=density, recipe=recipe)
    whole = TrainingRun(tmp_path / "whole", scene, config)
    with whole.opened():
        whole.train()
    cut = TrainingRun(tmp_path / "cut", scene, config)
    for stop in (7, 41, 88):
        with cut.opened():
            trainer = cut.resume()
            while trainer.steps_done < stop:
                trainer.step()
            cut.save_checkpoint(trainer)
    with cut.opened():
        cut.train(checkpoint_every=25)
    assert cut.splats_path.read_bytes() == whole.splats_path.read_bytes()
    assert cut.finished and whole.finished
    assert not (cut.folder / "checkpoint.safetensors").exists()


def test_threads_do_not_change_the_result(scene, threads):
    results = []
    for count in (1, 2):
        threads(count)
        results.append(train(scene, replace(SHORT, iterations=60)))
    assert equal(*results)


def test_the_maker_of_the_processor_does_not_change_the_result(tmp_path):
    """Torch's library is told to use other kernels, as it does on another maker's processor."""
    options, found = ("--resolution", "96", "--iterations", "150"), []
    for kernels in ("AUTO", "COMPATIBLE"):
        out = tmp_path / kernels
        command = [sys.executable, "-m", "splatcert.cli", "train", str(PHOTOGRAPHS), "-o", str(out)]
        environment = os.environ | {"MKL_CBWR": kernels}
        subprocess.run([*command, *options], env=environment, check=True, capture_output=True)
        found.append((out / "splats.ply").read_bytes())
    assert found[0] == found[1]


def test_seeds_change_the_result(scene):
    a, b = (train(scene, replace(SHORT, iterations=30, seed=seed)) for seed in (0, 1))
    assert not equal(a, b)


def test_held_out_pictures_are_never_read(scene):
    cameras = scene.cameras
    pictures = {view.name: view.image() for view in scene.training}
    blind = scene_from_tensors(
        cameras, pictures, held_out=scene.held_out.names, points=scene.points
    )
    assert blind.held_out.with_photo == ()
    assert equal(train(blind, SHORT), train(scene, SHORT))
    assert scene.held_out.ledger.views_seen("calibration") == frozenset()


def test_the_hard_limit_holds(scene):
    config = TrainConfig(iterations=300, max_gaussians=450, sh_degree=0)
    trainer = Trainer(scene, config)
    while trainer.steps_done < config.iterations:
        assert trainer.step().gaussians <= 450


def test_fewer_points_than_the_limit_are_kept(scene):
    splats, note = initial_splats(scene, replace(SHORT, max_gaussians=100))
    assert len(splats) == 100 and "100 of them kept" in note


def test_without_sparse_points_it_starts_at_random_and_says_so(scene):
    bare = replace(scene, points=None)
    splats, note = initial_splats(bare, replace(SHORT, random_points=500))
    assert len(splats) == 500 and "no sparse ones" in note


def test_masks_leave_pixels_out(scene):
    """A capture whose left half is garbage under a mask trains as if it were not there."""
    cameras = scene.cameras
    pictures = {view.name: view.image().clone() for view in scene.training}
    masks = {}
    for name, picture in pictures.items():
        masks[name] = torch.ones(picture.shape[:2], dtype=torch.bool)
        masks[name][:, :20] = False
    results = []
    for garbage in (0.0, 1.0):
        for picture in pictures.values():
            picture[:, :20] = garbage
        views = {n: p.clone() for n, p in pictures.items()}
        masked = scene_from_tensors(
            cameras, views, held_out=scene.held_out.names, masks=masks, points=scene.points
        )
        trainer = Trainer(masked, replace(SHORT, ssim_weight=0.0))
        for _ in range(20):
            trainer.step()
        results.append(trainer.splats())
    assert equal(*results)


def test_coarse_to_fine_trains_on_small_pictures_first(scene):
    trainer = Trainer(scene, replace(SHORT, coarse_to_fine=True))
    view = scene.training[0]
    sizes = []
    for step in (1, 30, 110):
        camera, image, _ = trainer._labels(view, step)
        assert tuple(image.shape[:2]) == (camera.height, camera.width)
        sizes.append(camera.width)
    assert sizes == [18, 36, 72]
    # The shrunk camera sees the same things: a world point keeps its relative place.
    camera, _, _ = trainer._labels(view, 1)
    assert camera.fx / camera.width == pytest.approx(view.camera.fx / view.camera.width)
    train(scene, replace(SHORT, coarse_to_fine=True, iterations=40))


def test_a_background_is_trained_against(scene):
    white = replace(SHORT, background=(1.0, 1.0, 1.0), iterations=60)
    splats = train(scene, white)
    assert (
        render(splats, scene.held_out[0].camera, background=white.background).rgb.isfinite().all()
    )


def test_ply_has_the_layout_of_inria_and_renders_alike_in_both_back_ends(scene, tmp_path):
    run = TrainingRun(tmp_path, scene, replace(SHORT, sh_degree=3))
    with run.opened():
        run.train()
    names = [p.name for p in PlyData.read(run.splats_path)["vertex"].properties]
    rest = [f"f_rest_{k}" for k in range(45)]
    expected = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2", *rest, "opacity"]
    assert names == [*expected, "scale_0", "scale_1", "scale_2", *(f"rot_{k}" for k in range(4))]
    splats, camera = load_splats(run.splats_path), scene.held_out[0].camera
    slow = render(splats.to(torch.float64), camera, backend="reference").rgb
    assert (render(splats, camera).rgb - slow).abs().max() < 1e-3


def test_values_that_are_no_numbers_stop_the_run_and_are_named(scene):
    trainer = Trainer(scene, SHORT)
    while trainer.steps_done < 98:
        trainer.step()
    trainer.table.values["sh"][5, 0, 1] = float("nan")
    trainer.table.values["logit_opacities"][5] = 5.0
    with pytest.raises(DivergedError, match=r"step 100: sh of \d+ of \d+ Gaussians is not finite"):
        for _ in range(2):
            trainer.step()


def test_one_photograph_is_refused(scene):
    name = scene.training.names[0]
    single = scene_from_tensors(
        {name: scene.cameras[name]}, {name: scene.training[0].image()}, points=scene.points
    )
    with pytest.raises(CaptureError, match="1 training photograph"):
        train(single, SHORT)


def test_cameras_at_one_place_are_refused(scene):
    camera = scene.training[0].camera
    cameras = {f"{k}.png": camera for k in range(4)}
    pictures = {name: scene.training[0].image() for name in cameras}
    with pytest.raises(CaptureError, match="are at one place"):
        train(scene_from_tensors(cameras, pictures, points=scene.points), SHORT)


def test_photographs_of_different_sizes_train_together(scene):
    cameras, pictures = dict(scene.cameras), {v.name: v.image() for v in scene.training}
    name = scene.training.names[2]
    cameras[name] = cameras[name].cropped(60, 40)
    pictures[name] = pictures[name][:40, :60].contiguous()
    mixed = scene_from_tensors(
        cameras, pictures, held_out=scene.held_out.names, points=scene.points
    )
    train(mixed, replace(SHORT, iterations=30))


def test_another_request_in_the_same_folder_is_refused(scene, tmp_path):
    run = TrainingRun(tmp_path, scene, replace(SHORT, iterations=5))
    with run.opened():
        run.train()
    other = TrainingRun(tmp_path, scene, replace(SHORT, iterations=6, seed=3))
    with pytest.raises(RunError, match="different settings: iterations, seed"), other.opened():
        pass


def test_two_processes_in_one_folder_are_told_so(scene, tmp_path):
    first, second = (TrainingRun(tmp_path, scene, SHORT) for _ in range(2))
    with first.opened(), pytest.raises(InputError, match="another process is training"):
        with second.opened():
            pass


def test_a_damaged_checkpoint_is_refused_with_the_way_out(scene, tmp_path):
    run = TrainingRun(tmp_path, scene, SHORT)
    with run.opened():
        (tmp_path / "checkpoint.safetensors").write_bytes(
            b"\x10\x00\x00\x00\x00\x00\x00\x00{broken"
        )
        with pytest.raises(RunError, match="Remove it to restart"):
            run.resume()


@pytest.mark.parametrize(
    "change",
    [{"iterations": 0}, {"density": "magic"}, {"recipe": "slow"}, {"sh_degree": 5},
     {"ssim_weight": 1.5}, {"background": (0.0, 2.0, 0.0)}, {"max_gaussians": 0}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        TrainConfig(**change)


def small_table(count: int = 6) -> GaussianTable:
    generator = torch.Generator().manual_seed(0)
    return GaussianTable(
        Splats(
            means=torch.randn(count, 3, generator=generator),
            quats=torch.randn(count, 4, generator=generator),
            log_scales=torch.randn(count, 3, generator=generator),
            logit_opacities=torch.randn(count, generator=generator),
            sh=torch.randn(count, 4, 3, generator=generator),
        )
    )


def test_growing_clones_and_splits_row_by_row():
    table = small_table()
    for moments in (table.first, table.second):
        for tensor in moments.values():
            tensor.add_(1)
    before = table.rows(torch.arange(6))
    clone, split = torch.zeros(6, dtype=torch.bool), torch.zeros(6, dtype=torch.bool)
    clone[1], split[4] = True, True
    new = grow(table, clone, split, torch.Generator().manual_seed(1))
    assert len(table) == 8 and new.tolist() == [False] * 5 + [True] * 3
    kept = [0, 1, 2, 3, 5]
    for name in PARAMETERS:
        assert torch.equal(table.values[name][:5], before[name][kept])
        assert torch.equal(table.values[name][5], before[name][1])
        assert (table.first[name][:5] == 1).all() and not table.first[name][5:].any()
    assert torch.allclose(table.values["log_scales"][6:], before["log_scales"][4] - np.log(1.6))
    assert not torch.equal(table.values["means"][6], table.values["means"][7])


def test_the_limit_keeps_the_highest_scores():
    wanted = torch.tensor([True, False, True, True])
    score = torch.tensor([1.0, 9.0, 3.0, 2.0])
    assert within_limit(wanted, score, 2).tolist() == [False, False, True, True]
    assert within_limit(wanted, score, 5).tolist() == wanted.tolist()
    assert not within_limit(wanted, score, -3).any()


def test_statistics_are_means_over_the_steps_that_drew_a_gaussian(scene):
    splats, _ = initial_splats(scene, SHORT)
    generator = torch.Generator().manual_seed(3)
    stats, drawn = DensityStats.empty(len(splats)), torch.zeros(len(splats), dtype=torch.long)
    gradient = torch.randn(len(splats), 2, generator=generator)
    widest = torch.zeros(len(splats), dtype=torch.float64)
    for camera in scene.training.cameras[:3]:
        tensors = (splats.means, splats.quats, splats.log_scales, splats.logit_opacities)
        stats.add(view := native.prepare(*tensors, camera), gradient, gradient.abs())
        here = torch.from_numpy(view.drawn())
        drawn[here] += 1
        spread = torch.linalg.eigvalsh(project(splats.to(torch.float64), camera).covariances[here])
        widest[here] = torch.maximum(widest[here], 3 * spread[:, 1].sqrt())
    assert 0 < drawn.count_nonzero() < len(drawn)
    assert torch.equal(stats.seen, drawn.float())
    length = (gradient * torch.tensor([0.5 * camera.width, 0.5 * camera.height])).norm(dim=1)
    assert torch.allclose(stats.mean_gradient(), torch.where(drawn > 0, length, 0.0))
    assert torch.equal(stats.absolute, stats.gradient)
    assert ((stats.radius - widest >= -1e-3) & (stats.radius - widest <= 1 + 1e-3)).all()


@pytest.mark.parametrize("isa", native.available_isas())
def test_adam_equals_torch(isa, chosen_isa):
    chosen_isa(isa)
    table = small_table(501)
    mine = table.values["sh"]
    theirs = mine.clone().requires_grad_()
    optimiser = torch.optim.Adam([theirs], lr=0.01, eps=1e-15)
    generator = torch.Generator().manual_seed(2)
    for step in range(1, 21):
        grad = torch.randn(mine.shape, generator=generator)
        table.grads["sh"].copy_(grad)
        table.adam("sh", 0.01, step)
        theirs.grad = grad
        optimiser.step()
    assert torch.allclose(mine, theirs.detach(), atol=2e-6)


def test_adam_leaves_other_rows_and_columns_alone():
    table = small_table(50)
    before = table.values["sh"].clone()
    table.grads["sh"].fill_(1)
    rows = (torch.arange(50) % 2).to(torch.uint8)
    table.adam("sh", 0.1, 1, rows=rows, columns=(3, 12))
    moved = table.values["sh"] != before
    assert moved[1::2, 1:].all() and not moved[::2].any() and not moved[:, 0].any()


def test_adam_clears_the_gradients_it_used_and_no_others():
    table = small_table(50)
    table.grads["sh"].fill_(1)
    rows = (torch.arange(50) % 2).to(torch.uint8)
    table.adam("sh", 0.1, 1, rows=rows, columns=(3, 12), clear=True)
    left = table.grads["sh"] != 0
    assert not left[1::2, 1:].any() and left[::2].all() and left[:, 0].all()


def test_contribution_counts_equal_the_weights_of_the_reference(scene):
    splats, _ = initial_splats(scene, SHORT)
    camera = scene.training[0].camera
    mask = torch.rand(camera.height, camera.width, generator=torch.Generator().manual_seed(0)) > 0.5
    counts = native.NativeView(splats, camera).count(mask)
    exact = ReferenceView(splats.to(torch.float64), camera)
    weights = exact.footprints.weights(exact.pixels()[mask.flatten()])
    truth = torch.zeros(len(splats), dtype=torch.float64)
    truth[exact.order] = (weights > 0).sum(0).double()
    assert (counts - truth).abs().sum() <= 1e-3 * truth.sum()


def test_metrics_name_every_view(scene):
    splats, _ = initial_splats(scene, SHORT)
    summary = summarise(measure(splats, scene.held_out.reveal("evaluation", by="test")))
    assert summary["views"] == 2 and set(summary["per_view"]) == set(scene.held_out.names)
    json.dumps(summary)


def test_made_scene_is_what_the_tests_think(scene):
    again = made_scene()
    assert torch.equal(scene.training[0].image(), again.training[0].image())


def test_photographs_that_need_no_gaussian_are_said():
    cameras = {f"{k:02d}": c for k, c in enumerate(made_cameras(6, 24, 16))}
    black = {name: torch.zeros(16, 24, 3) for name in cameras}
    config = TrainConfig(iterations=1_000, random_points=50)
    with pytest.raises(DivergedError, match="every Gaussian has faded"):
        train(scene_from_tensors(cameras, black), config)
