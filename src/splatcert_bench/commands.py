# SPDX-License-Identifier: Apache-2.0
"""`splatcert bench` and `splatcert results`: the paper's evaluation on your own scenes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from splatcert.commands import unset
from splatcert.console import say
from splatcert.errors import InputError, OptionError

if TYPE_CHECKING:
    from splatcert.training.jobs import Outcome
    from splatcert_bench.run.bench import State, Tell

SHOWN = 3
"""Failed jobs that a message lists, to stay within five lines."""


class BenchFailedError(InputError):
    """Some jobs of a bench failed."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Run the paper's evaluation on a list of scenes and write every table.

    Safe to interrupt: run the same command again to resume. After a change to CONFIG.toml,
    only the jobs that it affects run again.
    """

    config: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG.toml")]
    """TOML file with the scenes and a profile: smoke, cpu or paper."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="OUT")] = Path("splatcert-bench")
    """Folder for models, studies and results."""
    data: Annotated[Path | None, unset("FOLDER")] = None
    """Folder that scene paths are relative to. Default: the folder of CONFIG.toml."""
    keep: Annotated[Path | None, unset("FOLDER")] = None
    """Folder for small results of finished jobs; a later run continues from it, on any machine."""
    only: Annotated[str, unset("NAME,...")] = ""
    """Scenes or jobs to run now, such as truck,garden or '*/guide-source'. Default: all."""
    workers: int = 1
    """Number of worker processes, which share the cores."""
    ray: Annotated[str | None, unset("ADDRESS")] = None
    """Address of a Ray cluster to run the jobs on; all nodes must share OUT and the data."""
    threads: int = 0
    """Threads with one worker; 0 means all cores. Does not affect the results."""
    backend: Literal["config", "auto", "cpu", "gpu", "cuda", "reference"] = "config"
    """Renderer for everything but training. config: as CONFIG.toml says, else cpu."""
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if self.workers < 1 or self.threads < 0:
            raise OptionError("--workers must be at least 1, --threads 0 or more.")

    def run(self) -> None:
        """Run the remaining jobs and report the outcome."""
        from splatcert.commands.engines import started
        from splatcert_bench.run.bench import Instalment, run_bench
        from splatcert_bench.run.layout import Bench as Places
        from splatcert_bench.run.profiles import read_config

        config = read_config(self.config)
        asked = config.backend if self.backend == "config" else self.backend
        engine = started(asked, self.threads)
        config = replace(config, backend=engine.backend)
        file, output = self.config.resolve(), self.output.resolve()
        data = file.parent if self.data is None else self.data.resolve()
        bench = Places(config, output, data, file)
        if not self.json:
            say("Bench", f"{len(config.scene)} scenes, profile {config.profile}")
            say("Back end", engine.words)
        with progress() as tell:
            only = tuple(name.strip() for name in self.only.split(",") if name.strip())
            keep = None if self.keep is None else self.keep.absolute()
            state = run_bench(
                bench,
                workers=self.workers,
                ray_address=self.ray,
                tell=tell,
                instalment=Instalment(only, keep),
            )
        if self.json:
            print(json.dumps(bench_facts(state, self.output), indent=2))
        else:
            say("Jobs", state.words())
        if state.failed:
            failed = [one for one in state.failed if one.begun]
            shown = "\n  ".join(f"{one.job}: {first_line(one.why)}" for one in failed[:SHOWN])
            waiting = len(state.failed) - len(failed)
            stopped = f", so {waiting} could not start" if waiting else ""
            raise BenchFailedError(
                f"{len(failed)} of {state.total} jobs failed{stopped}:\n  {shown}\n"
                f"  See {self.output}/jobs for details. Run the same command again to retry."
            )
        if not self.json and state.has_results:
            say("Results", f"{self.output}/results.json")
            say("Tables", f"{self.output}/tables and {self.output}/figures")


def first_line(text: str) -> str:
    """The first line of a message."""
    return text.strip().split("\n", 1)[0] if text.strip() else "no reason given"


def bench_facts(state: State, output: Path) -> dict[str, Any]:
    """The outcome, for scripts."""
    return {
        "kind": "bench",
        "path": str(output),
        "jobs": state.total,
        "done": state.done,
        "skipped": state.skipped,
        "failed": [asdict(one) for one in state.failed],
        "results": str(output / "results.json") if state.has_results else None,
    }


@contextmanager
def progress() -> Iterator[Tell]:
    """Show a live status on a terminal, and one line per finished job elsewhere."""
    if not sys.stderr.isatty():
        yield _tell_by_lines
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:

        def tell(state: State, outcome: Outcome | None) -> None:
            if outcome is not None:
                console.print("  " + ending(outcome), highlight=False, markup=False)
            status.update(state.words())

        yield tell


def _tell_by_lines(state: State, outcome: Outcome | None) -> None:
    if outcome is not None:
        print(f"{ending(outcome)}; {state.words()}", file=sys.stderr, flush=True)


def ending(outcome: Outcome) -> str:
    """How a job ended, in one line."""
    from splatcert.training.jobs import NotBegun
    from splatcert_bench.run.bench import duration

    if outcome.error is not None:
        what = "" if isinstance(outcome.error, NotBegun) else " failed"
        return f"{outcome.job.name}{what}: {first_line(str(outcome.error))}"
    if outcome.result is None:
        return f"{outcome.job.name} was already done"
    return f"{outcome.job.name} done in {duration(outcome.result)}"


@dataclass(frozen=True, kw_only=True)
class Results:
    """Rebuild the tables, figures and page of a bench from its stored numbers.

    Nothing is trained or rendered, and no photographs are needed. From results.json alone, only
    the page and the charts can be rebuilt.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """Output folder of splatcert bench, or a folder with its results.json."""
    page: Annotated[Path | None, unset("FILE")] = None
    """Also write the page here, with its figures in a folder of the same name."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        """Recompute what the studies allow and write the page."""
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
            say("Missing", f"{name}: {why.splitlines()[0]}")
        for page in made["pages"]:
            say("Wrote", page)


def results_facts(
    results: Mapping[str, Any], folder: Path, pages: Sequence[Path]
) -> dict[str, Any]:
    """What was rebuilt, for scripts."""
    return {
        "kind": "results",
        "path": str(folder),
        "tables": len(results["tables"]),
        "figures": len(results["charts"]) + len(results["pictures"]),
        "studies": len(results["studies"]),
        "missing": dict(results["missing"]),
        "pages": [str(page) for page in pages],
    }
