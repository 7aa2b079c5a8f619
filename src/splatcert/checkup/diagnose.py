# SPDX-License-Identifier: Apache-2.0
"""Every back end of this machine, compared with the reference and timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from splatcert.checkup.agreement import Agreement, measure_agreement
from splatcert.checkup.machine import Machine, look_around
from splatcert.checkup.scenes import MadeScene, agreement_scenes
from splatcert.checkup.speed import Speed, measure_speed
from splatcert.field.fit import one_torch_thread
from splatcert.progress import Progress, quiet
from splatcert.raster import native
from splatcert.raster.render import BACKENDS, Backend, BackendError, unavailable


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One back end, under one instruction set if it is the cpu's."""

    backend: Backend
    instruction_set: str | None = None
    reason: str | None = None
    """Why it cannot run here; None if it can."""
    agreement: Agreement | None = None
    faults: tuple[str, ...] = ()
    """The ways in which it disagrees with the reference."""
    speed: Speed | None = None

    @property
    def name(self) -> str:
        """The back end, with its instruction set."""
        return " ".join(filter(None, (self.backend, self.instruction_set)))

    @property
    def verdict(self) -> str:
        """What was found, in a word or two."""
        if self.reason is not None:
            return "not available"
        return "disagrees" if self.faults else "agrees"


@dataclass(frozen=True)
class Diagnosis:
    """The machine, and what each back end does on it."""

    machine: Machine
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether every back end that runs agrees with the reference."""
        return not any(one.faults for one in self.findings)


def doctor(on: Progress = quiet) -> Diagnosis:
    """Compare every back end of this machine with the float64 reference, and time it."""
    scenes, findings = agreement_scenes(), list[Finding]()
    tried: list[tuple[Backend, str | None]] = [
        (backend, isa)
        for backend in BACKENDS
        for isa in (native.available_isas() if backend == "cpu" else (None,))
    ]
    for done, (backend, isa) in enumerate(tried):
        on("examining back ends", done, len(tried), " ".join(filter(None, (backend, isa))))
        with instruction_set(isa):
            findings.append(examine(backend, scenes, isa))
    return Diagnosis(look_around(), tuple(findings))


def examine(backend: Backend, scenes: Sequence[MadeScene], isa: str | None = None) -> Finding:
    """One back end compared and timed; one that cannot run says why."""
    if reason := unavailable(backend):
        return Finding(backend=backend, instruction_set=isa, reason=reason)
    try:
        with one_torch_thread():  # for small scenes, waking others takes longer than the work
            agreement = measure_agreement(backend, scenes)
        speed = measure_speed(backend)
    except BackendError as error:
        return Finding(backend=backend, instruction_set=isa, reason=str(error))
    return Finding(
        backend=backend,
        instruction_set=isa,
        agreement=agreement,
        faults=agreement.faults(backend),
        speed=speed,
    )


@contextmanager
def instruction_set(name: str | None) -> Iterator[None]:
    """The cpu back end under another instruction set meanwhile."""
    before = native.isa()
    try:
        if name is not None:
            native.set_isa(name)
        yield
    finally:
        native.set_isa(before)
