# SPDX-License-Identifier: Apache-2.0
"""`splatcert results`: tables, figures and page of a bench again, from what it stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

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

    def run(self) -> None:
        """Compute again what the studies allow, and write the page."""
        from splatcert.evaluate.results import compute_again, publish, read_results

        if (self.folder / "studies").is_dir():
            results = compute_again(self.folder)
            say("wrote", f"{self.folder / 'results.md'}")
        else:
            results = read_results(self.folder)
        made = len(results["tables"]), len(results["charts"]) + len(results["pictures"])
        say(
            "results",
            f"{made[0]} tables, {made[1]} figures, from {len(results['studies'])} studies",
        )
        for name, why in results["missing"].items():
            say("without", f"{name}: {why.splitlines()[0]}")
        if self.page is not None:
            publish(self.folder, self.page)
            say("wrote", f"{self.page}")
