# SPDX-License-Identifier: Apache-2.0
"""The training loop: one photograph per step, computed in native kernels.

No random state is carried from step to step: the order of photographs and the samples of
density control are functions of the seed and the step, so a resumed run takes the same
steps as an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from splatcert import _native
from splatcert.camera import Camera
from splatcert.config import TrainConfig
from splatcert.errors import InputError
from splatcert.raster.render import open_view
from splatcert.scene.roles import TrainingView, require_labels
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats
from splatcert.training.density import DensityContext, DensityRule, DensityStats, ViewScores
from splatcert.training.density_rules import FastGSDensity, VanillaDensity
from splatcert.training.initial import check_capture, initial_splats
from splatcert.training.limits import Limits
from splatcert.training.rates import harmonics_every, rates_at
from splatcert.training.step import fit_view
from splatcert.training.table import GaussianTable

RAISE_DEGREE_EVERY = 1_000
CHECK_EVERY = 100
SHRINK_EVERY, CLEAR_EVERY = 10, 100
"""Steps between limits of size, and between removals from free space."""
SCORED_VIEWS = 10
BAD_PIXEL = 0.1
"""Share of a view's range of errors above which a pixel is badly rendered."""

RULES: dict[str, Callable[[TrainConfig], DensityRule]] = {
    "vanilla": VanillaDensity,
    "fastgs": FastGSDensity,
}


class DivergedError(InputError):
    """Training produced values that are not finite."""


@dataclass(frozen=True)
class StepReport:
    """Result of one step."""

    step: int
    loss: float
    psnr: float
    gaussians: int


class Trainer:
    """State of one run; `step` advances it by one photograph."""

    def __init__(self, scene: Scene, config: TrainConfig) -> None:
        check_capture(scene)
        self.scene, self.config = scene, config
        splats, self.origin = initial_splats(scene, config)
        self.table = GaussianTable(splats)
        self.stats = DensityStats.empty(len(self.table))
        self.steps_done = 0
        self.rule = RULES[config.density](config)
        self.limits = Limits(scene) if config.recipe == "fast" else None

    def splats(self) -> Splats:
        """The Gaussians as they are now."""
        return self.table.splats()

    def step(self) -> StepReport:
        """Render one photograph, update every parameter, and run density control."""
        step = self.steps_done + 1
        view = self._view_at(step)
        camera, target, mask = self._labels(view, step)
        result = self._optimise(camera, target, mask, step)
        self._control_density(step)
        if self.limits is not None:
            self._limit(self.limits, step)
        self.steps_done = step
        return result

    def _view_at(self, step: int) -> TrainingView:
        views = self.scene.training
        epoch, position = divmod(step - 1, len(views))
        order = np.random.Generator(np.random.PCG64([self.config.seed, 1, epoch]))
        return require_labels(views[int(order.permutation(len(views))[position])], TrainingView)

    def _labels(self, view: TrainingView, step: int) -> tuple[Camera, Tensor, Tensor | None]:
        """Camera, photograph and mask at the resolution of this step."""
        camera, image = view.camera, view.image()
        mask = view.mask() if view.has_mask else None
        factor = self._shrink(step)
        if factor > 1:
            planes = image.permute(2, 0, 1)[None]
            image = torch.nn.functional.avg_pool2d(planes, factor)[0].permute(1, 2, 0).contiguous()
            height, width = image.shape[:2]
            camera = camera.cropped(width * factor, height * factor).resized(width, height)
            if mask is not None:
                mask = mask[: height * factor : factor, : width * factor : factor]
        return camera, image, mask

    def _shrink(self, step: int) -> int:
        """Factor by which this step reduces each side of the photograph."""
        if not self.config.coarse_to_fine:
            return 1
        done = step / self.config.iterations
        return 4 if done < 1 / 6 else 2 if done < 1 / 2 else 1

    def _optimise(
        self, camera: Camera, target: Tensor, mask: Tensor | None, step: int
    ) -> StepReport:
        fit = fit_view(
            self.table,
            camera,
            target,
            mask=mask,
            degree=min(self.config.sh_degree, (step - 1) // self._degree_every()),
            background=self.config.background,
            ssim_weight=self.config.ssim_weight,
            stats=self.stats if self.rule.wants_statistics(step) else None,
        )
        if not math.isfinite(fit.loss) or step % CHECK_EVERY == 0:
            self._check_finite(step, fit.loss)
        self._move(step, fit.drawn)
        psnr = -10 * math.log10(max(fit.squared_error, 1e-10))
        return StepReport(step, fit.loss, psnr, len(self.table))

    def _degree_every(self) -> int:
        """Steps between degrees; a short run still reaches the last degree before its middle."""
        return min(RAISE_DEGREE_EVERY, max(1, self.config.iterations // 8))

    def _move(self, step: int, drawn: Tensor) -> None:
        """Adam on the Gaussians this view has drawn; higher harmonics at their own interval."""
        table, rates = self.table, rates_at(step, self.config, self.scene.extent)
        table.adam("means", rates.means, step, rows=drawn)
        for name, rate in rates.geometry.items():
            table.adam(name, rate, step, rows=drawn)
        table.adam("sh", rates.colour, step, rows=drawn, columns=(0, 3), clear=True)
        every = harmonics_every(self.config)
        width = table.values["sh"][0].numel() if len(table) else 3
        if width > 3 and step % every == 0:
            rows, harmonics = drawn if every == 1 else None, (3, width)
            count = step // every
            table.adam("sh", rates.harmonics, count, rows=rows, columns=harmonics, clear=True)

    def _control_density(self, step: int) -> None:
        random = torch.Generator().manual_seed(1_000_003 * self.config.seed + step)
        sizes = [camera.width * camera.height for camera in self.scene.training.cameras]
        context = DensityContext(
            step=step,
            extent=self.scene.extent,
            pixels=int(np.median(sizes)) // self._shrink(step) ** 2,
            score_views=lambda: self._score_views(step),
            random=random,
        )
        if self.rule.apply(self.table, self.stats, context):
            if not len(self.table):
                raise DivergedError(
                    f"step {step}: every Gaussian has faded and was removed.\n"
                    "  Check that the photographs are not all of the background's colour."
                )
            self.stats = DensityStats.empty(len(self.table))

    def _limit(self, limits: Limits, step: int) -> None:
        last = step == self.config.iterations
        if last or step % SHRINK_EVERY == 0:
            limits.shrink(self.table)
        if last or step % CLEAR_EVERY == 0:
            allowed = limits.allowed(self.table)
            if 0 < int(allowed.sum()) < len(allowed):
                self.table.keep(allowed)
                self.stats = self.stats.of(allowed)

    def _score_views(self, step: int) -> ViewScores:
        """Render a few training views and find the Gaussians that contribute to bad pixels."""
        views = self.scene.training
        order = np.random.Generator(np.random.PCG64([self.config.seed, 2, step]))
        chosen = order.permutation(len(views))[:SCORED_VIEWS]
        total, blame = torch.zeros(len(self.table)), torch.zeros(len(self.table))
        splats, weight = self.splats(), self.config.ssim_weight
        backdrop = torch.tensor(self.config.background)
        for index in chosen.tolist():
            camera, target, _ = self._labels(require_labels(views[index], TrainingView), step)
            view = open_view(splats, camera)
            picture = view.composite(view.colours() - backdrop) + backdrop
            error = (picture - target).abs().mean(dim=2)
            low, high = error.min(), error.max()
            bad = error > low + BAD_PIXEL * (high - low)
            counts = view.count(bad)
            l1, ssim = _native.loss(picture, target, 1.0, 1.0, None, False, None)
            total += counts
            blame += ((1 - weight) * l1 + weight * (1 - ssim)) * counts
        low, high = float(blame.min()), float(blame.max())
        return ViewScores(total / len(chosen), (blame - low) / max(high - low, 1e-12))

    def _check_finite(self, step: int, loss: float) -> None:
        """Check the parameters too: a bad value has no effect on the loss until a view draws it."""
        for name, tensor in self.table.values.items():
            bad = ~tensor.reshape(len(self.table), -1).isfinite().all(dim=1)
            if bad.any():
                first = int(bad.nonzero()[0])
                raise DivergedError(
                    f"step {step}: {name} of {int(bad.sum())} of {len(self.table)} Gaussians "
                    f"is not finite, first at index {first}.\n"
                    "  The last checkpoint is intact. Try a different --seed in a new folder."
                )
        if not math.isfinite(loss):
            raise DivergedError(
                f"step {step}: the loss is not finite although all parameters are.\n"
                "  Check the photographs for values that are not finite."
            )


def train(
    scene: Scene,
    config: TrainConfig | None = None,
    *,
    report: Callable[[StepReport], None] | None = None,
) -> Splats:
    """Fit splats to the training views of a scene; held-out views are not used."""
    trainer = Trainer(scene, config or TrainConfig())
    while trainer.steps_done < trainer.config.iterations:
        progress = trainer.step()
        if report is not None:
            report(progress)
    return trainer.splats()
