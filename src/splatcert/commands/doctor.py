# SPDX-License-Identifier: Apache-2.0
"""`splatcert doctor`: what this machine can run, and whether it is right."""

from __future__ import annotations

import json
from dataclasses import dataclass

from splatcert.console import say_all, show_table, stages

DISAGREES = 1


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Check every back end of this machine against the reference, and time it.

    Compares pictures, residual fields and transposes with a float64 reference on built-in
    scenes. Exit code 0 if all back ends that run here agree, 1 if one does not. Takes less than
    a minute if nothing else runs, and writes nothing.
    """

    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        """Examine, print, and return 1 if a back end disagrees."""
        from splatcert.checkup.diagnose import doctor
        from splatcert.checkup.words import (
            COLUMNS,
            NUMBERS,
            closing_lines,
            facts,
            finding_row,
            machine_lines,
        )

        with stages() as on:
            diagnosis = doctor(on)
        if self.json:
            print(json.dumps(facts(diagnosis), indent=2))
        else:
            say_all(machine_lines(diagnosis.machine))
            show_table(COLUMNS, [finding_row(one) for one in diagnosis.findings], numbers=NUMBERS)
            say_all(closing_lines(diagnosis))
        return 0 if diagnosis.healthy else DISAGREES
