# SPDX-License-Identifier: Apache-2.0
"""Measure what the residual field costs on a real scene and how fast its solver converges.

python benchmarks/field.py --data SCENE --model RUN/splats.ply

The fit runs as users run it. On every fourth training view, plain conjugate gradients and two
preconditioners then run side by side, and the quality of the field on held-out views is tracked
step by step: this is the evidence for the stopping rule.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert import load_scene, load_splats
from splatcert.config import FieldConfig
from splatcert.field.fit import fit_field
from splatcert.field.normal_equations import NormalEquations, mask_of, sweep
from splatcert.field.operator import NormalOperator, PreparedViews
from splatcert.field.solve import BlockPreconditioner, Descent
from splatcert.raster import native
from splatcert.raster.abreast import one_torch_thread
from splatcert.raster.render import open_view, render
from splatcert.splats.harmonics import SH_CONSTANT, basis_towards

BLACK = (0.0, 0.0, 0.0)
LEVELS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
EPSILON = 1e-3


def measure_fit(scene, splats, config: FieldConfig) -> dict:
    """One fit as users run it: seconds, memory, trace."""
    cpu = time.process_time()
    fit = fit_field(splats, scene.training, config)
    cpu = time.process_time() - cpu
    trace = fit.field.trace
    return {
        "gaussians": len(splats),
        "training_views": len(scene.training),
        "seconds": round(fit.seconds, 2),
        "processor_seconds": round(cpu, 2),
        "parts": {name: round(value, 2) for name, value in fit.details.items()},
        "seconds_per_step": round(fit.details["solve"] / (trace.steps + 1), 3),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "steps": trace.steps,
        "reason": trace.reason,
        "true_residual": trace.true_residual,
        "relative_residuals": trace.relative_residuals,
        "objective": trace.objective,
        "prior": fit.field.prior,
        "ridge": fit.field.ridge,
        "mean_training_psnr": float(np.mean(fit.psnr)),
    }


def square_blocks(views: PreparedViews, training, degree: int) -> Tensor:
    """Blocks of the normal matrix itself, sum of w^2 phi phi^T: block Jacobi."""
    bases = (degree + 1) ** 2
    row, column = torch.tril_indices(bases, bases)
    blocks = torch.zeros(len(views.splats), len(row))
    for index, labelled in enumerate(training):
        alone = PreparedViews(views.splats, [labelled.camera], backend="cpu", limit=0)
        squares = sweep(alone, [labelled], degree=0, folds=2, background=BLACK).sums.squares.float()
        phi = basis_towards(views.splats.means, views.cameras[index], bases)
        blocks += squares[:, None] * phi[:, row] * phi[:, column]
    return blocks


class HeldOutQuality:
    """What a field's shape gains on held-out views."""

    def __init__(self, scene, splats, count: int) -> None:
        names = scene.held_out.with_photo
        chosen = names[:: max(1, len(names) // count)]
        self.views = []
        for labelled in scene.held_out.reveal("evaluation", chosen, by="benchmark of the field"):
            shown = render(splats, labelled.camera).rgb.clamp(0, 1)
            residual = (shown - labelled.image()).abs().amax(2)
            self.views.append((open_view(splats, labelled.camera), residual))

    def __call__(self, coefficients: Tensor) -> float:
        """Mean share by which the shape, at half strength, narrows boxes with 90% coverage."""
        gains = []
        for view, residual in self.views:
            b = view.composite(view.field_values(coefficients)[:, None])[..., 0].clamp(min=EPSILON)
            shape = 0.5 + 0.5 * b / b.mean()
            gains.append(1 - quantile(residual / shape) / quantile(residual))
        return float(np.mean(gains))


def quantile(values: Tensor) -> float:
    """The ceil(0.9 n)-th smallest."""
    return float(values.flatten().kthvalue(ceil(0.9 * values.numel())).values)


def follow(
    normal: Callable[[Tensor], Tensor],
    equations: NormalEquations,
    prior: float,
    precondition: Callable[[Tensor], Tensor],
    steps: int,
    quality: HeldOutQuality,
) -> dict:
    """Residuals and, at some steps, held-out quality of one solver."""
    start = equations.misfit(prior)
    descent = Descent(normal, precondition, equations.right_hand_side(prior))
    gains = {}
    for step in range(1, steps + 1):
        descent.step()
        if step in (1, 2, 4, 6, 8, 10, 15, 20, 30):
            coefficients = descent.x.float()
            coefficients[:, 0] += prior / SH_CONSTANT
            gains[step] = round(quality(coefficients), 4)
    residuals = descent.residuals
    return {
        "relative_residuals": residuals,
        "objective": [1 - gain / start for gain in descent.gains],
        "steps_to": {
            level: next((k for k, r in enumerate(residuals) if r <= level), None)
            for level in LEVELS
        },
        "held_out_gain": gains,
    }


def compare(scene, splats, config: FieldConfig, *, every: int, steps: int, held_out: int) -> dict:
    """Preconditioners side by side on some of the training views."""
    training = scene.training[::every]
    views = PreparedViews(
        splats, [v.camera for v in training], backend="cpu", limit=config.cache_mib << 20
    )
    equations = sweep(views, training, degree=config.degree, folds=config.folds, background=BLACK)
    prior = equations.residual_quantile(config.prior_quantile)
    ridge = config.ridge * equations.mean_diagonal()
    plain_normal = NormalOperator(views, lambda index: mask_of(training[index]))
    solvers = {
        "row sums": BlockPreconditioner(equations.sums.blocks, ridge),
        "block Jacobi": BlockPreconditioner(square_blocks(views, training, config.degree), ridge),
        "none": torch.clone,
    }
    quality = HeldOutQuality(scene, splats, held_out)
    result: dict = {"training_views": len(training), "held_out_views": len(quality.views)}
    for name, precondition in solvers.items():
        result[name] = follow(
            lambda c: plain_normal(c) + ridge * c, equations, prior, precondition, steps, quality
        )
        print(f"  {name:13} {result[name]['steps_to']}  gain {result[name]['held_out_gain']}")
    return result


def training_seconds(model: Path) -> float | None:
    """Cost of training, if the model comes from `splatcert train`."""
    record = model.with_name("train.json")
    if not record.exists():
        return None
    return (json.loads(record.read_text()).get("result") or {}).get("seconds")


def main() -> None:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/field.json"))
    parser.add_argument(
        "--every", type=int, default=4, help="use every n-th training view in the comparison"
    )
    parser.add_argument("--steps", type=int, default=30, help="steps of the comparison; 0 skips it")
    parser.add_argument(
        "--held-out", type=int, default=9, help="number of held-out views that judge the field"
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="number of threads; 0 means all cores"
    )
    options = parser.parse_args()

    native.set_threads(options.threads)
    scene, splats = load_scene(options.data), load_splats(options.model)
    config = FieldConfig()
    results: dict = {"machine": describe_machine(), "scene": options.data.name}
    results["fit"] = fit = measure_fit(scene, splats, config)
    fit["threads"] = native.threads()
    if trained := training_seconds(options.model):
        fit["training_seconds"] = trained
        fit["share_of_training"] = round(fit["seconds"] / trained, 4)
    for name in ("seconds", "processor_seconds", "parts", "steps", "reason", "peak_rss_mib"):
        print(f"{name:20} {fit[name]}")
    if options.steps:
        with one_torch_thread(), torch.no_grad():
            results["comparison"] = compare(
                scene, splats, config, every=options.every, steps=options.steps,
                held_out=options.held_out,
            )  # fmt: skip
    results["machine"]["load_average_after"] = describe_machine()["load_average"]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    aside = options.out.with_suffix(".part")
    aside.write_text(json.dumps(results, indent=1) + "\n")
    aside.replace(options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
