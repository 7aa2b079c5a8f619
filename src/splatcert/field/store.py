# SPDX-License-Identifier: Apache-2.0
"""The fitted field and its support as one file, `field.safetensors`.

The same fit gives the same bytes: seconds are not stored, and what is not a tensor is one
JSON text with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from splatcert.field.fit import FieldFit, ResidualField
from splatcert.field.normal_equations import FieldError
from splatcert.field.solve import FitTrace, Reason
from splatcert.field.support import FoldedSupport
from splatcert.raster.normal_sums import SUPPORT_COLUMNS
from splatcert.storage.arrays import write_tensors

SCHEMA = 1
KEY = "splatcert"
TENSORS: dict[str, tuple[torch.dtype, int]] = {
    "coefficients": (torch.float32, 2),
    "support": (torch.float32, 3),
    "psnr": (torch.float64, 1),
    "relative_residuals": (torch.float64, 1),
    "objective": (torch.float64, 1),
}
"""Type and number of axes of each tensor in the file."""
MAY_BE_UNDEFINED = "psnr"
"""NaN where no pixel of a view counts, infinite where the render equals the photo."""


def save_field(path: Path, fit: FieldFit, *, inputs: Mapping[str, str] | None = None) -> None:
    """Write a fit; `inputs` holds the SHA-256 of each input, by name."""
    found = fit.field
    tensors = {
        "coefficients": found.coefficients.numpy(),
        "support": fit.support.sums.numpy(),
        "psnr": fit.psnr,
        "relative_residuals": np.array(found.trace.relative_residuals, dtype=np.float64),
        "objective": np.array(found.trace.objective, dtype=np.float64),
    }
    facts = {
        "schema": SCHEMA,
        "degree": found.degree,
        "prior": found.prior,
        "ridge": found.ridge,
        "true_residual": found.trace.true_residual,
        "converged": found.trace.converged,
        "reason": found.trace.reason,
        "inputs": dict(inputs or {}),
    }
    write_tensors(path, tensors, {KEY: json.dumps(facts, sort_keys=True)})


def load_field(
    path: Path, *, gaussians: int | None = None, inputs: Mapping[str, str] | None = None
) -> FieldFit:
    """Read a fit; refuse one that is damaged or was made from a different model or inputs."""
    facts, tensors = _read(path)
    if facts.get("schema") != SCHEMA:
        raise FieldError(
            f"{path} has schema {facts.get('schema')!r}, but this version reads {SCHEMA}.\n"
            "  Fit the field again, or use the version of splatcert that wrote it."
        )
    _check_tensors(path, tensors)
    for name, expected in (inputs or {}).items():
        stored = facts["inputs"].get(name)
        if stored != expected:
            raise FieldError(
                f"{path} was fitted to different {name}: SHA-256 {stored} is stored, "
                f"{expected} was expected.\n  Fit the field again."
            )
    try:
        trace = FitTrace(
            relative_residuals=tuple(tensors["relative_residuals"].tolist()),
            objective=tuple(tensors["objective"].tolist()),
            true_residual=_number(facts, "true_residual"),
            converged=bool(facts["converged"]),
            reason=facts["reason"],
        )
        found = ResidualField(
            coefficients=tensors["coefficients"],
            degree=int(facts["degree"]),
            prior=_number(facts, "prior"),
            ridge=_number(facts, "ridge"),
            trace=trace,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"its metadata lacks a valid {error}") from error
    _check_sizes(path, found, tensors, gaussians)
    return FieldFit(
        field=found,
        support=FoldedSupport(tensors["support"]),
        psnr=tensors["psnr"].numpy(),
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Metadata and tensors, not yet checked."""
    if not path.is_file():
        raise FieldError(f"no file at {path}.\n  Fit the field first.")
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise _damaged(path, f"it is not a safetensors file ({error})") from error
    except (KeyError, ValueError, RecursionError) as error:
        raise _damaged(path, "it was not written by splatcert") from error
    if not isinstance(facts, dict) or not isinstance(facts.get("inputs"), dict):
        raise _damaged(path, "its metadata is not a table")
    return facts, tensors


def _number(facts: Mapping[str, Any], name: str) -> float:
    value = float(facts[name])
    if not 0 <= value < float("inf"):
        raise ValueError(name)
    return value


def _check_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    for name, (dtype, axes) in TENSORS.items():
        tensor = tensors.get(name)
        if tensor is None:
            raise _damaged(path, f"it has no {name}")
        if tensor.dtype != dtype or tensor.ndim != axes:
            raise _damaged(
                path,
                f"{name} is {tensor.dtype} of shape {list(tensor.shape)}, "
                f"expected {dtype} with {axes} axes",
            )
        bad = int((~tensor.isfinite()).sum())
        if bad and name != MAY_BE_UNDEFINED:
            raise _damaged(path, f"{bad} entries of {name} are not finite")


def _check_sizes(
    path: Path, found: ResidualField, tensors: Mapping[str, Tensor], gaussians: int | None
) -> None:
    count, bases = found.coefficients.shape
    folds = len(tensors["support"])
    if bases != (found.degree + 1) ** 2:
        raise _damaged(path, f"degree {found.degree} does not match {bases} coefficients")
    if tuple(tensors["support"].shape) != (folds, count, SUPPORT_COLUMNS):
        raise _damaged(
            path,
            f"support has shape {list(tensors['support'].shape)}, "
            f"expected [{folds}, {count}, {SUPPORT_COLUMNS}]",
        )
    if found.trace.reason not in get_args(Reason) or len(found.trace.objective) != len(
        found.trace.relative_residuals
    ):
        raise _damaged(path, "its trace is inconsistent")
    if gaussians is not None and gaussians != count:
        raise FieldError(
            f"{path} holds a field of {count:,} Gaussians, but the splats have {gaussians:,}.\n"
            "  It was fitted to a different model; fit the field again."
        )


def _damaged(path: Path, what: str) -> FieldError:
    return FieldError(f"{path} cannot be used: {what}.\n  Fit the field again.")
