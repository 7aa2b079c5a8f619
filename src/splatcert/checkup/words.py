# SPDX-License-Identifier: Apache-2.0
"""A diagnosis in words, in a table, and as JSON values."""

from __future__ import annotations

from typing import Any

from splatcert.checkup.diagnose import Diagnosis, Finding
from splatcert.checkup.machine import Machine
from splatcert.storage.memory import GIB
from splatcert.storage.schema import to_plain

COLUMNS = (
    "back end",
    "result",
    "largest error",
    "median",
    "adjoint",
    "same bits",
    "renders/s",
    "queries/s",
    "field steps/s",
)
NUMBERS = COLUMNS[2:5] + COLUMNS[6:]


def machine_lines(machine: Machine) -> dict[str, str]:
    """The machine in labelled lines."""
    sets = ", ".join(machine.instruction_sets)
    memory = f"{machine.memory / GIB:.1f} GiB" if machine.memory else "unknown"
    gpus = "; ".join(adapter.words() for adapter in machine.adapters) or "none found"
    if others := "; ".join(adapter.words() for adapter in machine.other_adapters):
        gpus += f". Not used: {others}. To choose one, set SPLATCERT_GPU to a part of its name"
    return {
        "splatcert": f"{machine.splatcert}, Python {machine.python}, {machine.system}",
        "Processor": f"{machine.instruction_set} (has {sets}), {machine.cores} cores, "
        f"{machine.threads} in use",
        "Memory": f"{memory}; a picture may take {machine.memory_limit / GIB:.1f} GiB",
        "torch": machine.torch,
        "GPU": gpus,
    }


def finding_row(one: Finding) -> tuple[str, ...]:
    """One back end as a row of the table."""
    if one.agreement is None or one.speed is None:
        return (one.name, one.verdict, *[""] * (len(COLUMNS) - 2))
    found, speed = one.agreement, one.speed
    errors = (f"{error:.1e}" for error in (found.largest, found.median, found.adjoint))
    same = {(True, True): "yes", (True, False): "render only"}
    rates = (f"{rate:.3g}" for rate in (speed.renders, speed.queries, speed.field_steps))
    repeats = same.get((found.repeats, found.adjoint_repeats), "no")
    return (one.name, one.verdict, *errors, repeats, *rates)


def closing_lines(diagnosis: Diagnosis) -> dict[str, str]:
    """What the table leaves open: reasons, sizes, and the verdict."""
    told = {}
    for one in diagnosis.findings:
        if one.reason is not None:
            told[one.name] = f"not available: {' '.join(one.reason.split())}"
        elif one.faults:
            told[one.name] = f"disagrees with the reference: {'; '.join(one.faults)}"
    timed = dict[str, list[str]]()
    for one in diagnosis.findings:
        if one.speed is not None:
            timed.setdefault(one.speed.scene, []).append(one.name)
    told["Timed on"] = "; ".join(f"{size}: {', '.join(names)}" for size, names in timed.items())
    wrong = [one.name for one in diagnosis.findings if one.faults]
    ran = sum(one.reason is None for one in diagnosis.findings)
    told["Verdict"] = (
        f"do not use {', '.join(wrong)}. Please report this output"
        if wrong
        else f"all {ran} back ends that run here agree with the reference"
    )
    return told


def facts(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis for scripts."""
    findings = [
        {**to_plain(one), "name": one.name, "verdict": one.verdict} for one in diagnosis.findings
    ]
    return {
        "kind": "doctor",
        "healthy": diagnosis.healthy,
        "machine": to_plain(diagnosis.machine),
        "backends": findings,
    }
