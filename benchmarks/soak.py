# SPDX-License-Identifier: Apache-2.0
"""Render, query and be visited many times, and check that memory stays flat.

python benchmarks/soak.py
python benchmarks/soak.py --only viewer_clients   # keeps the other results

A client of the viewer connects, waits for its first picture, and leaves.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import zstandard

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]
from machine import describe_machine  # noqa: E402

from certified_capture import (  # noqa: E402
    certify_scene,
    made_capture,
    made_model,
    made_photos,
    made_truth,
)
from splatcert.raster.render import render  # noqa: E402
from splatcert_bench.synthetic.scenes import made_cameras  # noqa: E402
from splatcert_viewer.serve import Server, serving  # noqa: E402
from splatcert_viewer.shown import ViewerState  # noqa: E402
from viewer_clients import camera_message, join  # noqa: E402
from waiting import PATIENCE, until  # noqa: E402

NAMES = ("renders", "certified_queries", "viewer_clients")
WARM_UP = 200
JPEG = b"\xff\xd8\xff"
"""How a picture begins."""
SAMPLES = 20
LIMIT = 0.01
"""Growth of resident memory after the warm-up that still counts as flat."""


def resident_kib() -> int:
    """Resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def soak(work: Callable[[int], object], count: int) -> dict[str, object]:
    """Repeat the work after a warm-up and sample resident memory at even intervals."""
    for k in range(WARM_UP):
        work(k)
    started, first = time.perf_counter(), resident_kib()
    samples = []
    for k in range(count):
        work(k)
        if (k + 1) % max(1, count // SAMPLES) == 0:
            samples.append(resident_kib())
    growth = samples[-1] / first - 1
    return {
        "machine": describe_machine(),
        "count": count,
        "seconds": round(time.perf_counter() - started, 1),
        "resident_kib_after_warm_up": first,
        "resident_kib": samples,
        "growth": round(growth, 5),
        "flat": growth < LIMIT,
    }


def visits(state: ViewerState, clients: int) -> dict[str, object]:
    """Clients one after another, on one server."""
    with serving(state, "127.0.0.1", 0, print) as server:
        return soak(lambda _: visit(server), clients)


def unpacked(message: bytes) -> bytes:
    """A message of viser: two lengths, compressed data of the second, raw data."""
    length = int.from_bytes(message[8:16], "little")
    return zstandard.ZstdDecompressor().decompress(message[16 : 16 + length]) + message[16:]


def visit(server: Server) -> None:
    """One client that comes, gets its first picture, and leaves."""
    with join(server) as socket:
        socket.send(camera_message())
        while JPEG not in unpacked(socket.recv(timeout=PATIENCE, decode=False)):
            pass
    until(lambda: not server.get_clients())


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=2_000)
    options.add_argument("--clients", type=int, default=1_000)
    options.add_argument("--only", choices=NAMES)
    options.add_argument("--output", type=Path, default=HERE / "results" / "soak.json")
    asked = options.parse_args()
    model = made_model(made_truth())
    certificate = certify_scene(made_capture(made_photos()), model, predictor=None)
    cameras = made_cameras(97, 96, 64)
    known = json.loads(asked.output.read_text()) if asked.only else {}
    measured: dict[str, Callable[[], dict[str, object]]] = {
        "renders": lambda: soak(lambda k: render(model, cameras[k % len(cameras)]), asked.count),
        "certified_queries": lambda: soak(
            lambda k: certificate.predict(cameras[k % len(cameras)]), asked.count
        ),
        "viewer_clients": lambda: visits(ViewerState.of(certificate, None), asked.clients),
    }
    result = {
        **known,
        "gaussians": len(model),
        "size": [96, 64],
        **{name: work() for name, work in measured.items() if asked.only in (None, name)},
    }
    asked.output.write_text(json.dumps(result, indent=1) + "\n")
    for name in NAMES:
        one = result[name]
        print(f"{name}: {one['count']} in {one['seconds']} s, growth {100 * one['growth']:.2f}%")
    return 0 if all(result[name]["flat"] for name in NAMES) else 1


if __name__ == "__main__":
    sys.exit(main())
