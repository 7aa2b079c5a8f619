# SPDX-License-Identifier: Apache-2.0
"""Every refusal in the sources, as the template it is written from.

What a user can meet is what some line raises. Reading those lines gives all messages, also
those that hardly any input provokes, and none of the words of other libraries in them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
MAX_LINES = 5


def templates() -> dict[str, list[str]]:
    """Templates by module, in the order of the lines that raise them."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text())
        raised = [text for _, text in refusals(tree)]
        if raised:
            found[str(path.relative_to(SOURCES))] = raised
    return found


def refusals(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that refuse something, and their templates."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Raise, ast.Return)):
            continue
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            call = node.value if _name(node.value.func).endswith("Error") else None
        if isinstance(call, ast.Call):
            text = "\n".join(filter(None, map(_text, call.args)))
            if text and not _name(call.func).startswith(("Attribute", "NotImplemented")):
                yield node, f"{_name(call.func)}: {text}"


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _text(node: ast.expr) -> str:
    """A message with its placeholders; nothing where it is not written here."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _text(part) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, (ast.Constant, ast.FormattedValue))
        )
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return ""


def as_text(found: dict[str, list[str]]) -> str:
    """The file that is kept."""
    blocks = []
    for module, raised in found.items():
        inner = "\n".join("  " + one.replace("\n", "\n  | ") for one in raised)
        blocks.append(f"{module}\n{inner}\n")
    return "\n".join(blocks)
