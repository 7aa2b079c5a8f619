# SPDX-License-Identifier: Apache-2.0
"""One module per command: a dataclass of options with a `run` method; shared options here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import tyro

from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.scene.scene import Scene
    from splatcert.scene.split import Holdout


HOLDOUT = (
    "Photos to hold out: every N-th by name, a random one of every N (random8), a run of L at a "
    "random place in every N (block5of20), names separated by commas, those listed in a file, the "
    "split that the capture's format stores, or none. auto: "
)
MEMBER = "Member of a family of certificates. Default: the first."
EVERY = 8
"""Photos of which `train` holds out one at random."""
RULES = "N|randomN|blockLofN|NAMES|FILE|format|none|auto"
HOLDOUT_OPTION: Any = tyro.conf.arg(
    metavar=RULES, help=f"{HOLDOUT}the model's split, else the format's, else every 8th photo."
)
HOLDOUT_TO_TRAIN: Any = tyro.conf.arg(
    metavar=RULES, help=f"{HOLDOUT}the format's split, else random8."
)


class Command(Protocol):
    """Parsed options that can be run."""

    def run(self) -> int | None:
        """Run the command; raise `InputError` if the input is at fault.

        None stands for success; a number is an exit code.
        """
        ...


def what_is_kept(command: Command) -> str:
    """What an interrupted command leaves to resume from: its `interrupted`, if it has one."""
    return getattr(command, "interrupted", "No partial output was left behind. Run it again.")


def unset(metavar: str, *aliases: str, text: str | None = None) -> Any:
    """An option whose help text names its default, because its value is None."""
    return tyro.conf.arg(metavar=metavar, aliases=aliases, help=text, help_behavior_hint="")


def require_threads(count: int) -> None:
    """Refuse a negative number of threads."""
    if count < 0:
        raise OptionError(f"--threads must be 0 or more, got {count}.")


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """How to read the capture."""

    holdout: Annotated[str, HOLDOUT_OPTION] = "auto"
    images: Annotated[str | None, unset("FOLDER")] = None
    """Folder of photographs, such as images_4. Default: the capture's own."""
    resolution: Annotated[str | None, unset("SIZE")] = None
    """Longest side in pixels (640) or a factor (1/2). Default: the model's, else as stored."""
    sparse: Annotated[int | None, unset("N")] = None
    """COLMAP model to read, sparse/N. Default: the model's, else the one with the most photos."""
    skip_missing: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = False
    """Skip poses whose photo is missing. Default: only if the model was trained that way."""

    @property
    def split(self) -> Holdout:
        """The split in the form `load_scene` takes."""
        if self.holdout.isdecimal():
            return int(self.holdout)
        return None if self.holdout == "none" else self.holdout

    @property
    def given(self) -> tuple[str, ...]:
        """Options that do not have their default, as they are typed."""
        changed = (f.name for f in fields(self) if getattr(self, f.name) != f.default)
        return tuple(f"--{name.replace('_', '-')}" for name in changed)

    @property
    def reading(self) -> dict[str, Any]:
        """All options but the split, as `load_scene` and `open_capture` take them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "holdout"}

    def load(self, path: Path) -> Scene:
        """Load the scene with these options."""
        from splatcert.scene.load import load_scene

        return load_scene(path, holdout=self.split, **self.reading)


@dataclass(frozen=True, kw_only=True)
class CaptureToTrain(CaptureOptions):
    """How to read a capture before anything is trained on it."""

    holdout: Annotated[str, HOLDOUT_TO_TRAIN] = "auto"

    def load(self, path: Path) -> Scene:
        """Load the scene; by default, hold out one random photo of every 8.

        Every 8th photo may be in step with a photographer's rhythm; a random one cannot.
        """
        from splatcert.scene.load import read_photographs

        found = read_photographs(path, **self.reading)
        if self.split != "auto" or found.own_split:
            return found.scene(self.split)
        photos = len(found.names)
        return found.scene(f"random{min(EVERY, photos)}" if photos > 1 else None)


@dataclass(frozen=True, kw_only=True)
class CertificateOptions:
    """Where to find a certificate's model and capture, and number of threads."""

    model: Annotated[Path | None, unset("MODEL")] = None
    """Path to the certified model, if it has moved."""
    data: Annotated[Path | None, unset("DATA")] = None
    """Path to the capture, if it has moved, or to find the frame of a model that has its own."""
    member: Annotated[str | None, unset("NAME", text=MEMBER)] = None
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Does not affect the results."""

    def __post_init__(self) -> None:
        require_threads(self.threads)

    def start(self) -> None:
        """Set the number of threads."""
        from splatcert.raster import native

        native.set_threads(self.threads)
