# SPDX-License-Identifier: Apache-2.0
"""Kernels in WGSL, one per file, and the files they share functions with."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def source_of(kernel: str, constants: tuple[tuple[str, int | bool], ...] = ()) -> str:
    """A kernel with what its `// uses` lines name, each file once, and constants in front.

    WGSL has no include, and constants that give the size of an array must be in the source.
    """
    parts: dict[str, str] = {}
    _collect(kernel, parts)
    head = [
        f"const {name} = {str(value).lower() if isinstance(value, bool) else f'{value}u'};"
        for name, value in constants
    ]
    return "\n".join([*head, *parts.values()])


def _collect(name: str, parts: dict[str, str]) -> None:
    text = (files(__name__) / f"{name}.wgsl").read_text("utf-8")
    for line in re.findall(r"^// uses (.+)$", text, re.MULTILINE):
        for used in line.split(", "):
            if used not in parts:
                _collect(used, parts)
    parts[name] = text
