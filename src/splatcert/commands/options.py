# SPDX-License-Identifier: Apache-2.0
"""Options that mean the same in every command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from splatcert.errors import InputError


class OptionError(InputError):
    """An option out of range."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Which renderer, and how much of the machine it may use."""

    backend: Literal["cpu", "reference", "cuda"] = "cpu"
    """Renderer: native code on all cores, plain torch, or gsplat on a GPU."""
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Pixels do not depend on it."""

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise OptionError(f"--threads must be 0 or more, got {self.threads}.")

    def start(self) -> str:
        """Set it up and say in words what will render."""
        if self.backend != "cpu":
            return {"reference": "reference (plain torch)", "cuda": "cuda (gsplat)"}[self.backend]
        from splatcert.raster import native

        native.set_threads(self.threads)
        count = native.threads()
        return f"cpu ({native.isa()}, {count} {'thread' if count == 1 else 'threads'})"
