# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of the readers with Atheris (`pip install atheris`).

python tools/fuzz/fuzz.py ply -max_total_time=600

Readers: ply, colmap, certificate, yaml (settings of other trainers) and predictor.
A reader may return or raise an InputError; anything else is a finding, whose input libFuzzer
keeps as crash-*. A folder given after the reader's name is the corpus; it grows.
"""

from __future__ import annotations

import json
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import atheris
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "trust"), str(ROOT / "src")]
# Atheris does not instrument what the finder of an editable install imports.
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__]

with atheris.instrument_imports(include=["splatcert", "yaml"]):
    import splatcert

    splatcert.__path__.append(f"{sysconfig.get_path('purelib')}/splatcert")  # the native core
    from splatcert.certificate.content.record import Record
    from splatcert.certificate.hashes import has_known_origin
    from splatcert.certificate.store import read_content
    from splatcert.difficulty.descriptor import FEATURE_NAMES
    from splatcert.difficulty.origin import shipped_name
    from splatcert.difficulty.predictor import FeatureUnits, load_predictor
    from splatcert.difficulty.views_file import SceneViews
    from splatcert.field.store import load_field
    from splatcert.scene.readers import colmap_binary, colmap_text
    from splatcert.scene.readers.ply_points import read_ply_points
    from splatcert.splats.account import TrainingAccount
    from splatcert.splats.gsplat_run import open_gsplat
    from splatcert.splats.inria import open_inria
    from splatcert.splats.nerfstudio import open_nerfstudio
    from splatcert.splats.ply import read_ply
    from splatcert.storage.schema import from_plain

from mutations import JSON  # noqa: E402
from valid_files import write_valid_files  # noqa: E402

from splatcert.errors import InputError  # noqa: E402

SCRATCH = Path(tempfile.mkdtemp())
FILE = SCRATCH / "input"
PARTS = ("certificate.json", "views.npz", "field.safetensors")
SETTINGS = ("nerfstudio/config.yml", "gsplat/cfg.yml", "inria/cfg_args")
PHOTOS = [f"{number:02d}.png" for number in range(20)]


def ply(data: bytes) -> None:
    """As splats and as a point cloud."""
    FILE.write_bytes(data)
    for read in (read_ply, read_ply_points):
        try:
            read(FILE)
        except InputError:
            pass


def colmap(data: bytes) -> None:
    """One of six files, by the first byte."""
    if not data:
        return
    FILE.write_bytes(data[1:])
    reader = (colmap_binary, colmap_text)[data[0] & 1]
    read: tuple[Callable[[], object], ...] = (
        lambda: reader.read_cameras(FILE),
        lambda: reader.read_images(FILE, observations=True),
        lambda: reader.read_points(FILE),
    )
    try:
        read[(data[0] >> 1) % 3]()
    except InputError:
        pass


def certificate(data: bytes) -> None:
    """One of its three files, by the first byte."""
    if not data:
        return
    kind, content = data[0] % len(PARTS), data[1:]
    if kind == 0:
        _main_file(content)
        return
    FILE.write_bytes(content)
    try:
        (SceneViews.load if kind == 1 else load_field)(FILE)
    except InputError:
        pass


def _main_file(data: bytes) -> None:
    """The whole file, and its content without the check of its heading."""
    (SCRATCH / "certificate.json").write_bytes(data)
    try:
        read_content(SCRATCH)
    except InputError:
        pass
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        from_plain(Record, content)
    except InputError:
        pass


def settings(data: bytes) -> None:
    """Settings of one of three trainers, by the first byte, and all that is made of them."""
    if not data:
        return
    place = SCRATCH / "valid" / SETTINGS[data[0] % len(SETTINGS)]
    place.write_bytes(data[1:])
    try:
        if place.name == "config.yml":
            run = open_nerfstudio(place.parent)
            split = run.split
            TrainingAccount(split=split).trained_on(PHOTOS, own_split=False)
            assert run.held_out != "" and run.is_antialiased in (True, False)
            assert run.background is None or len(run.background) == 3
            assert all(isinstance(note, str) for note in run.notes)
        elif place.name == "cfg.yml":
            run = open_gsplat(place.parent)
            TrainingAccount(split=run.test_every).trained_on(PHOTOS, own_split=False)
            assert run.is_antialiased in (True, False) and run.is_normalized in (True, False, None)
            assert all(isinstance(note, str) for note in run.notes())
        else:
            run = open_inria(place.parent)
            assert run.has_held_out in (True, False, None)
            assert all(isinstance(note, str) for note in run.notes)
    except InputError:
        pass


def predictor(data: bytes) -> None:
    """A view predictor, its card, and its answer for two views."""
    FILE.write_bytes(data)
    try:
        read = load_predictor(FILE)
        shipped_name(read)
    except InputError:
        return
    has_known_origin(read.card)
    units = FeatureUnits(np.zeros(len(FEATURE_NAMES)), np.ones(len(FEATURE_NAMES)))
    answer = read.raw(np.eye(2, len(FEATURE_NAMES)), units)
    assert answer.shape == (2,) and (np.isnan(answer) | (answer > 0)).all()


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Bytes as libFuzzer changes them; every other JSON text by its entries instead."""
    random, head = Random(seed), 0 if data[:1] == b"{" else 1
    if (head == 0 or data[:1] == b"\0") and random.random() < 0.5:
        how = random.choice([JSON["value"], JSON["gone"], JSON["key-new"]])
        try:
            return data[:head] + how(data[head:], random)[: most - head]
        except (ValueError, IndexError, TypeError, AttributeError, RecursionError):
            pass  # it is no JSON any more
    return atheris.Mutate(data, most)


READERS = {
    "ply": ply,
    "colmap": colmap,
    "certificate": certificate,
    "yaml": settings,
    "predictor": predictor,
}
BY_ENTRIES = ("certificate", "predictor")


def write_seeds(reader: str, folder: Path) -> None:
    """Valid files to start from."""
    valid = write_valid_files(SCRATCH / "valid")
    if reader == "ply":
        seeds = [path.read_bytes() for path in valid.rglob("*.ply")]
    elif reader == "certificate":
        seeds = [
            bytes([kind]) + (valid / "cert" / part).read_bytes() for kind, part in enumerate(PARTS)
        ]
    elif reader == "yaml":
        seeds = [
            bytes([kind]) + (valid / place).read_bytes() for kind, place in enumerate(SETTINGS)
        ]
    elif reader == "predictor":
        seeds = [(valid / "predictor.json").read_bytes()]
    else:
        seeds = [
            bytes([kind + 2 * number]) + (valid / place / f"{stem}.{suffix}").read_bytes()
            for kind, (place, suffix) in enumerate(
                (("colmap_bin/sparse/0", "bin"), ("colmap_txt/sparse/0", "txt"))
            )
            for number, stem in enumerate(("cameras", "images", "points3D"))
        ]
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)


def main() -> None:
    """Write the seeds and fuzz until told to stop."""
    if len(sys.argv) < 2 or sys.argv[1] not in READERS:
        sys.exit(f"usage: fuzz.py {'|'.join(READERS)} [FOLDER] [libFuzzer options]")
    name, rest = sys.argv[1], sys.argv[2:]
    if not any(not word.startswith("-") for word in rest):
        rest.insert(0, tempfile.mkdtemp())
    folder = Path(next(word for word in rest if not word.startswith("-")))
    folder.mkdir(parents=True, exist_ok=True)
    write_seeds(name, folder)
    by_entries = {"custom_mutator": mutate} if name in BY_ENTRIES else {}
    atheris.Setup([sys.argv[0], *rest], READERS[name], **by_entries)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
