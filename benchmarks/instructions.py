# SPDX-License-Identifier: Apache-2.0
"""Compare instruction counts of the hot kernels with the committed ones: a guard without a clock.

make perf                                      build, count, compare
python benchmarks/instructions.py PROGRAM --renew    accept the new counts

PROGRAM runs every kernel once, on one thread (native/instruction_counts.cpp). Counts depend on the
compiler, so they are kept per compiler. A kernel may differ by 3%; if a change is meant to cost
more or less, renew the counts and say in the commit why they moved.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "instructions.json"
TOLERANCE = 0.03
INSTRUCTION_SET = "avx2"
"""Valgrind knows no AVX-512."""


def counts_of(program: Path) -> dict[str, int]:
    """Instructions of each kernel with everything it calls, by callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        valgrind = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={out}"]
        subprocess.run([*valgrind, str(program), INSTRUCTION_SET], check=True)
        table = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    rows = re.findall(r"^\s*([\d,]+) .*?:count_(\w+)", table, flags=re.M)
    return {name: int(number.replace(",", "")) for number, name in sorted(rows, key=lambda r: r[1])}


def compiler() -> str:
    """The first line of the compiler's version."""
    said = subprocess.run(["c++", "--version"], check=True, capture_output=True, text=True)
    return said.stdout.splitlines()[0]


def compare(found: dict[str, int], known: dict[str, int]) -> list[str]:
    """Kernels whose counts moved by more than the tolerance, and those that came or went."""
    moved = [f"{name} has no committed count" for name in found.keys() - known.keys()]
    moved += [f"{name} was not counted" for name in known.keys() - found.keys()]
    for name in sorted(found.keys() & known.keys()):
        change = found[name] / known[name] - 1
        print(f"  {name:14} {found[name]:>14,} instructions {change:+8.2%}")
        if abs(change) > TOLERANCE:
            moved.append(f"{name} moved by {change:+.1%}")
    return moved


def main() -> None:
    """Count, then compare or renew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--renew", action="store_true", help="store these counts")
    options = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found, by = counts_of(options.program), compiler()
    if not options.renew and by not in stored:
        sys.exit(f"no counts for {by}; store those of an unchanged tree with --renew")
    if options.renew:
        RESULTS.write_text(json.dumps(stored | {by: found}, indent=1) + "\n")
    if moved := compare(found, (found if options.renew else stored[by])):
        sys.exit("\n".join(moved))


if __name__ == "__main__":
    main()
