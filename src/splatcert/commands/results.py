# SPDX-License-Identifier: Apache-2.0
"""`splatcert results`: tables, figures and page of a bench again, from what it stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from splatcert.console import say


@dataclass(frozen=True, kw_only=True)
class Results:
    """Make the tables, figures and page of a bench again from its stored numbers.

    Nothing is trained or rendered, and no photograph is needed. A folder that has only kept
    results.json gives the page and the charts.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Where splatcert bench wrote, or a folder with its results.json."""
    page: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Also write the page here, with its figures in a folder of the same name."""
    json: bool = False
    """Print one JSON object instead of words."""

    def run(self) -> None:
        """Compute again what the studies allow, and write the page."""
        from splatcert.evaluate.results import compute_again, publish, read_results

        whole = (self.folder / "studies").is_dir()
        if whole:
            results = compute_again(self.folder)
        else:
            results = read_results(self.folder)
        if self.page is not None:
            publish(self.folder, self.page)
        pages = [self.folder / "results.md" if whole else None, self.page]
        made = facts(results, self.folder, [page for page in pages if page is not None])
        if self.json:
            print(json.dumps(made, indent=2))
            return
        say(
            "results",
            "{tables} tables, {figures} figures, from {studies} studies".format(**made),
        )
        for name, why in made["missing"].items():
            say("without", f"{name}: {why.splitlines()[0]}")
        for page in made["pages"]:
            say("wrote", page)


def facts(results: Mapping[str, Any], folder: Path, pages: Sequence[Path]) -> dict[str, Any]:
    """What was made of how much, for scripts."""
    return {
        "kind": "results",
        "path": str(folder),
        "tables": len(results["tables"]),
        "figures": len(results["charts"]) + len(results["pictures"]),
        "studies": len(results["studies"]),
        "missing": dict(results["missing"]),
        "pages": [str(page) for page in pages],
    }
