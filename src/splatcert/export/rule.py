# SPDX-License-Identifier: Apache-2.0
"""Rules on columns, such as `views_seen >= 3 and uncertainty < 0.2`.

A rule is a user's text and is never executed: Python's parser makes a tree of it, and only
the few kinds of node below are given a meaning.
"""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError

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
    "  A rule compares columns and numbers (< <= > >= == !=), may compute with + - * /, and\n"
    '  joins comparisons by and, or, not: "views_seen >= 3 and opacity > 0.05".'
)

Values = NDArray[np.float64] | float


class RuleError(InputError):
    """A rule that cannot be understood."""


@dataclass(frozen=True)
class Rule:
    """A parsed rule."""

    text: str
    tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Rule:
        """The rule of a text, refused where it is none."""
        if not text.strip():
            raise RuleError(f"the rule is empty.\n{GRAMMAR}")
        if len(text) > LONGEST:
            raise RuleError(f"the rule has {len(text)} characters; at most {LONGEST} are read.")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise RuleError(f"the rule {text!r} cannot be read.\n{GRAMMAR}") from None
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
        raise self._wrong(node, "is no comparison")

    def _comparison(self, node: ast.Compare, columns: Mapping[str, NDArray[np.generic]]) -> Any:
        """Also of several in a row, as in `1 < x < 2`."""
        sides = [self._value(side, columns) for side in (node.left, *node.comparators)]
        found = True
        for kind, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            if type(kind) not in COMPARED:
                raise self._wrong(node, "is no comparison of numbers")
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
            f"the rule names {name!r}, and there is no such column.{hint}\n"
            f"  There are {', '.join(sorted(columns))}."
        )

    def _wrong(self, node: ast.expr, why: str) -> RuleError:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        return RuleError(f"in the rule {self.text!r}, {part!r} {why}.\n{GRAMMAR}")
