# SPDX-License-Identifier: Apache-2.0
"""`splatcert bench`: the paper's evaluation on scenes of one's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.console import say
from splatcert.errors import InputError, OptionError

if TYPE_CHECKING:
    from splatcert.jobs import Outcome
    from splatcert_bench.run.bench import State, Tell

SHOWN = 3
"""Failed jobs that a message names; it has five lines."""


class BenchFailedError(InputError):
    """Some jobs did not come to their end."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Train, certify and study a list of scenes, and write every table of the paper.

    The output folder is the only state. Run the same command again after an interruption or
    with an edited file: finished jobs are not redone.
    """

    config: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG.toml")]
    """Scenes and a profile: smoke, cpu or paper."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="OUT")] = Path("splatcert-bench")
    """Folder of models, studies and results."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder that the scenes' paths are relative to; else that of CONFIG.toml."""
    workers: int = 1
    """Processes; each takes its share of the cores."""
    ray: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """Run the jobs on a Ray cluster instead; all nodes must share OUT and the data."""
    threads: int = 0
    """Threads of the kernels with one worker; 0 means all cores. No result depends on it."""
    json: bool = False
    """Print one JSON object instead of words."""

    def __post_init__(self) -> None:
        if self.workers < 1 or self.threads < 0:
            raise OptionError("--workers must be at least 1, --threads 0 or more.")

    def run(self) -> None:
        """Do what is left, and say what came out."""
        from splatcert.raster import native
        from splatcert_bench.run.bench import run_bench
        from splatcert_bench.run.layout import Bench as Places
        from splatcert_bench.run.profiles import read_config

        config = read_config(self.config)
        native.set_threads(self.threads)
        file, output = self.config.resolve(), self.output.resolve()
        data = file.parent if self.data is None else self.data.resolve()
        bench = Places(config, output, data, file)
        if not self.json:
            say("bench", f"{len(config.scene)} scenes, profile {config.profile}")
        with progress() as tell:
            state = run_bench(bench, workers=self.workers, ray_address=self.ray, tell=tell)
        if self.json:
            print(json.dumps(bench_facts(state, self.output), indent=2))
        else:
            say("jobs", state.words())
        if state.failed:
            failed = [one for one in state.failed if one.begun]
            shown = "\n  ".join(f"{one.job}: {first_line(one.why)}" for one in failed[:SHOWN])
            raise BenchFailedError(
                f"{len(failed)} of {state.total} jobs failed, so {len(state.failed) - len(failed)} "
                f"others could not begin:\n  {shown}\n"
                f"  {self.output}/jobs has what each said. The same command tries them again."
            )
        if not self.json:
            say("results", f"{self.output}/results.json")
            say("tables", f"{self.output}/tables and {self.output}/figures")


def first_line(text: str) -> str:
    """Of a message."""
    return text.strip().split("\n", 1)[0] if text.strip() else "no word why"


def bench_facts(state: State, output: Path) -> dict[str, Any]:
    """The end for scripts."""
    return {
        "kind": "bench",
        "path": str(output),
        "jobs": state.total,
        "done": state.done,
        "failed": [asdict(one) for one in state.failed],
        "results": str(output / "results.json") if not state.failed else None,
    }


@contextmanager
def progress() -> Iterator[Tell]:
    """A line that is kept up to date on a terminal, a line a job elsewhere."""
    if not sys.stderr.isatty():
        yield _tell_by_lines
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("begins") as status:

        def tell(state: State, outcome: Outcome | None) -> None:
            if outcome is not None:
                console.print("  " + ending(outcome), highlight=False, markup=False)
            status.update(state.words())

        yield tell


def _tell_by_lines(state: State, outcome: Outcome | None) -> None:
    if outcome is not None:
        print(f"{ending(outcome)}; {state.words()}", file=sys.stderr, flush=True)


def ending(outcome: Outcome) -> str:
    """How a job ended, in words."""
    from splatcert.jobs import NotBegun
    from splatcert_bench.run.bench import duration

    if outcome.error is not None:
        what = "" if isinstance(outcome.error, NotBegun) else " failed"
        return f"{outcome.job.name}{what}: {first_line(str(outcome.error))}"
    if outcome.result is None:
        return f"{outcome.job.name} was done already"
    return f"{outcome.job.name} done in {duration(outcome.result)}"


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
        from splatcert_bench.site.results import compute_again, publish, read_results

        whole = (self.folder / "studies").is_dir()
        if whole:
            results = compute_again(self.folder)
        else:
            results = read_results(self.folder)
        if self.page is not None:
            publish(self.folder, self.page)
        pages = [self.folder / "results.md" if whole else None, self.page]
        made = results_facts(results, self.folder, [page for page in pages if page is not None])
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


def results_facts(
    results: Mapping[str, Any], folder: Path, pages: Sequence[Path]
) -> dict[str, Any]:
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
