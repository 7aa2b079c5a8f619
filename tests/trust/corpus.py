# SPDX-License-Identifier: Apache-2.0
"""The malformed inputs: seeded mutations of valid files, and hand-made ones.

A case is a copy of one of `valid_files`, spoilt. `COMMANDS` says which commands can meet a
kind of input; a new command is one line there, a new kind of file one line in `FILES`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from handmade import HANDMADE
from handmade_formats import FORMATS
from hostile_options import OPTIONS
from mutations import BINARY, JSON, TEXT, Mutation
from resealed import RESEALED
from valid_files import TRAIN

CERTIFY = "certify {valid}/transforms {it} -o {out} --predictor none"
RENDER = "render {it} --cameras {valid}/cameras.json -o {out}"
CAPTURE = (
    "inspect {it}",
    "train {it} -o {out} " + " ".join(TRAIN),
    "certify {it} {valid}/model.ply -o {out} --holdout 3 --predictor none",
)
MODEL = "--model {valid}/model.ply"
GO_ON = "train {valid}/transforms -o {it} " + " ".join(TRAIN)
COMMANDS: dict[str, tuple[str, ...]] = {
    "model.ply": (
        "inspect {it}",
        "inspect {it} --data {valid}/transforms",
        RENDER,
        f"{CERTIFY} --holdout 3",
    ),
    "ascii.ply": ("inspect {it}", RENDER),
    "big.ply": ("inspect {it}", RENDER),
    "gsplat.pt": ("inspect {it}", f"{CERTIFY} --holdout 3"),
    "model.spz": ("inspect {it}", RENDER),
    "model4.spz": ("inspect {it}", RENDER),
    "model.splat": ("inspect {it}", RENDER),
    "model.sog": ("inspect {it}", f"{CERTIFY} --holdout 3"),
    "sog": ("inspect {it}", RENDER),
    "model.glb": ("inspect {it}", RENDER),
    "packed.ply": ("inspect {it}", RENDER),
    "inria": ("inspect {it}", RENDER, CERTIFY),
    "gsplat": ("inspect {it}", RENDER, CERTIFY),
    "nerfstudio": ("inspect {it}", RENDER, CERTIFY),
    "colmap_bin": (
        *CAPTURE,
        "render {valid}/model.ply --data {it} -o {out}",
        "render {valid}/model.ply --cameras {it} -o {out}",
        "register {it} {valid}/transforms/images -o {out}",
    ),
    "colmap_txt": CAPTURE[:2],
    "transforms": (
        *CAPTURE,
        "render {valid}/model.ply --cameras {it}/transforms.json -o {out} --resolution 24",
    ),
    "blender": tuple(line.replace(" --holdout 3", "") for line in CAPTURE[:2]),
    "cameras.json": (
        "inspect {it}",
        "render {valid}/model.ply --cameras {it} -o {out}",
        "render {valid}/cert --cameras {it} -o {out} --no-film --maps none",
    ),
    "run": ("inspect {it}", CERTIFY, GO_ON),
    "half_run": (GO_ON, CERTIFY),
    "cert": (
        "inspect {it}",
        "verify {it}",
        "verify {it} --data {valid}/transforms --model {valid}/model.ply",
        f"report {{it}} -o {{out}}/report.html {MODEL}",
        f"view {{it}} --port 0 {MODEL}",
        f"suggest {{it}} -o {{out}} --count 2 {MODEL}",
        f"export {{it}} -o {{out}} --keep 'opacity > 0' {MODEL}",
        f"render {{it}} -o {{out}} --cameras orbit --seconds 0.2 --fps 10 --no-film {MODEL}",
        *(("sign {it} --key {valid}/key",) if shutil.which("ssh-keygen") else ()),
    ),
    "family": (
        "inspect {it}",
        "verify {it}",
        f"report {{it}} -o {{out}}/report.html --member constant {MODEL}",
        f"render {{it}} -o {{out}} --cameras orbit --seconds 0.2 --fps 10 --no-film {MODEL}",
    ),
    "guide.json": (
        "inspect {it}",
        "certify {valid}/transforms {valid}/model.ply -o {out} --holdout 3 --scale guided "
        "--guide {it}",
    ),
    "views.npz": ("learn {it} -o {out}/predictor.json",),
    "predictor.json": (
        "inspect {it}",
        "certify {valid}/transforms {valid}/model.ply -o {out} --holdout 3 --predictor {it}",
    ),
    "bench.toml": ("bench {it} -o {out} --threads 1",),
    "results": ("results {it}", "results {it} --page {out}/page.md"),
    "bench_out": ("results {it}",),
}
"""By kind of input; {it} is the spoilt copy, {valid} the folder of valid files."""

DEAR = ("suggest", "export", "render {it} -o {out} --cameras orbit", "results {it} --page")
"""Beginnings of commands that hand-made inputs meet and mutations do not: what these commands
read, cheaper ones read as well."""


def _of_captures(mutation: Mutation) -> Mutation:
    """A bench of captures that are not there: whatever is still valid is refused in no time."""

    def mutate(data: bytes, random: Random) -> bytes:
        text = data.replace(b'"smoke"', b'"cpu"').replace(b"made = ", b"path = 'nowhere' # ")
        return mutation(text, random)

    return mutate


FILES: tuple[tuple[str, str, dict[str, Mutation], int], ...] = (
    ("model.ply", "", {**BINARY, "number": TEXT["number"], "line-gone": TEXT["line-gone"]}, 1),
    ("ascii.ply", "", TEXT, 1),
    ("big.ply", "", BINARY, 1),
    ("gsplat.pt", "", BINARY, 1),
    ("model.spz", "", BINARY, 1),
    ("model4.spz", "", BINARY, 1),
    ("model.splat", "", BINARY, 1),
    ("model.sog", "", BINARY, 2),
    ("sog", "meta.json", JSON, 2),
    ("sog", "quats.webp", BINARY, 1),
    ("model.glb", "", {**BINARY, "number": TEXT["number"]}, 2),
    ("packed.ply", "", {**BINARY, "number": TEXT["number"], "line-gone": TEXT["line-gone"]}, 1),
    ("inria", "cfg_args", TEXT, 1),
    ("gsplat", "cfg.yml", TEXT, 1),
    ("nerfstudio", "nerfstudio_models/step-000029999.ckpt", BINARY, 1),
    ("nerfstudio", "config.yml", TEXT, 1),
    ("nerfstudio", "dataparser_transforms.json", JSON, 1),
    ("colmap_bin", "sparse/0/cameras.bin", BINARY, 1),
    ("colmap_bin", "sparse/0/images.bin", BINARY, 1),
    ("colmap_bin", "sparse/0/points3D.bin", BINARY, 1),
    ("colmap_txt", "sparse/0/cameras.txt", TEXT, 1),
    ("colmap_txt", "sparse/0/images.txt", TEXT, 1),
    ("colmap_txt", "sparse/0/points3D.txt", TEXT, 1),
    ("transforms", "transforms.json", JSON, 2),
    ("transforms", "points.ply", BINARY, 1),
    ("transforms", "images/01.png", BINARY, 1),
    ("blender", "transforms_train.json", JSON, 1),
    ("cameras.json", "", JSON, 2),
    ("run", "train.json", JSON, 1),
    ("run", "metrics.json", JSON, 1),
    ("half_run", "checkpoint.safetensors", BINARY, 1),
    ("cert", "certificate.json", JSON, 2),
    ("cert", "field.safetensors", BINARY, 1),
    ("cert", "views.npz", BINARY, 1),
    ("family", "family.json", JSON, 2),
    ("family", "constant/certificate.json", JSON, 1),
    ("guide.json", "", JSON, 2),
    ("views.npz", "", BINARY, 1),
    ("predictor.json", "", JSON, 1),
    ("bench.toml", "", {name: _of_captures(how) for name, how in TEXT.items()}, 3),
    ("results", "results.json", JSON, 2),
    ("bench_out", "studies/truck-fastgs-model.npz", BINARY, 1),
    ("bench_out", "studies/truck-fastgs-model.ratios.npz", BINARY, 1),
    ("bench_out", "studies/truck-fastgs-model.0.picture.npz", BINARY, 1),
)
"""Kind, the file inside that is damaged, how, and with how many seeds each."""


@dataclass(frozen=True)
class Case:
    """One malformed input."""

    name: str
    kind: str
    spoil: Callable[[Path], object]
    """Damages a copy of the valid input in place."""
    commands: tuple[str, ...] = ()
    """Those that meet it, where not all of its kind do."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The commands that meet it."""
        return self.commands or COMMANDS[self.kind]

    def make(self, valid: Path, folder: Path) -> Path:
        """The malformed input in a folder of its own."""
        folder.mkdir(parents=True)
        it = folder / self.kind
        source = valid / self.kind
        if source.is_dir():
            shutil.copytree(source, it)
        else:
            shutil.copy(source, it)
        self.spoil(it)
        return it


def _mutate(file: str, mutation: Mutation, name: str, it: Path) -> None:
    path = it / file if file else it
    path.write_bytes(mutation(path.read_bytes(), Random(name)))


def _cases() -> Iterator[Case]:
    for kind, file, mutations, seeds in FILES:
        for how, mutation in mutations.items():
            for seed in range(seeds):
                place = f"{kind}/{file}" if file else kind
                name = f"{place}:{how}:{seed}" if seeds > 1 else f"{place}:{how}"
                met = tuple(line for line in COMMANDS[kind] if not line.startswith(DEAR))
                yield Case(name, kind, partial(_mutate, file, mutation, name), met)
    for kind, named in (HANDMADE | FORMATS).items():
        for place, (how, spoil) in enumerate(named.items()):
            met = _in_turn(place, 2) if kind == "cert" else ()
            yield Case(f"{kind}:{how}", kind, spoil, met)
    for place, (how, spoil) in enumerate(RESEALED.items()):
        yield Case(f"resealed:{how}", "cert", spoil, _in_turn(place, 1))
    for how, (kind, line) in OPTIONS.items():
        yield Case(f"option:{how}", kind, lambda it: None, (line,))


def _in_turn(place: int, count: int) -> tuple[str, ...]:
    """The two cheapest commands on a certificate, and some of the others in rotation."""
    cheap, others = COMMANDS["cert"][:2], COMMANDS["cert"][2:]
    return (*cheap, *(others[(place + 3 * k) % len(others)] for k in range(count)))


CASES = tuple(_cases())
THOROUGH = tuple(
    case if case.name.startswith("option:") else replace(case, commands=()) for case in CASES
)
"""The same inputs before every command of their kind; for `trial.py --all`."""
