# SPDX-License-Identifier: Apache-2.0
"""`field.safetensors`: the fitted residual field and its support as arrays.

The same fit gives the same bytes: durations are not stored, and everything that is not an
array is one JSON text with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.storage.arrays import read_tensors, write_tensors
from splatcert.storage.json_text import parse_json

FIELD = "field.safetensors"
KEPT = ".field.safetensors"
"""The fitted field of a certificate that is not finished yet."""
SCHEMA = 1
KEY = "splatcert"
ARRAYS: dict[str, tuple[type[np.floating[Any]], int]] = {
    "coefficients": (np.float32, 2),
    "support": (np.float32, 3),
    "psnr": (np.float64, 1),
    "relative_residuals": (np.float64, 1),
    "objective": (np.float64, 1),
}
"""Type and number of axes of each array in the file."""
MAY_BE_UNDEFINED = "psnr"
"""Array that may hold NaN (no pixel of a view counts) or infinity (photo matched exactly)."""
SUPPORT_COLUMNS = 5
"""Sums per Gaussian: exposure, direction (three), error."""
REASONS = ("tolerance", "progress", "steps", "precision")


class FieldError(InputError):
    """A residual field that cannot be fitted, stored or used."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FieldArrays:
    """A fitted field as its file holds it."""

    coefficients: NDArray[np.float32]
    """C, [N, K] with K = (degree + 1)^2."""
    support: NDArray[np.float32]
    """Sums of each fold, [F, N, columns]."""
    psnr: NDArray[np.float64]
    """PSNR of each training view, [T]."""
    relative_residuals: NDArray[np.float64]
    objective: NDArray[np.float64]
    """What the solver recorded, step by step."""
    degree: int
    prior: float
    ridge: float
    true_residual: float
    converged: bool
    reason: str

    def save(self, path: Path, *, inputs: Mapping[str, str] | None = None) -> None:
        """Write the file; `inputs` are the SHA-256 hashes of the fit's inputs, by name."""
        facts = {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in FACTS},
            "inputs": dict(inputs or {}),
        }
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_tensors(path, arrays, {KEY: json.dumps(facts, sort_keys=True)})

    @classmethod
    def load(
        cls, path: Path, *, gaussians: int | None = None, inputs: Mapping[str, str] | None = None
    ) -> FieldArrays:
        """Read a file; refuse one that is damaged, or of a different model or different inputs."""
        facts, arrays = _read(path)
        if facts.get("schema") != SCHEMA:
            raise FieldError(
                f"{path} has schema {facts.get('schema')!r}, but this version reads {SCHEMA}.\n"
                "  Fit the field again, or use the splatcert that wrote it."
            )
        _check_arrays(path, arrays)
        for name, expected in (inputs or {}).items():
            stored = facts["inputs"].get(name)
            if stored != expected:
                raise FieldError(
                    f"{path} was fitted to different {name}: it has SHA-256 {stored}, "
                    f"these {expected}.\n  Fit the field again."
                )
        try:
            known = cls(
                **{name: arrays[name] for name in ARRAYS},
                degree=int(facts["degree"]),
                prior=_number(facts, "prior"),
                ridge=_number(facts, "ridge"),
                true_residual=_number(facts, "true_residual"),
                converged=bool(facts["converged"]),
                reason=facts["reason"],
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise _damaged(path, f"its description lacks a valid {error}") from error
        known._check_sizes(path, gaussians)
        return known

    def _check_sizes(self, path: Path, gaussians: int | None) -> None:
        count, bases = self.coefficients.shape
        folds = len(self.support)
        if bases != (self.degree + 1) ** 2:
            raise _damaged(path, f"degree {self.degree} does not match {bases} coefficients")
        if self.support.shape != (folds, count, SUPPORT_COLUMNS):
            raise _damaged(
                path,
                f"support has shape {list(self.support.shape)}, "
                f"expected [{folds}, {count}, {SUPPORT_COLUMNS}]",
            )
        if self.reason not in REASONS or self.objective.size != self.relative_residuals.size:
            raise _damaged(path, "its trace is inconsistent")
        if gaussians is not None and gaussians != count:
            raise FieldError(
                f"{path} holds a field of {count:,} Gaussians, but the splats have {gaussians:,}.\n"
                "  It was fitted to a different model; fit the field again."
            )


FACTS = ("degree", "prior", "ridge", "true_residual", "converged", "reason")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays, not yet checked."""
    if not path.is_file():
        raise FieldError(f"no file at {path}.\n  Fit the field first.")
    try:
        arrays, texts = read_tensors(path)
        facts = parse_json(texts[KEY])
    except OSError as error:
        raise _damaged(path, f"it is not a safetensors file ({error})") from error
    except (KeyError, ValueError, RecursionError) as error:
        raise _damaged(path, "it was not written by splatcert") from error
    if not isinstance(facts, dict) or not isinstance(facts.get("inputs"), dict):
        raise _damaged(path, "its description is not a table")
    return facts, arrays


def _number(facts: Mapping[str, Any], name: str) -> float:
    value = float(facts[name])
    if not 0 <= value < float("inf"):
        raise ValueError(name)
    return value


def _check_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, (dtype, axes) in ARRAYS.items():
        array = arrays.get(name)
        if array is None:
            raise _damaged(path, f"it has no {name}")
        if array.dtype != dtype or array.ndim != axes:
            raise _damaged(
                path,
                f"{name} is {array.dtype} of shape {list(array.shape)}, "
                f"expected {np.dtype(dtype)} with {axes} axes",
            )
        bad = int((~np.isfinite(array)).sum())
        if bad and name != MAY_BE_UNDEFINED:
            raise _damaged(path, f"{bad} entries of {name} are not finite")


def _damaged(path: Path, what: str) -> FieldError:
    return FieldError(f"{path} cannot be used: {what}.\n  Fit the field again.")
