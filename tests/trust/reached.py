# SPDX-License-Identifier: Apache-2.0
"""Which refusals no test has met yet.

    SPLATCERT_REACHED=FILE PYTHONPATH=tests/trust python -m pytest -p reached
    python tests/trust/reached.py FILE

While the tests run, every InputError notes the line that made it, also in forked children.
"""

from __future__ import annotations

import ast
import os
import sys
from contextlib import suppress
from pathlib import Path

from message_templates import SOURCES, refusals

from splatcert.errors import InputError

OTHERS = ("ValueError", "TypeError", "IndexError", "RuntimeError")
"""Faults of the caller, or reasons that another message takes up."""


def record(path: Path) -> None:
    """Note from now on which lines of ours make an InputError."""
    seen: set[str] = set()
    plain = InputError.__init__

    def note(place: str) -> None:
        if place not in seen:
            seen.add(place)
            # One short line is whole, whoever else appends; some tests have full disks.
            with suppress(OSError), path.open("a") as file:
                file.write(place + "\n")

    def noting(self: InputError, *arguments: object) -> None:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(str(SOURCES)):
            note(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            frame = frame.f_back  # helpers word some messages for whoever calls them
        plain(self, *arguments)

    InputError.__init__ = noting  # type: ignore[method-assign]


def unreached(path: Path) -> list[str]:
    """Place and template of every refusal that is not in the notes."""
    met: dict[str, set[int]] = {}
    for line in set(path.read_text().split()):
        file, _, number = line.rpartition(":")
        met.setdefault(str(Path(file).resolve()), set()).add(int(number))
    found = []
    for source in sorted(SOURCES.rglob("*.py")):
        lines = met.get(str(source), set())
        for node, template in refusals(ast.parse(source.read_text())):
            if template.startswith(OTHERS):
                continue
            if not lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                place = f"{source.relative_to(SOURCES)}:{node.lineno}"
                found.append(f"{place}: {template.splitlines()[0]}")
    return found


if os.environ.get("SPLATCERT_REACHED") and __name__ != "__main__":
    record(Path(os.environ["SPLATCERT_REACHED"]))

if __name__ == "__main__":
    listed = unreached(Path(sys.argv[1]))
    print("\n".join(listed))
    print(f"{len(listed)} refusals that no test has met")
