# SPDX-License-Identifier: Apache-2.0
"""One module per command: a dataclass of options whose `run` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import tyro

from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.scene.dataset import Holdout
    from splatcert.scene.scene import Scene


class Command(Protocol):
    """Parsed options that know what to do."""

    def run(self) -> None:
        """Do it; raise `InputError` when the input is at fault."""
        ...


def what_is_kept(command: Command) -> str:
    """What an interrupted command leaves to go on from: its `interrupted`, if it has one."""
    return getattr(command, "interrupted", "Nothing half-written was left behind: run it again.")


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


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """How the capture is read."""

    holdout: Annotated[str, tyro.conf.arg(metavar="N|FILE|format|none")] = "auto"
    """Every N-th photo by name, a list file, the format's own split, or none of them."""
    images: Annotated[str | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of photographs, such as images_4."""
    resolution: Annotated[str | None, tyro.conf.arg(metavar="SIZE")] = None
    """Longest side in pixels (640) or a factor (1/2)."""

    @property
    def split(self) -> Holdout:
        """The split as `load_scene` takes it."""
        if self.holdout.isdecimal():
            return int(self.holdout)
        return None if self.holdout == "none" else self.holdout

    @property
    def names_photos(self) -> bool:
        """Whether held-out photos are named in a file, one by one."""
        return isinstance(self.split, str) and self.split not in ("auto", "format")

    def load(self, path: Path) -> Scene:
        """The scene as asked for."""
        from splatcert.scene.load import load_scene

        return load_scene(path, holdout=self.split, images=self.images, resolution=self.resolution)


@dataclass(frozen=True, kw_only=True)
class CertificateOptions:
    """Where a certificate's model is, and how much of the machine may be used."""

    model: Annotated[Path | None, tyro.conf.arg(metavar="MODEL")] = None
    """The certificate's model, where it is no longer where it was."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="DATA")] = None
    """Its capture; needed where the model is in its trainer's own frame."""
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Results do not depend on it."""

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise OptionError(f"--threads must be 0 or more, got {self.threads}.")

    def start(self) -> None:
        """Set the threads."""
        from splatcert.raster import native

        native.set_threads(self.threads)
