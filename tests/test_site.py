# SPDX-License-Identifier: Apache-2.0
"""The documentation builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOADED = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"(https?:)?//[^\"]*\"[^>]*>"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strict: a link, an anchor or a documented name that does not resolve is a failure.

    Not with --quiet, which silences the warnings before they are counted.
    """
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site(site):
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    built = [
        page.parent if page.stem in ("index", "README") else page.with_suffix("") for page in pages
    ]
    missing = [page for page in built if not (site / page / "index.html").is_file()]
    assert pages and not missing


def test_pages_load_nothing_from_elsewhere(site):
    found = {
        f"{page.relative_to(site)}: {match[0]}"
        for page in site.rglob("*.html")
        for match in LOADED.finditer(page.read_text(encoding="utf-8"))
        if 'rel="canonical"' not in match[0]
    }
    assert not found
