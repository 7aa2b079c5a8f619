# SPDX-License-Identifier: Apache-2.0
"""Take the poses of held-out photos away, register the photos again, and compare.

python benchmarks/register.py SCENES MODELS WORK SCENE... --elsewhere PHOTO

Every 8th photo of a capture with known poses is removed from its reconstruction and registered
again by `splatcert register`, together with one photo of another place. The poses are compared
with the known ones, and the threshold q of a certificate on the new capture with that of the
original. Seconds of processor time are those of the registration alone. With --resume, WORK is kept
and the seconds of an interrupted run, in WORK/SCENE/seconds.json, are added.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from machine import describe_machine

from splatcert.camera import extent_of
from splatcert.registration.localise import angle, centre
from splatcert.scene.readers.camera_files import read_cameras
from splatcert.scene.readers.colmap import ColmapModel, read_colmap
from splatcert.scene.readers.colmap_append import write_model

RESULTS = Path(__file__).parent / "results" / "register.json"
EVERY = 8


def strip(root: Path, work: Path, elsewhere: Path, resume: bool) -> tuple[ColmapModel, set[str]]:
    """Write a capture without its held-out photos, and these photos without poses."""
    model = read_colmap(root / "sparse/0")
    names = sorted(image.name for image in model.images)
    removed = set(names[::EVERY])
    if resume:
        return model, removed
    shutil.rmtree(work, ignore_errors=True)
    for folder in ("data/sparse/0", "data/images", "new"):
        (work / folder).mkdir(parents=True)
    kept = [image for image in model.images if image.name not in removed]
    write_model(work / "data/sparse/0", list(model.cameras.values()), kept, model.points)
    for name in names:
        target = work / ("new" if name in removed else "data/images") / name
        shutil.copyfile(root / "images" / name, target)
    shutil.copyfile(elsewhere, work / "new" / f"elsewhere{elsewhere.suffix}")
    return model, removed


def register(work: Path, threads: int) -> None:
    """Run the command, and add its seconds to those of interrupted runs."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "splatcert.cli", "register", "data", "new", "-o", "data2"]
    subprocess.run([*command, "--threads", str(threads)], cwd=work, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    seconds = {"elapsed_seconds": time.monotonic() - start, "processor_seconds": used, "runs": 1}
    if (earlier := work / "seconds.json").is_file():
        more = json.loads(earlier.read_text())
        seconds = {name: value + more[name] for name, value in seconds.items()}
    earlier.write_text(json.dumps(seconds))


def certified(data: Path, model: Path, folder: Path) -> dict[str, Any]:
    """The guarantee and the scene of a certificate, which is made unless it exists."""
    if not (folder / "certificate.json").is_file():
        command = [sys.executable, "-m", "splatcert.cli", "certify", data, model, "-o", folder]
        command += ["--predictor", "reverse"]  # the default one has learned from these photos
        subprocess.run(command, check=True)
    return json.loads((folder / "certificate.json").read_text())


def compared(root: Path, work: Path, model: Path) -> dict[str, Any]:
    """The thresholds of certificates on the original capture and on the one with new photos."""
    before = certified(root, model, work / "original.cert")
    after = certified(work / "data2", model, work / "registered.cert")
    q = [one["guarantee"]["threshold"] for one in (before, after)]
    return {
        "q_original": q[0],
        "q_registered": q[1],
        "q_change_percent": 100 * (q[1] / q[0] - 1),
        "calibrated_on": [one["guarantee"]["views"] for one in (before, after)],
        "split": after["scene"]["split"],
    }


def measure(scene: str, options: argparse.Namespace) -> dict[str, Any]:
    work, root = options.work / scene, options.scenes / scene
    model, removed = strip(root, work, options.elsewhere, options.resume)
    if not (work / "data2/registered.json").is_file():
        register(work, options.threads)
    known = {image.name: image.world_to_camera for image in model.images}
    added = read_colmap(work / "data2/sparse/0").images
    again = {image.name: image.world_to_camera for image in added}
    extent = extent_of(read_cameras(work / "data").values())
    views = json.loads((work / "data2/registered.json").read_text())["photos"]
    for view in views:
        mine, truth = again[view["name"]], known[view["name"]]
        apart = float(np.linalg.norm(centre(mine) - centre(truth)))
        view |= {"degrees": angle(mine, truth), "extent_percent": 100 * apart / extent}
        del view["sha256"]
    new = {path.name for path in (work / "new").iterdir()}
    refused = sorted(new - {view["name"] for view in views})
    errors = {key: [view[key] for view in views] for key in ("degrees", "extent_percent")}
    return {
        "scene": scene,
        "known_photos": len(known) - len(removed),
        "new_photos": len(removed),
        "registered": len(removed & {view["name"] for view in views}),
        "refused": refused,
        "elsewhere_refused": bool(set(refused) - removed),
        **{f"median_{key}": float(np.median(values)) for key, values in errors.items()},
        **{f"largest_{key}": max(values) for key, values in errors.items()},
        **({} if options.poses_only else compared(root, work, options.models / scene)),
        **json.loads((work / "seconds.json").read_text()),
        "views": views,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("scenes", "models", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("scene", nargs="+")
    parser.add_argument("--elsewhere", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--poses-only", action="store_true", help="certify nothing")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for scene in options.scene:
        found = measure(scene, options)
        kept = json.loads(RESULTS.read_text())["scenes"] if RESULTS.is_file() else []
        kept = [one for one in kept if one["scene"] != scene] + [found]
        told = {"machine": describe_machine(), "scenes": sorted(kept, key=lambda s: s["scene"])}
        RESULTS.write_text(json.dumps(told, indent=1) + "\n")
        print(json.dumps({key: value for key, value in found.items() if key != "views"}, indent=1))


if __name__ == "__main__":
    main()
