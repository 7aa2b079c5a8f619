# SPDX-License-Identifier: Apache-2.0
"""Fuzz the readers one after the other, guided by coverage, and record the findings.

python benchmarks/fuzz.py --seconds 600     needs Atheris: pip install atheris
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]
from machine import describe_machine  # noqa: E402

HARNESS = HERE.parent / "tools" / "fuzz" / "fuzz.py"
READERS = ("ply", "colmap", "certificate", "yaml", "predictor")
LIMITS = ("-timeout=60", "-report_slow_units=60", "-rss_limit_mb=3072")
"""Time and memory limits per input; exceeding either is a finding."""


def fuzz(reader: str, seconds: int, kept: Path) -> dict[str, object]:
    """Fuzz one reader for this long; findings are kept in a folder."""
    done = subprocess.run(
        [
            *(sys.executable, str(HARNESS), reader, f"-max_total_time={seconds}", *LIMITS),
            *("-print_final_stats=1", f"-artifact_prefix={kept}/{reader}-"),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    told = done.stderr
    (kept / f"{reader}.log").write_text(done.stdout + told)
    return {
        "seconds": seconds,
        "executions": _last(r"number_of_executed_units: (\d+)", told),
        "executions_per_second": _last(r"average_exec_per_sec: +(\d+)", told),
        "edges_covered_by_seeds": _last(r"INITED cov: (\d+)", told),
        "edges_covered": _last(r" cov: (\d+)", told),
        "slowest_seconds": _last(r"slowest_unit_time_sec: +(\d+)", told),
        "peak_resident_mib": _last(r"peak_rss_mb: +(\d+)", told),
        "exit_code": done.returncode,
        "findings": sorted(path.name for path in kept.glob(f"{reader}-*")),
    }


def _last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=600, help="seconds per reader")
    options.add_argument(
        "--readers",
        nargs="+",
        default=READERS,
        choices=READERS,
        help="readers to fuzz; others keep their results",
    )
    options.add_argument("--keep", type=Path, help="folder for findings. Default: a temporary one")
    options.add_argument("--output", type=Path, default=HERE / "results" / "fuzz.json")
    asked = options.parse_args()
    kept = asked.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    kept.mkdir(parents=True, exist_ok=True)
    found = json.loads(asked.output.read_text())["readers"] if asked.output.exists() else {}
    for reader in asked.readers:
        one = found[reader] = fuzz(reader, asked.seconds, kept)
        print(f"{reader}: {one['executions']} executions, findings {one['findings']}", flush=True)
        result = {"machine": describe_machine(), "readers": found}
        asked.output.write_text(json.dumps(result, indent=1) + "\n")
        if not one["edges_covered_by_seeds"]:
            print(f"{reader}: nothing was instrumented, so this run does not count", flush=True)
    asked_for = [found[reader] for reader in asked.readers]
    sound = all(one["edges_covered_by_seeds"] and not one["exit_code"] for one in asked_for)
    return 0 if sound and not any(one["findings"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
