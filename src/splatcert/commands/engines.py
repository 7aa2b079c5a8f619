# SPDX-License-Identifier: Apache-2.0
"""The options that choose a back end, and what happens when it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import tyro

from splatcert.commands import require_threads

if TYPE_CHECKING:
    from splatcert.config import Backend

Result = TypeVar("Result")
BACKEND = (
    "Renderer: cpu (native code), gpu (WebGPU, any vendor), cuda (gsplat), reference (plain "
    "torch), or auto (the fastest of these that agrees with the reference; see doctor)."
)
CERTIFIED_BACKEND = (
    "Renderer: the certified one (cpu for a model), or another, to which the guarantee is carried "
    "over: with --data by scoring the calibration photos again, else by widening the boxes."
)


@dataclass(frozen=True)
class Engine:
    """A renderer that is set up."""

    asked: Backend | None
    """None for that of the certificate."""
    words: str

    @property
    def backend(self) -> Backend:
        """The back end where there is no certificate yet."""
        return self.asked or "cpu"


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Renderer and number of threads."""

    backend: Annotated[
        Literal["auto", "cpu", "gpu", "cuda", "reference"], tyro.conf.arg(help=BACKEND)
    ] = "cpu"
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Does not affect the pixels."""
    fallback: bool = False
    """If the GPU is missing, lost or out of memory, start again with cpu."""

    def __post_init__(self) -> None:
        require_threads(self.threads)

    def attempt(self, run: Callable[[Engine], Result]) -> Result:
        """Run with the chosen renderer; if it fails and a fallback is asked for, with cpu."""
        from splatcert.raster.render import BackendError

        try:
            return run(started(self.backend, self.threads))
        except BackendError as error:
            if not self.fallback:
                raise
            reason = str(error).splitlines()[0].rstrip(".")
            print(f"splatcert: {reason}; starting again with cpu", file=sys.stderr, flush=True)
        return run(started("cpu", self.threads))


@dataclass(frozen=True, kw_only=True)
class CertifiedEngineOptions(EngineOptions):
    """Renderer of a certificate, and number of threads."""

    backend: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Literal["certified", "auto", "cpu", "gpu", "cuda", "reference"],
        tyro.conf.arg(help=CERTIFIED_BACKEND),
    ] = "certified"


def started(
    asked: Literal["certified", "auto", "cpu", "gpu", "cuda", "reference"], threads: int
) -> Engine:
    """The renderer that is asked for, with its description; one that cannot run is refused."""
    from splatcert.raster import native
    from splatcert.raster.render import BackendError, unavailable

    native.set_threads(threads)
    if asked == "certified":
        return Engine(None, described("cpu"))
    if asked == "auto":
        from splatcert.checkup.choose import fastest_backend

        choice = fastest_backend()
        return Engine(choice.backend, f"{described(choice.backend)}, picked by auto: {choice.why}")
    if (reason := unavailable(asked)) is not None:
        raise BackendError(reason)
    return Engine(asked, described(asked))


def described(backend: Backend) -> str:
    """A back end with its device, in a few words."""
    from splatcert.raster import native

    if backend == "cpu":
        count = native.threads()
        return f"cpu ({native.isa()}, {count} {'thread' if count == 1 else 'threads'})"
    if backend == "gpu":
        from splatcert.raster.gpu.adapter import adapter_name

        return f"gpu ({adapter_name()})"
    return {"reference": "reference (plain torch)", "cuda": "cuda (gsplat)"}[backend]
