# SPDX-License-Identifier: Apache-2.0
"""Commands killed at random moments and started again must end in the same bytes.

    python tests/trust/kill_many.py --count 40
    python tests/trust/kill_many.py --count 10 --only bench

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import load_file
from valid_files import write_results, write_valid_files

from splatcert.cli import main
from splatcert.commands import demo
from splatcert.deploy import load_certificate
from splatcert.splats.files import load_splats

TRAIN = (
    "--iterations 300 --checkpoint-every 20 --sh-degree 1 --random-points 200 --holdout 3".split()
)
TIMES = re.compile(r'^ *"(created|seconds|peak_memory_mib|steps_timed)": .*$', re.MULTILINE)
"""What differs between two runs that are the same."""
PASSING = {".lock", "results.md", "certificate/report.html"}
"""Files that are not results, or show times and folders among them."""
STAGES = (
    "train", "certify", "learn", "report", "render", "frames", "suggest", "export", "results",
    *(["sign"] if shutil.which("ssh-keygen") else []), "demo", "bench",
)  # fmt: skip
SMALL_DEMO = {"STEPS": 300, "GAUSSIANS": 2_000, "RESOLUTION": "64"}


@dataclass(frozen=True)
class Stage:
    """One command and the artefacts it makes."""

    name: str
    arguments: list[str]
    made: Path
    source: Path | None = None
    """Copied to `made` first, if the command works in place."""

    def prepare(self) -> None:
        """Lay out what the command starts from, unless an earlier start has left it."""
        if self.source is not None and not self.made.exists():
            shutil.copytree(self.source, self.made)
        (self.made.parent if self.made.suffix else self.made).mkdir(parents=True, exist_ok=True)


def stages(capture: Path, folder: Path) -> Iterator[Stage]:
    """Every command that writes: from training to what is made of a certificate, and a bench."""
    run, cert, predictor = folder / "run", folder / "cert", folder / "predictor.json"
    bench, settings = folder / "bench", str(capture.with_name("bench.toml"))
    yield Stage("train", ["train", str(capture), "-o", str(run), *TRAIN], run)
    model = str(capture.with_name("model.ply"))
    certify = ["certify", str(capture), model, "-o", str(cert), "--holdout", "3"]
    certify += ["--predictor", "none"]
    yield Stage("certify", certify, cert)
    known = str(capture.with_name("cert"))
    yield Stage("learn", ["learn", known, "-o", str(predictor)], predictor)
    page = folder / "report.html"
    yield Stage("report", ["report", known, "--model", model, "-o", str(page)], page)
    cameras, sight = str(capture.with_name("cameras.json")), folder / "sight"
    yield Stage("render", ["render", model, "--cameras", cameras, "-o", str(sight)], sight)
    frames = ["render", known, "--model", model, "--cameras", "orbit", "--seconds", "0.4"]
    frames += ["--fps", "10", "--no-film", "-o", str(folder / "frames")]
    yield Stage("frames", frames, folder / "frames")
    for name in ("suggest", "export"):
        out = folder / name
        count = ["--count", "2"] if name == "suggest" else []
        yield Stage(name, [name, known, "--model", model, "-o", str(out), *count], out)
    results = ["results", str(folder / "results")]
    yield Stage("results", results, folder / "results", capture.with_name("results"))
    if "sign" in STAGES:
        signed, key = folder / "signed", str(capture.with_name("key"))
        yield Stage("sign", ["sign", str(signed), "--key", key], signed, capture.with_name("cert"))
    yield Stage("demo", ["demo", "-o", str(folder / "demo")], folder / "demo")
    yield Stage("bench", ["bench", settings, "-o", str(bench), "--threads", "1"], bench)


def start(arguments: list[str]) -> int:
    """A child that runs this command and nothing else; its process id."""
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # torch's thread pool does not survive a fork
        for name, value in SMALL_DEMO.items():
            setattr(demo, name, value)
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
    """Every file of a result by its place, without the times in it."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    places = {str(one.relative_to(path) if one != path else one.name): one for one in files}
    return {
        place: TIMES.sub("", one.read_text()).encode()
        if one.suffix == ".json"
        else one.read_bytes()
        for place, one in places.items()
        if not _is_passing(place)
    }


def _is_passing(place: str) -> bool:
    """Whether a file says how and when, and not what."""
    first, _, name = place.rpartition("/")
    return bool({name, place} & PASSING) or first.startswith("jobs") or name.startswith("time")


def check_whole(stage: Stage) -> None:
    """Whatever a killed command left under a final name can be read."""
    whole = stage.made if stage.made.is_dir() else stage.made.parent
    left = [path for path in whole.rglob("*") if path.is_file() and ".part" not in path.name]
    for path in (path for path in left if path.stat().st_size or path.name[0] != "."):
        if path.suffix in READERS:
            READERS[path.suffix](path)
        if path.name == "certificate.json":
            load_certificate(path.parent)


def _read_archive(path: Path) -> None:
    with np.load(path, allow_pickle=False) as arrays:
        dict(arrays)


READERS: dict[str, Callable[[Path], object]] = {
    ".json": lambda path: json.loads(path.read_text()),
    ".npz": _read_archive,
    ".png": lambda path: Image.open(path).load(),
    ".ply": lambda path: path.name == "points.ply" or load_splats(path),
    ".safetensors": load_file,
}
"""What must be readable at any moment, by suffix."""


def endure(stage: Stage, reference: Stage, kills: int, seconds: float, random: Random) -> int:
    """Kill a stage at work so often, and compare each time it finishes; how often it did.

    Moments are drawn over the length of a run that nobody disturbs. A run that finishes
    before its moment is compared too, and the next one begins in a fresh folder.
    """
    finished = hits = 0
    while hits < kills:
        stage.prepare()
        if kill(stage.arguments, random.uniform(0, seconds)):
            hits += 1
            check_whole(stage)
            continue
        finished += 1
        compare(stage, reference)
        shutil.rmtree(stage.made) if stage.made.is_dir() else stage.made.unlink()
    stage.prepare()
    finish(stage.arguments)
    compare(stage, reference)
    return finished + 1


def compare(stage: Stage, reference: Stage) -> None:
    """The artefacts of two runs must be the same bytes."""
    ours, theirs = artefacts(stage.made), artefacts(reference.made)
    if ours != theirs:
        names = sorted(n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n))
        raise SystemExit(f"{stage.name}: {', '.join(names)} differ from an undisturbed run")


def endure_all(
    folder: Path, count: int, seed: int = 0, only: Sequence[str] = STAGES
) -> dict[str, tuple[int, int]]:
    """Kills spread over the stages; how many hit each, and how often it finished."""
    capture = write_valid_files(folder / "valid") / "transforms"
    write_results(folder / "valid")
    random, told = Random(seed), {}
    pairs = zip(stages(capture, folder / "calm"), stages(capture, folder / "hit"), strict=True)
    wanted = [pair for pair in pairs if pair[0].name in only]
    shares = [count // len(wanted) + (k < count % len(wanted)) for k in range(len(wanted))]
    for kills, (reference, stage) in zip(shares, wanted, strict=True):
        for one in (reference, stage):
            one.prepare()
        seconds = finish(reference.arguments)
        told[stage.name] = kills, endure(stage, reference, kills, seconds, random)
    return told


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = endure_all(Path(scratch), asked.count, asked.seed, asked.only)
    for name, (kills, finished) in found.items():
        print(f"{name}: killed {kills} times, finished {finished} times, always the same bytes")
