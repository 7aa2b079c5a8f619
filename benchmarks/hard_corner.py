# SPDX-License-Identifier: Apache-2.0
"""Simulated exchangeable captures with a hard corner: what the diagnostics say of them.

python benchmarks/hard_corner.py [--captures N] [--draws N]

Cameras are drawn independently at random around a made courtyard, looking inward, so training,
held-out and new cameras are exchangeable. Photographs taken from one corner are noisy. Difficulty
then depends on place, and the evenness test should say so, in words that speak of coverage by
region and never of a violated assumption. For each capture, calibration and query cameras are
drawn again and again: the comparison of cameras must keep its level of 5% on untouched ones, and
find those that were turned or zoomed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from machine import describe_machine
from scipy.spatial.transform import Rotation

import splatcert as sc
from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.report.words.conditions import conditions_of
from splatcert.report.words.summary import closing_lines
from splatcert.scene.camera_paths import look_at
from splatcert.strangeness.comparison import compare_cameras
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

RESULTS = Path(__file__).parent / "results" / "hard_corner.json"
TRAINING, HELD_OUT = 48, 20
SIZE = (72, 48)
GAUSSIANS = 1500
CORNER = np.radians(90.0)
"""Arc of the hard corner."""
NOISE = {False: 0.02, True: 0.15}
"""Standard deviation of the photographs' noise, elsewhere and in the corner."""
ACCUSING = re.compile("exchangeab|violat|assum|doubt")
"""Words that no finding about difficulty may contain."""


def draw(rng: np.random.Generator, lens: Camera) -> Camera:
    """One camera at random around the courtyard, looking inward."""
    angle, radius = rng.uniform(0, 2 * np.pi), rng.uniform(4.5, 6.5)
    eye = np.array([radius * np.cos(angle), radius * np.sin(angle), rng.uniform(1.2, 2.6)])
    target = np.array([0.0, 0.2, 0.8]) + rng.normal(0, 0.4, 3)
    pose = look_at(eye, target - eye, np.array([0.0, 0.0, 1.0]))
    return replace(lens, world_to_camera=pose)


def in_corner(camera: Camera) -> bool:
    """Whether a camera stands in the hard corner."""
    return bool(0 <= np.arctan2(camera.centre[1], camera.centre[0]) < CORNER)


def photograph(splats: sc.Splats, camera: Camera, rng: np.random.Generator) -> np.ndarray:
    """What the camera sees, with noise."""
    seen = sc.render(splats, camera).rgb.numpy()
    noisy = seen + rng.normal(0, NOISE[in_corner(camera)], seen.shape)
    return noisy.clip(0, 1).astype(np.float32)


def certified(seed: int) -> Certificate:
    """A capture with a hard corner, certified in memory."""
    rng = np.random.default_rng(seed)
    splats, lens = made_splats(GAUSSIANS, seed=seed, sh_degree=1), made_cameras(1, *SIZE)[0]
    cameras = [draw(rng, lens) for _ in range(TRAINING + HELD_OUT)]
    photos = [photograph(splats, camera, rng) for camera in cameras]
    scene = sc.Scene.from_arrays(photos, cameras, held_out=list(range(TRAINING, len(cameras))))
    return sc.certify(scene, splats, unseen=scene.held_out.names, scale="paper")


def changes() -> Iterator[tuple[str, Rotation | float]]:
    """Turns about each axis, and zooms."""
    for name, axis in (("pitch", "x"), ("yaw", "y"), ("roll", "z")):
        for degrees in (60, 90, 180):
            yield f"{name} {degrees}°", Rotation.from_euler(axis, degrees, degrees=True)
    for zoom in (2.0, 3.0, 8.0):
        yield f"zoom {zoom:g}x", zoom


def changed(camera: Camera, change: Rotation | float) -> Camera:
    """A camera turned on the spot, or zoomed."""
    if not isinstance(change, Rotation):
        return replace(camera, fx=change * camera.fx, fy=change * camera.fy)
    turn = np.eye(4)
    turn[:3, :3] = change.as_matrix()
    return replace(camera, world_to_camera=turn @ camera.world_to_camera)


def rejects(certificate: Certificate, asked: list[Camera], known: list[Camera]) -> bool:
    """Whether the comparison tells two sets of cameras apart at 5%."""
    rows = [[certificate.predict(c).descriptor for c in group] for group in (asked, known)]
    record = certificate.record
    found = compare_cameras(
        asked,
        known,
        [view.camera for view in record.training],
        (np.array(rows[0]), np.array(rows[1])),
        extent=record.scene.extent,
    )
    return found is not None and found.differs


def words_about_difficulty(certificate: Certificate) -> str:
    """Everything the report and the command line say about even difficulty."""
    (found,) = [c for c in conditions_of(certificate) if "Permutation test" in c.words]
    return f"{found.title}. {found.words} {closing_lines(certificate, Path('cert'))['Notes']}"


def measure(captures: int, draws: int) -> dict[str, object]:
    """All captures."""
    uneven, accused, level = [], 0, []
    power: dict[str, list[bool]] = {name: [] for name, _ in changes()}
    for seed in range(captures):
        certificate, rng = certified(seed), np.random.default_rng([seed, 1])
        lens = certificate.record.training[0].camera
        uneven.append(certificate.record.evenness.p_value < 0.05)
        accused += bool(ACCUSING.search(words_about_difficulty(certificate)))
        for at in range(draws):
            known, asked = ([draw(rng, lens) for _ in range(HELD_OUT)] for _ in range(2))
            level.append(rejects(certificate, asked, known))
            if at == 0:
                for name, change in changes():
                    turned = [changed(camera, change) for camera in asked]
                    power[name].append(rejects(certificate, turned, known))
        print(f"{seed + 1} of {captures}: level {np.mean(level):.3f}", flush=True)
    return {
        "captures": captures,
        "uneven_found": float(np.mean(uneven)),
        "captures_accused_of_a_violated_assumption": accused,
        "draws": len(level),
        "level": float(np.mean(level)),
        "level_standard_error": float(np.std(level) / np.sqrt(len(level))),
        "power": {name: float(np.mean(found)) for name, found in power.items()},
    }


def main() -> None:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--captures", type=int, default=20)
    parser.add_argument("--draws", type=int, default=30, help="untouched draws per capture")
    options = parser.parse_args()
    found = {"machine": describe_machine(), **measure(options.captures, options.draws)}
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
