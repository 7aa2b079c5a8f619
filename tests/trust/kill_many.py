# SPDX-License-Identifier: Apache-2.0
"""Commands killed at random moments and started again must end in the same bytes.

    python tests/trust/kill_many.py --count 30

Each start is a forked child that runs the command and is killed with SIGKILL. After every
kill the artefacts that are there must be whole.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from valid_files import write_valid_files

from splatcert.certificate.store import load_certificate
from splatcert.cli import main
from splatcert.splats.files import load_splats

TRAIN = (
    "--iterations 300 --checkpoint-every 20 --sh-degree 1 --random-points 200 --holdout 3".split()
)
TIMES = re.compile(r'^ *"(created|seconds|peak_memory_mib|steps_timed)": .*$', re.MULTILINE)
"""What differs between two runs that are the same."""
PASSING = {".lock"}


@dataclass(frozen=True)
class Stage:
    """One command and the artefacts it makes."""

    name: str
    arguments: list[str]
    made: Path


def stages(capture: Path, folder: Path) -> Iterator[Stage]:
    """Train and certify, and learn from the certificate."""
    run, cert, predictor = folder / "run", folder / "cert", folder / "predictor.json"
    yield Stage("train", ["train", str(capture), "-o", str(run), *TRAIN], run)
    model = str(capture.with_name("model.ply"))
    certify = ["certify", str(capture), model, "-o", str(cert), "--holdout", "3"]
    certify += ["--predictor", "none"]
    yield Stage("certify", certify, cert)
    yield Stage("learn", ["learn", str(cert), "-o", str(predictor)], predictor)


def start(arguments: list[str]) -> int:
    """A child that runs this command and nothing else; its process id."""
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr = Path(os.devnull).open("w")
        os._exit(main(arguments))
    return child


def finish(arguments: list[str]) -> float:
    """Run a command to its end; how long it took."""
    started = time.perf_counter()
    _, status = os.waitpid(start(arguments), 0)
    if status != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - started


def kill(arguments: list[str], after: float) -> bool:
    """Start a command and kill it; whether it was still at work."""
    child = start(arguments)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def artefacts(path: Path) -> dict[str, bytes]:
    """Every file of a result by name, without the times in it."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return {
        one.name: TIMES.sub("", one.read_text()).encode()
        if one.suffix == ".json"
        else one.read_bytes()
        for one in files
        if one.name not in PASSING
    }


def check_whole(stage: Stage) -> None:
    """Whatever a killed command left under a final name can be read."""
    files = artefacts(stage.made) if stage.made.exists() else {}
    for name in files:
        if name.endswith(".json") and not name.startswith("."):
            place = stage.made if stage.made.is_file() else stage.made / name
            json.loads(place.read_text())
    if "splats.ply" in files:
        load_splats(stage.made / "splats.ply")
    if "certificate.json" in files:
        load_certificate(stage.made)


def endure(stage: Stage, reference: Stage, kills: int, seconds: float, random: Random) -> int:
    """Kill a stage at work so often, and compare each time it finishes; how often it did.

    Moments are drawn over the length of a run that nobody disturbs. A run that finishes
    before its moment is compared too, and the next one begins in a fresh folder.
    """
    finished = hits = 0
    while hits < kills:
        if kill(stage.arguments, random.uniform(0, seconds)):
            hits += 1
            check_whole(stage)
            continue
        finished += 1
        compare(stage, reference)
        shutil.rmtree(stage.made) if stage.made.is_dir() else stage.made.unlink()
    finish(stage.arguments)
    compare(stage, reference)
    return finished + 1


def compare(stage: Stage, reference: Stage) -> None:
    """The artefacts of two runs must be the same bytes."""
    ours, theirs = artefacts(stage.made), artefacts(reference.made)
    if ours != theirs:
        names = sorted(n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n))
        raise SystemExit(f"{stage.name}: {', '.join(names)} differ from an undisturbed run")


def endure_all(folder: Path, count: int, seed: int = 0) -> dict[str, tuple[int, int]]:
    """Kills spread over the stages; how many hit each, and how often it finished."""
    capture = write_valid_files(folder / "valid") / "transforms"
    random, told = Random(seed), {}
    pairs = zip(stages(capture, folder / "calm"), stages(capture, folder / "hit"), strict=True)
    shares = (count - 2 * (count // 3), count // 3, count // 3)
    for kills, (reference, stage) in zip(shares, pairs, strict=True):
        seconds = finish(reference.arguments)
        told[stage.name] = kills, endure(stage, reference, kills, seconds, random)
    return told


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=30)
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = endure_all(Path(scratch), asked.count, asked.seed)
    for name, (kills, finished) in found.items():
        print(f"{name}: killed {kills} times, finished {finished} times, always the same bytes")
