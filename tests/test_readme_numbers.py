# SPDX-License-Identifier: Apache-2.0
"""README and the front page say what the committed results say, computed again.

After a run of the bench: SPLATCERT_UPDATE_README=1 writes both from benchmarks/results.
"""

from __future__ import annotations

import os
import re

import pytest

from readme_section import NESTED, ROOT, front_page, rows, section, table, verdict, with_interval

PARTS = {
    "README.md": ("## How good is it?\n", "## Read on", section),
    "docs/index.md": ('<div class="results" markdown>', "</div>\n\n## Who it is for", front_page),
}


@pytest.mark.parametrize("name", PARTS)
def test_every_number_of_the_page_is_in_the_results(name):
    begin, end, written = PARTS[name]
    text = (ROOT / name).read_text(encoding="utf-8")
    before, rest = text.split(begin)
    said, after = rest.split(end)
    if os.environ.get("SPLATCERT_UPDATE_README"):
        said = written()
        (ROOT / name).write_text(f"{before}{begin}{said}{end}{after}", encoding="utf-8")
    assert said == written()


def test_the_nested_figure_comes_first():
    """The first saving in README has no setting that was chosen with its target in view."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = next(line for line in readme.splitlines() if "narrower than a constant" in line)
    assert with_interval(table("panel-a")[NESTED][1]) in first
    assert not [what for what, _ in rows() if re.search(r"\d", what.replace("3DGS", ""))]


def test_no_advantage_is_claimed_that_is_not_demonstrated():
    assert verdict([4.2, -0.2, 9.5], [0.34]) == "no demonstrated advantage"
    assert verdict([4.2, 0.2, 9.5], [0.34]) == "no demonstrated advantage"
    assert verdict([4.2, 0.2, 9.5], [0.0215]) == "p = 0.0215"
    assert verdict([-4.2, -9.5, -0.2], [0.0215]) == "worse, p = 0.0215"
    assert verdict([4.2, None, None], [None]) == "no demonstrated advantage"
