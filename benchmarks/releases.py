# SPDX-License-Identifier: Apache-2.0
"""Compare this source tree with an earlier release, in one run on one machine.

python benchmarks/releases.py FORMER WORK render truck --data CAPTURES --model SPLATS
python benchmarks/releases.py FORMER WORK certify truck --data CAPTURES --model SPLATS
python benchmarks/releases.py FORMER WORK batch truck --data CAPTURES --model SPLATS
python benchmarks/releases.py FORMER WORK query truck --data CAPTURES --model SPLATS --scale guided
python benchmarks/releases.py FORMER WORK train truck garden --data CAPTURES --resolution 320 \
    --options "--iterations 3000" "--iterations 2100"

FORMER is the `src` folder of a checkout of the release, with its native core built in place. Both
run under this interpreter. Renders take turns in two processes that stay open; commands run one
after the other, with time on the clock and processor time of each. `batch` compares one thread
with two in this tree alone. Rows are merged into the results file. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

RESULTS = Path(__file__).parent / "results" / "releases.json"
HERE = Path(__file__).parents[1] / "src"
ROUNDS = 25
CAMERAS = 8
BATCH = 64
WIDTHS = {"paper": (640, 1600), "guided": (640,)}
"""Widths of queries; guided ones are as wide as their photographs."""
RELEASES = ("former", "this")

# An editable install would put its own sources first, whatever PYTHONPATH says.
SOURCE = """
import os, sys
source = os.path.realpath(os.environ["PYTHONPATH"])
if not os.environ["SPLATCERT_EDITABLE"]:
    sys.meta_path[:] = [f for f in sys.meta_path if "_editable" not in type(f).__module__]
import splatcert
if not os.path.realpath(splatcert.__file__).startswith(source + os.sep):
    sys.exit(f"{splatcert.__file__} was imported, not {source}")
"""
RENDERER = """
import time
from dataclasses import replace
import splatcert as sc
from splatcert.raster import native
data, model, width, threads, count, *certificate = sys.argv[1:]
native.set_threads(int(threads))
splats = sc.load_splats(model)
scene = sc.load_scene(data, holdout="8")
def enlarged(c):
    by = int(width) / c.width
    size = {"width": int(width), "height": round(by * c.height)}
    return replace(c, fx=by * c.fx, fy=by * c.fy, cx=by * c.cx, cy=by * c.cy, **size)
views = list(scene.training)
cameras = [enlarged(view.camera) for view in views[:: len(views) // int(count)]]
show = lambda camera: sc.render(splats, camera)
if certificate:
    show = sc.load_certificate(certificate[0], splats, scene=scene).predict
for _ in sys.stdin:
    before = time.perf_counter()
    for camera in cameras[:int(count)]:
        show(camera)
    print(time.perf_counter() - before, flush=True)
"""
PREDICTOR = """
import time
import splatcert as sc
from splatcert.raster import native
certificate = sc.load_certificate(sys.argv[1], sc.load_splats(sys.argv[2]))
scene = sc.load_scene(sys.argv[3], resolution=sys.argv[4], holdout="8")
cameras = [view.camera for view in scene.training][:int(sys.argv[5])]
native.set_threads(int(sys.argv[6]))
certificate.predict(cameras)
for _ in sys.stdin:
    before = time.perf_counter()
    certificate.predict(cameras)
    print(time.perf_counter() - before, flush=True)
"""
COMMAND = "from splatcert.cli import run; sys.exit(run())"


class Worker:
    """A process that does its work once for each line it receives."""

    def __init__(self, source: Path, script: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SOURCE + script, *map(str, arguments)],
            env=environment(source),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.seconds: list[float] = []

    def turn(self) -> None:
        """Let it work once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("go", file=self._process.stdin, flush=True)
        self.seconds.append(float(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def environment(source: Path, state: Path | None = None) -> dict[str, str]:
    """The environment in which a release is imported, with a ledger of its own."""
    ledger = {} if state is None else {"XDG_STATE_HOME": str(state)}
    editable = "yes" if source == HERE else ""
    return {**os.environ, "PYTHONPATH": str(source), "SPLATCERT_EDITABLE": editable, **ledger}


def take_turns(workers: dict[str, Worker]) -> dict[str, dict[str, float]]:
    """Milliseconds of each worker: least and median, the first round left out."""
    for _ in range(ROUNDS + 1):
        for worker in workers.values():
            worker.turn()
    for worker in workers.values():
        worker.close()
    return {
        name: {
            "min_ms": round(1e3 * min(worker.seconds[1:]), 2),
            "median_ms": round(1e3 * median(worker.seconds[1:]), 2),
        }
        for name, worker in workers.items()
    }


def compare_renders(options: argparse.Namespace, name: str) -> list[dict[str, object]]:
    """`sc.render` of both releases at two sizes."""
    rows = []
    for resolution in (640, 1600):
        arguments = (options.data / name, options.model, resolution, options.threads, CAMERAS)
        times = take_turns(
            {
                release: Worker(source, RENDERER, *arguments)
                for release, source in zip(RELEASES, (options.former, HERE), strict=True)
            }
        )
        row = {"what": "render", "scene": name, "resolution": resolution, **times}
        rows.append(row | {"times_faster": faster(times, "former", "this")})
    return rows


def compare_threads(options: argparse.Namespace, name: str) -> list[dict[str, object]]:
    """A batch of certified queries on one thread and on two."""
    folder = options.work / f"{name}-{options.scale}.cert"
    arguments = (folder, options.model, options.data / name, 640, BATCH)
    times = take_turns(
        {f"threads_{threads}": Worker(HERE, PREDICTOR, *arguments, threads) for threads in (1, 2)}
    )
    row: dict[str, object] = {"what": "batch", "scene": name, "views": BATCH, "resolution": 640}
    row |= times
    return [row | {"times_faster": faster(times, "threads_1", "threads_2")}]


def compare_queries(options: argparse.Namespace, name: str) -> list[dict[str, object]]:
    """A certified query, one camera at a time, and a plain render."""
    rows = []
    folder = options.work / f"{name}-{options.scale}.cert"
    for width in WIDTHS[options.scale]:
        arguments = (options.data / name, options.model, width, options.threads, CAMERAS)
        times = take_turns(
            {
                "render": Worker(HERE, RENDERER, *arguments),
                "query": Worker(HERE, RENDERER, *arguments, folder),
            }
        )
        row = {"what": f"query, {options.scale}", "scene": name, "resolution": width, **times}
        rows.append(row | {"times_a_render": faster(times, "query", "render")})
    return rows


def faster(times: dict[str, dict[str, Any]], top: str, bottom: str, which: str = "min_ms") -> float:
    """The ratio of two times."""
    return round(times[top][which] / times[bottom][which], 2)


def run(source: Path, work: Path, arguments: list[str]) -> dict[str, float]:
    """Seconds of a command on the clock and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", SOURCE + COMMAND, *arguments],
        env=environment(source, work / "state"),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(elapsed, 1), "cpu_seconds": round(used, 1)}


def compare_commands(options: argparse.Namespace, name: str) -> list[dict[str, object]]:
    """`certify` or `train` of both releases."""
    row: dict[str, object] = {"what": options.what, "scene": name, "resolution": options.resolution}
    times: dict[str, dict[str, Any]] = {}
    sources = zip(RELEASES, (options.former, HERE), options.options, strict=True)
    for release, source, more in sources:
        if release == "former" and options.keep_former:
            row[release] = times[release] = kept_former(row, more)
            continue
        target = options.work / f"{name}-{release}.{'cert' if options.what == 'certify' else 'run'}"
        shutil.rmtree(target, ignore_errors=True)
        arguments = [options.what, str(options.data / name)]
        if options.what == "certify":
            arguments += [str(options.model), "--scale", "paper"]
        arguments += ["-o", str(target), "--holdout", "8", *more.split()]
        arguments += ["--resolution", str(options.resolution), "--threads", str(options.threads)]
        times[release] = run(source, options.work, arguments)
        row[release] = times[release] | {"options": more}
        if options.what == "train":
            row[release] |= quality(target)  # type: ignore[operator]
    for unit in ("seconds", "cpu_seconds"):
        row[f"times_faster_by_{unit}"] = faster(times, "former", "this", unit)
    return [row]


def kept_former(row: dict[str, object], more: str) -> dict[str, Any]:
    """The former release's part of a row measured before, with the same options."""
    keys = ("what", "scene", "resolution")
    for old in json.loads(RESULTS.read_text())["rows"]:
        same = all(old[key] == row[key] for key in keys)
        if same and old["former"]["options"] == more:
            return old["former"]
    raise SystemExit(f"no earlier row of {row['scene']} to keep the former release's part of")


def quality(folder: Path) -> dict[str, float]:
    """What came of a training."""
    metrics, result = (json.loads((folder / f"{n}.json").read_text()) for n in ("metrics", "train"))
    return {
        "psnr": round(metrics["psnr"], 3),
        "ssim": round(metrics["ssim"], 4),
        "gaussians": result["result"]["gaussians"],
    }


def key_of(row: dict[str, Any]) -> tuple[str, str, int, str]:
    """What tells comparisons apart."""
    return row["what"], row["scene"], row["resolution"], row.get("this", {}).get("options", "")


def merge(rows: list[dict[str, object]], options: argparse.Namespace) -> None:
    """Add rows, each with the machine at its time, or replace older ones of the same kind."""
    stored = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    machine = describe_machine() | {"threads": options.threads}
    known = {key_of(row): row for row in stored}
    known |= {key_of(row): {**row, "machine": machine} for row in rows}
    ordered = [known[key] for key in sorted(known)]
    RESULTS.write_text(json.dumps({"rows": ordered}, indent=1) + "\n")


def main() -> None:
    """Compare, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("former", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("what", choices=("render", "batch", "query", "certify", "train"))
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--resolution", type=int, default=640)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scale", choices=tuple(WIDTHS), default="paper")
    parser.add_argument("--options", nargs=2, default=("", ""), metavar=RELEASES)
    parser.add_argument("--keep-former", action="store_true", help="reuse its stored times")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    works = {"render": compare_renders, "batch": compare_threads, "query": compare_queries}
    work = works.get(options.what, compare_commands)
    for name in options.scenes:
        rows = work(options, name)
        print(json.dumps(rows), flush=True)
        merge(rows, options)


if __name__ == "__main__":
    main()
