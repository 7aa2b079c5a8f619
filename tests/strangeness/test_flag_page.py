# SPDX-License-Identifier: Apache-2.0
"""The page on the flag shows the measured figures."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = json.loads((ROOT / "benchmarks/results/flag.json").read_text())["captures"]
PAGE = (ROOT / "docs/flag.md").read_text()
SHOWN = ("still-life", "truck", "garden", "playroom")


def test_changed_cameras_are_as_measured():
    for kind in CAPTURES["truck"]["flagged"]:
        cells = [
            f"{100 * CAPTURES[name]['flagged'][kind]:.0f}%, "
            f"{100 * CAPTURES[name]['power'][kind]:.0f}%"
            for name in SHOWN
        ]
        assert f"| {kind} | {' | '.join(cells)} |" in PAGE


def test_untouched_views_are_as_measured():
    for name, row in CAPTURES.items():
        found = row["untouched"]
        cells = f"{100 * found['flagged']:.1f}% | {100 * found['promised']:.1f}%"
        assert f"| {'demo' if name == 'still-life' else name} | {cells} |" in PAGE
    assert not any(CAPTURES[name]["vacuous_without_flag"] for name in SHOWN)
