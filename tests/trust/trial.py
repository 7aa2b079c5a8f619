# SPDX-License-Identifier: Apache-2.0
"""Commands run on malformed inputs in a process that may die, hang or eat memory.

Starting Python for each would take a second; a worker is forked once and replaced when it
falls. The kernel itself ends a command that uses too much processor time, native code
included, and refuses memory beyond the limit.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import resource
import shlex
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from corpus import Case
from matplotlib.figure import Figure

from splatcert import cli
from splatcert.certificate.store import SIGNATURE
from splatcert.raster import native
from splatcert_viewer import command as view

SECONDS = 10.0
"""Of processor time for one command."""
PATIENCE = 300.0
"""Of waiting, for one that sleeps for ever; machines can be slow."""
MEMORY = 3 << 30
"""Beyond what a worker has at its start."""
PROGRESS = re.compile(
    r"^(\w+: \d+/\d+  loss|.* \d+ of \d+ jobs done|[\w ]+: \d+ of \d+$).*\n", re.M
)
"""What commands at work tell, and no complaint."""
KEPT_BY_RUNS = {
    ".lock", "train.json", "checkpoint.safetensors", ".field.safetensors", "splats.ply",
}  # fmt: skip
"""What a run that was refused half-way may leave in its own folder, to go on from; a bench that
has begun leaves all of it."""


@dataclass(frozen=True)
class Ending:
    """How one command on one input ended."""

    command: str
    status: str
    """The exit code, or what became of the process."""
    said: str
    """On the error stream."""
    left: tuple[str, ...]
    """Files that should not be there."""
    seconds: float
    """Of processor time."""

    def fault(self) -> str | None:
        """What is wrong with this ending, if anything."""
        lines = self.said.strip().splitlines()
        if self.status not in ("0", "2"):
            return f"ended by {self.status}"
        if "Traceback" in self.said:
            return "a traceback"
        if self.status == "2" and not (lines and lines[0].startswith("splatcert: ")):
            return "exit code 2 without a message"
        if len(lines) > (5 if self.status == "2" else 0):
            return f"{len(lines)} lines on the error stream"
        return f"files left: {', '.join(self.left)}" if self.left else None


def run_cases(cases: Sequence[Case], valid: Path, scratch: Path) -> dict[str, list[Ending]]:
    """The endings of every command for every case, by the case's name."""
    found: dict[str, list[Ending]] = {case.name: [] for case in cases}
    pending = [(case, line) for case in cases for line in case.lines]
    while pending:
        done = 0
        with _worker(pending, valid, scratch) as (process, answers):
            for case, line in pending:
                said = _answer(process, answers)
                done += 1
                if isinstance(said, str):
                    found[case.name].append(Ending(line, said, "", (), PATIENCE))
                    break
                found[case.name].append(said)
        pending = pending[done:]
    return found


def _answer(process, answers: Connection) -> Ending | str:
    """What the worker says of one command, or how it ended."""
    if not answers.poll(PATIENCE):
        return "hanging"
    try:
        return answers.recv()
    except EOFError:
        process.join()
        code = process.exitcode
        if code == -signal.SIGPROF:
            return f"using more than {SECONDS:g} s of processor time"
        return f"crash, {signal.Signals(-code).name}" if code < 0 else f"leaving with {code}"


@contextlib.contextmanager
def _worker(pending: Sequence[tuple[Case, str]], valid: Path, scratch: Path) -> Iterator[tuple]:
    context = get_context("fork")
    answers, telling = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(pending, valid, scratch, telling))
    process.start()
    telling.close()
    try:
        yield process, answers
    finally:
        process.kill()
        process.join()


def _work(
    pending: Sequence[tuple[Case, str]], valid: Path, scratch: Path, telling: Connection
) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = max(space, used) + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    native.set_threads(1)
    torch.set_num_threads(1)  # its thread pool did not survive the fork: a child would wait for it
    # Paths of one worker are always the same, and half of the time would go into parsing them.
    parsed = lru_cache(maxsize=None)(cli.parse)
    cli.parse = lambda arguments: parsed(tuple(arguments))
    view.threading = _InterruptedAtOnce  # type: ignore[assignment]
    Figure.savefig = lambda self, file, **_: file.write(b"a picture")  # slow, and nothing to try
    for case, line in pending:
        telling.send(_try(case, line, valid, scratch))


class _InterruptedAtOnce:
    """In place of `threading` where the viewer waits for Ctrl-C."""

    class Event:
        def wait(self) -> None:
            raise KeyboardInterrupt


def _try(case: Case, line: str, valid: Path, scratch: Path) -> Ending:
    """One command on a fresh copy of the input."""
    folder = scratch / f"{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    it, out = case.make(valid, folder), folder / "out"
    out.mkdir()
    before = _listing(folder)
    arguments = [word.format(it=it, valid=valid, out=out) for word in shlex.split(line)]
    said, started = io.StringIO(), time.process_time()
    os.chdir(folder)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = cli.main(arguments)
    except BaseException:  # whatever gets past `main` is a fault to report
        status, text = "an exception", traceback.format_exc()
        said.write(text)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - started
    left = tuple(sorted(_unwanted(before, _listing(folder), it, out, str(status))))
    os.chdir(scratch)
    shutil.rmtree(folder, ignore_errors=True)
    text = (
        PROGRESS.sub("", said.getvalue()).replace(str(folder), "CASE").replace(str(valid), "VALID")
    )
    return Ending(line, str(status), text, left, seconds)


def _listing(folder: Path) -> dict[str, int]:
    """Every file below, with its size."""
    return {
        str(path.relative_to(folder)): path.lstat().st_size
        for path in folder.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }


def _unwanted(
    before: dict[str, int], after: dict[str, int], it: Path, out: Path, status: str
) -> Iterator[str]:
    """Files that changed or appeared and are neither results nor a run's own state."""
    for name in {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}:
        top = name.split("/")[0]
        is_run = top == "out" or it.name in ("run", "half_run", "results", "bench_out")
        kept = Path(name).name in KEPT_BY_RUNS or "jobs" in os.listdir(out)
        result = (is_run or Path(name).name == SIGNATURE) and status == "0" and ".part" not in name
        if not (result or (is_run and kept)):
            yield name


def report(found: dict[str, list[Ending]]) -> int:
    """Print every fault; how many there are."""
    faults = 0
    for name, endings in found.items():
        for ending in endings:
            if fault := ending.fault():
                faults += 1
                print(f"{name}\n  {ending.command}\n  {fault}")
                print("    " + "\n    ".join(ending.said.strip().splitlines()[-6:]))
    return faults


if __name__ == "__main__":
    import tempfile
    from collections import Counter

    from corpus import CASES, THOROUGH
    from valid_files import write_results, write_valid_files

    wanted = [word for word in sys.argv[1:] if word != "--all"]
    inputs = THOROUGH if "--all" in sys.argv else CASES
    chosen = [c for c in inputs if not wanted or any(word in c.name for word in wanted)]
    with tempfile.TemporaryDirectory() as folder:
        valid = write_valid_files(Path(folder) / "valid")
        write_results(valid)
        started = time.perf_counter()
        found = run_cases(chosen, valid, Path(folder))
        faults = report(found)
    endings = [ending for some in found.values() for ending in some]
    slow = sorted(endings, key=lambda ending: -ending.seconds)[:5]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")
    print(
        f"{len(chosen)} inputs, {len(endings)} commands, {faults} faults, "
        f"{time.perf_counter() - started:.0f} s"
    )
    for ending in slow:
        print(f"  {ending.seconds:.1f} s: {ending.command}")
    spent: Counter[str] = Counter()
    for ending in endings:
        spent[ending.command.split(" ", 1)[0]] += ending.seconds
    print("in all: " + ", ".join(f"{name} {s:.0f} s" for name, s in spent.most_common()))
