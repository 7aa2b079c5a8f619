# SPDX-License-Identifier: Apache-2.0
"""Measure the memory that certifying a large scene takes: 2,000 photos, 1600 pixels, 3 M Gaussians.

python benchmarks/memory.py

The capture is synthetic: its photographs are renders of a smaller model of the same courtyard,
which saves time and does not change the memory needed. The field's fit takes fewer steps than
usual for the same reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]
from machine import describe_machine  # noqa: E402

from splatcert.raster.render import render  # noqa: E402
from splatcert.splats.files import save_ply  # noqa: E402
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # noqa: E402

LIMIT_GIB = 12
PHOTOGRAPHED = 200_000
"""Most Gaussians of the model that the photographs show."""
OPENCV_TO_OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])


def write_capture(folder: Path, asked: argparse.Namespace) -> None:
    """Photographs and their poses."""
    (folder / "images").mkdir(parents=True)
    truth = made_splats(min(PHOTOGRAPHED, asked.gaussians), seed=1, sh_degree=1)
    cameras = made_cameras(asked.views, asked.width, asked.height)
    frames = []
    for index, camera in enumerate(cameras):
        name = f"images/{index:03d}.jpg"
        pixels = (render(truth, camera).rgb.clamp(0, 1) * 255).round().byte().numpy()
        Image.fromarray(pixels).save(folder / name, quality=92)
        pose = np.linalg.inv(camera.world_to_camera) @ OPENCV_TO_OPENGL
        frames.append({"file_path": name, "transform_matrix": pose.tolist()})
    lens = cameras[0]
    shared = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy}
    content = {**shared, "w": lens.width, "h": lens.height, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(content))


def in_child(make, *arguments) -> None:
    """Run in a separate process, so that its memory is not counted."""
    child = os.fork()
    if child == 0:
        make(*arguments)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"{make.__name__} failed")


def certify(folder: Path, steps: int) -> dict[str, object]:
    """Run the command and return its peak memory and time."""
    command = [sys.executable, "-m", "splatcert.cli", "certify", str(folder / "capture")]
    command += [str(folder / "model.ply"), "-o", str(folder / "cert"), "--holdout", "8"]
    command += ["--field.max-steps", str(steps), "--scale", "paper", "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"certify ended with {os.waitstatus_to_exitcode(status)}")
    peak = used.ru_maxrss / 2**20
    return {
        "peak_resident_gib": round(peak, 2),
        "limit_gib": LIMIT_GIB,
        "within": peak <= LIMIT_GIB,
        "seconds": round(time.perf_counter() - started),
        "processor_seconds": round(used.ru_utime + used.ru_stime),
        "field_steps": steps,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--views", type=int, default=2_000)
    options.add_argument("--width", type=int, default=1600)
    options.add_argument("--height", type=int, default=1066)
    options.add_argument("--gaussians", type=int, default=3_000_000)
    options.add_argument("--steps", type=int, default=1)
    options.add_argument("--output", type=Path, default=HERE / "results" / "memory.json")
    asked = options.parse_args()
    machine = describe_machine()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        in_child(write_capture, folder / "capture", asked)
        in_child(lambda: save_ply(made_splats(asked.gaussians, seed=1), folder / "model.ply"))
        print("capture and model are ready", flush=True)
        found = certify(folder, asked.steps)
    scene = {name: getattr(asked, name) for name in ("views", "width", "height", "gaussians")}
    asked.output.write_text(json.dumps({"machine": machine, **scene, **found}, indent=1) + "\n")
    print(f"peak {found['peak_resident_gib']} GiB of {LIMIT_GIB} in {found['seconds']} s")
    return 0 if found["within"] else 1


if __name__ == "__main__":
    sys.exit(main())
