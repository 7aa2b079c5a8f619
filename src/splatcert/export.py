# SPDX-License-Identifier: Apache-2.0
"""Per-Gaussian columns of a certificate, and rules that select Gaussians by them."""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.difficulty.factor import shrink
from splatcert.errors import InputError
from splatcert.field.sightings import Sightings
from splatcert.progress import Progress, quiet
from splatcert.scene.camera_paths import Layout
from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import SH_CONSTANT, basis

STORED = {
    "exposure": "E, sum of its weights over all training views and pixels",
    "spread": "0 if photographed from one direction only, towards 1 if from all around",
    "views_seen": "training views in which it contributes at least a quarter of a pixel",
    "residual": "mean training residual of the pixels it contributes to, RGB from 0 to 1",
    "field_mean": "its residual field, mean over all directions, RGB from 0 to 1",
    "uncertainty": "certified half-width of a pixel that shows only it, seen as in training, in "
    "a typical view, RGB from 0 to 1",
}
"""Columns that are written, and their meaning."""
RENDERED = {
    "opacity": "peak opacity, 0 to 1 (the file's own column of this name is its logit)",
    "scale_max": "largest standard deviation, in the capture's units",
    "scale_min": "smallest standard deviation, in the capture's units",
    "x": "centre",
    "y": "centre",
    "z": "centre",
}
"""Further names that a rule may use, and their meaning."""


def support_columns(certificate: Certificate, on: Progress = quiet) -> dict[str, Tensor]:
    """The columns of `STORED`, [N] each; renders every training camera once."""
    observed, record = certificate.fitted, certificate.record
    support, field = observed.support, observed.field
    cameras = [view.camera for view in record.training]
    sightings = Sightings.of(
        observed.splats,
        cameras,
        backend=record.renderer.backend,
        report=lambda done: on("rendering training cameras", done, len(cameras)),
    )
    return {
        "exposure": support.exposure,
        "spread": support.spread(),
        "views_seen": torch.from_numpy(sightings.counts()),
        "residual": support.residual_summary(),
        "field_mean": field.coefficients[:, 0] * SH_CONSTANT,
        "uncertainty": uncertainty(certificate),
    }


def uncertainty(certificate: Certificate) -> Tensor:
    """Half-width q a b~ of a pixel that shows one Gaussian from its mean training direction, [N].

    The shape's mean is the median over calibration views. The view factor is one in the paper's
    scale, whose unit that is, and the median over calibration views in others.
    """
    observed = certificate.fitted
    coefficients = observed.field.coefficients
    towards = normalize(observed.support.direction.to(coefficients), dim=1)
    values = (coefficients * basis(towards, observed.field.degree)).sum(1)
    unseen = towards.norm(dim=1) == 0
    values = torch.where(unseen, coefficients[:, 0] * SH_CONSTANT, values)
    usual = float(np.median(certificate.views.held_out.field_means))
    shape = shrink(values.clamp(min=0), usual, certificate.record.scale.shape)
    factors = [view.factor for view in certificate.record.calibration]
    typical = 1.0 if certificate.rule is not None else float(np.median(factors))
    return shape * (certificate.threshold * typical)


def rule_columns(splats: Splats, stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """All columns that a rule may name."""
    scales = splats.scales
    rendered = {
        "opacity": splats.opacities,
        "scale_max": scales.amax(1),
        "scale_min": scales.amin(1),
        **dict(zip("xyz", splats.means.unbind(1), strict=True)),
    }
    own = {name: column for name, column in splats.extra.items() if name.isidentifier()}
    return {**own, **rendered, **stored}


def with_columns(splats: Splats, stored: dict[str, Tensor]) -> Splats:
    """The splats with these columns; a column of the same name is replaced."""
    return replace(splats, extra={**splats.extra, **stored})


def with_colours(splats: Splats, colours: Tensor) -> Splats:
    """The same shapes in flat colours, [N, 3] in [0, 1], equal from every direction."""
    sh = torch.zeros_like(splats.sh)
    sh[:, 0] = (colours.to(sh) - 0.5) / SH_CONSTANT
    return replace(splats, sh=sh)


class OrbitError(InputError):
    """Calibration cameras that do not stand around anything."""


@dataclass(frozen=True)
class SafeOrbit:
    """Limits of an orbit that just contain the calibration cameras.

    Beyond them a view resembles no calibration view. They say nothing about a view within:
    the guarantee is about views exchangeable with the calibration views.
    """

    elevation_min: float
    """Least angle above the horizontal plane through the centre, in radians."""
    elevation_max: float
    radius_min: float
    """Least distance from the centre, in the capture's units."""
    centre: tuple[float, float, float]
    """Point nearest to all viewing axes."""
    up: tuple[float, float, float]
    """Mean upward direction of the pictures."""

    @classmethod
    def of(cls, cameras: Sequence[Camera]) -> SafeOrbit:
        """From cameras that look inward; others have no orbit."""
        layout = Layout.of(cameras)
        if not layout.is_inward:
            raise OrbitError(
                "the calibration cameras do not look at a common point, so they have no orbit.\n"
                "  Omit --safe-orbit: it is for captures that go around an object."
            )
        away = layout.centres - layout.focus
        radii = np.linalg.norm(away, axis=1)
        elevations = np.arcsin(np.clip(away @ layout.up / np.maximum(radii, 1e-30), -1, 1))
        x, y, z = layout.focus.tolist()
        up_x, up_y, up_z = layout.up.tolist()
        low, high = float(elevations.min()), float(elevations.max())
        return cls(low, high, float(radii.min()), (x, y, z), (up_x, up_y, up_z))

    @property
    def stored(self) -> tuple[float, float, float]:
        """The three numbers of SPZ_ADOBE_safe_orbit_camera, which has no centre and no up."""
        return self.elevation_min, self.elevation_max, self.radius_min


LONGEST = 500
LARGEST = sys.float_info.max
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
COMPUTED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
}
GRAMMAR = (
    "  A rule compares columns and numbers (< <= > >= == !=), may use + - * /, and combines\n"
    '  comparisons with and, or, not: "views_seen >= 3 and opacity > 0.05".'
)
Values = NDArray[np.float64] | float


class RuleError(InputError):
    """A rule that cannot be parsed."""


@dataclass(frozen=True)
class Rule:
    """A parsed rule."""

    text: str
    tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parse a rule, or refuse it."""
        if not text.strip():
            raise RuleError(f"the rule is empty.\n{GRAMMAR}")
        if len(text) > LONGEST:
            raise RuleError(f"the rule has {len(text)} characters; at most {LONGEST} are allowed.")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise RuleError(f"the rule {text!r} cannot be parsed.\n{GRAMMAR}") from None
        return cls(text, tree)

    def apply(self, columns: Mapping[str, NDArray[np.generic]]) -> NDArray[np.bool_]:
        """Which rows satisfy it, [N]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            chosen = self._truth(self.tree, columns)
        count = len(next(iter(columns.values())))
        return np.broadcast_to(np.asarray(chosen, dtype=bool), (count,))

    def _truth(self, node: ast.expr, columns: Mapping[str, NDArray[np.generic]]) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = [self._truth(part, columns) for part in node.values]
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return join.reduce(np.broadcast_arrays(*parts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return np.logical_not(self._truth(node.operand, columns))
        if isinstance(node, ast.Compare):
            return self._comparison(node, columns)
        raise self._wrong(node, "is not a comparison")

    def _comparison(self, node: ast.Compare, columns: Mapping[str, NDArray[np.generic]]) -> Any:
        """One comparison, or a chain as in `1 < x < 2`."""
        sides = [self._value(side, columns) for side in (node.left, *node.comparators)]
        found = True
        for kind, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            if type(kind) not in COMPARED:
                raise self._wrong(node, "is not a comparison of numbers")
            found = np.logical_and(found, COMPARED[type(kind)](left, right))
        return found

    def _value(self, node: ast.expr, columns: Mapping[str, NDArray[np.generic]]) -> Values:
        if isinstance(node, ast.Name):
            return self._column(node.id, columns)
        if isinstance(node, ast.Constant):
            number = node.value
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                return float(number) if abs(number) <= LARGEST else math.inf
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self._value(node.operand, columns)
            return np.negative(value) if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            left, right = (self._value(side, columns) for side in (node.left, node.right))
            return COMPUTED[type(node.op)](left, right)
        raise self._wrong(node, "is neither a column nor a number")

    def _column(self, name: str, columns: Mapping[str, NDArray[np.generic]]) -> Values:
        if name in columns:
            return columns[name].astype(np.float64)
        near = get_close_matches(name, columns, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise RuleError(
            f"the rule names {name!r}, which is not a column.{hint}\n"
            f"  Columns: {', '.join(sorted(columns))}."
        )

    def _wrong(self, node: ast.expr, why: str) -> RuleError:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        return RuleError(f"in the rule {self.text!r}, {part!r} {why}.\n{GRAMMAR}")
