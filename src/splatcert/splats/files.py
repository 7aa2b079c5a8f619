# SPDX-License-Identifier: Apache-2.0
"""Load a model in any supported format, and describe it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from splatcert.splats import gsplat_run as gsplat_checkpoint
from splatcert.splats import nerfstudio
from splatcert.splats.formats.packed import FileFormat, first_bytes
from splatcert.splats.formats.recognise import (
    OPENERS,
    model_files,
    open_model_file,
    recognise,
    refuse_pointer,
)
from splatcert.splats.gaussians import Splats
from splatcert.splats.gsplat_run import gsplat_parts, open_gsplat, read_gsplat
from splatcert.splats.inria import HOLDOUT, inria_iterations, open_inria
from splatcert.splats.nerfstudio import nerfstudio_tensors, open_nerfstudio, read_nerfstudio
from splatcert.splats.ply import save_ply
from splatcert.splats.transform import FrameError, split_similarity, transform_splats
from splatcert.splats.untrusted import ForeignFileError, load_checkpoint

__all__ = ["ModelInfo", "describe_model", "load_splats", "save_ply"]

Format = FileFormat | Literal["inria", "gsplat", "nerfstudio"]
Frame = Literal["data", "model"] | NDArray[np.float64]
Split = int | float | Literal["none"] | None

PARENT_FILES = ("config.yml", "cfg.yml", "cfg_args", "cameras.json")
ACCEPTED = (
    "Accepted: a .ply, .spz, .splat, .sog or .glb file, an Inria output folder\n"
    "  (point_cloud/iteration_*), a gsplat run (ckpts/ckpt_*_rank*.pt), a nerfstudio run\n"
    "  (nerfstudio_models/step-*.ckpt)."
)
log = logging.getLogger(__name__)


class NoModelError(ForeignFileError):
    """A folder with nothing in it that looks like a model."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What a model on disk is, without reading its Gaussians."""

    path: Path
    format: Format
    files: tuple[Path, ...]
    """The files that hold the Gaussians."""
    iteration: int | None
    """Training step, if the name contains it."""
    count: int
    sh_degree: int
    antialiased: bool
    background: tuple[float, float, float] | None
    """Colour behind the Gaussians in the trainer's own evaluation; None if not stored."""
    held_out: str | None
    """How the trainer held images out; None if not stored."""
    frame: Literal["data", "model", "unknown"]
    """"data" if `load_splats` can bring it to the capture's frame, "model" if the transform
    from the trainer's frame is not stored, "unknown" for a bare file."""
    split: Split = None
    """`held_out` as a rule: every n-th image by name was held out, or this fraction was used
    for training (nerfstudio), or the trainer saw every image ("none")."""
    extra: tuple[str, ...] = ()
    """Further columns."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Model:
    """One model, the same for all formats."""

    describe: Callable[[], ModelInfo]
    read: Callable[[bool], Splats]
    to_model: NDArray[np.float64] | None
    """From the capture's frame to the model's; None if it is not stored."""
    way_back: str = ""
    """What to do if `to_model` is None."""


def load_splats(
    path: str | Path,
    *,
    iteration: int | None = None,
    frame: Frame = "data",
    check: bool = True,
) -> Splats:
    """Splats from a file (PLY, SPZ, SOG, .splat, .glb), or from an Inria, gsplat or nerfstudio run.

    `iteration` chooses among the models of a folder; the last one is the default.
    `frame` is "data" for the coordinates of the capture, "model" for the trainer's own,
    or the 4x4 similarity from the first to the second (for gsplat, that of
    `gsplat_normalization`) to be undone. `check` refuses values no renderer can use.
    """
    model = _open(Path(path), iteration)
    if isinstance(frame, str) and frame not in ("data", "model"):
        raise FrameError(f"frame must be 'data', 'model' or a 4x4 matrix, got {frame!r}")
    to_model = model.to_model if isinstance(frame, str) else split_similarity(frame)[0]
    if isinstance(frame, str) and frame == "model":
        to_model = np.eye(4)
    if to_model is None:
        raise FrameError(f"{path}: {model.way_back}")
    splats = replace(model.read(check), origin=Path(path))
    if np.array_equal(to_model, np.eye(4)):
        return splats
    log.info("%s: transformed from the trainer's frame to the capture's", path)
    return transform_splats(splats, np.linalg.inv(to_model))


def describe_model(path: str | Path, *, iteration: int | None = None) -> ModelInfo:
    """Format, size and caveats of a model, from headers and settings alone."""
    return _open(Path(path), iteration).describe()


def _open(path: Path, iteration: int | None) -> _Model:
    inner = path.name == "point_cloud" and not inria_iterations(path)
    if (path.name in PARENT_FILES and path.is_file()) or (inner and inria_iterations(path.parent)):
        path = path.parent
    kind, place = _detect(path)
    if iteration is not None and place.is_file():
        raise ForeignFileError(
            f"{path}: an iteration selects one model of a folder, but this is a single file.\n"
            "  Omit the iteration, or pass the folder of the run."
        )
    if kind in OPENERS:
        return _open_file(kind, place, None)
    openers = {"inria": _open_inria, "gsplat": _open_gsplat, "nerfstudio": _open_nerfstudio}
    return openers[kind](place, iteration)


def _detect(path: Path) -> tuple[Format, Path]:
    """The format of a path, and the file or folder that holds the model."""
    if path.is_file():
        return _detect_file(path), path
    if not path.is_dir():
        raise ForeignFileError(f"{path}: no such file or folder.\n  {ACCEPTED}")
    found: list[tuple[Format, Path]] = []
    if inria_iterations(path):
        found.append(("inria", path))
    if any(gsplat_checkpoint.gsplat_steps(folder) for folder in (path / "ckpts", path)):
        found.append(("gsplat", path))
    if any(nerfstudio.nerfstudio_steps(folder) for folder in (path / "nerfstudio_models", path)):
        found.append(("nerfstudio", path))
    files = [] if found else model_files(path)
    if len(files) == 1:
        return _detect_file(files[0]), files[0]
    if len(found) == 1:
        return found[0]
    inside = ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"
    if not found and not files:
        raise NoModelError(f"{path}: no model found inside ({inside}).\n  {ACCEPTED}")
    models = [*found, *((file.suffix[1:], file) for file in files)]
    listed = ", ".join(f"{kind} ({place.name})" for kind, place in models[:6])
    raise ForeignFileError(f"{path}: several models inside: {listed}.\n  Pass one of them.")


def _detect_file(path: Path) -> Format:
    name = path.name.lower()
    known = recognise(path)
    if known is not None:
        return known
    if name.endswith(".ply"):
        return "ply"
    if gsplat_checkpoint.CHECKPOINT.fullmatch(path.name):
        return "gsplat"
    if nerfstudio.CHECKPOINT.fullmatch(path.name):
        return "nerfstudio"
    if name.endswith((".pt", ".pth", ".ckpt")):
        entries = load_checkpoint(path)
        if "splats" in entries:
            return "gsplat"
        if "pipeline" in entries:
            return "nerfstudio"
        inside = ", ".join(map(str, entries))[:200]
        raise ForeignFileError(f"{path}: a checkpoint of unknown kind ({inside}).\n  {ACCEPTED}")
    start = first_bytes(refuse_pointer(path)[:32])
    raise ForeignFileError(f"{path}: not a model; the file starts with {start}.\n  {ACCEPTED}")


def _open_file(kind: FileFormat, path: Path, iteration: int | None) -> _Model:
    model = open_model_file(kind, path)

    def describe() -> ModelInfo:
        return ModelInfo(
            path=path,
            format=kind,
            files=model.files,
            iteration=iteration,
            count=model.count,
            sh_degree=model.sh_degree,
            antialiased=model.antialiased,
            background=None,
            held_out=None,
            frame="unknown",
            extra=model.extra,
            notes=model.notes,
        )

    return _Model(describe, model.read, np.eye(4))


def _open_inria(folder: Path, iteration: int | None) -> _Model:
    run = open_inria(folder, iteration)
    refuse_pointer(run.ply)
    inner = _open_file("ply", run.ply, run.iteration)

    def describe() -> ModelInfo:
        kept = {True: f"every {HOLDOUT}th image by name", False: "none", None: None}
        rules: dict[bool | None, Split] = {True: HOLDOUT, False: "none", None: None}
        return replace(
            inner.describe(),
            path=folder,
            format="inria",
            background=run.background,
            held_out=kept[run.has_held_out],
            split=rules[run.has_held_out],
            frame="data",
            notes=run.notes,
        )

    return replace(inner, describe=describe)


def _open_gsplat(path: Path, iteration: int | None) -> _Model:
    run = open_gsplat(path, iteration)
    for file in run.files:
        refuse_pointer(file)

    def describe() -> ModelInfo:
        parts, entries = gsplat_parts(run)
        rest = parts[0]["shN"].shape[1]
        return ModelInfo(
            path=path,
            format="gsplat",
            files=run.files,
            iteration=run.step,
            count=sum(len(part["means"]) for part in parts),
            sh_degree=round((rest + 1) ** 0.5) - 1,
            antialiased=run.is_antialiased,
            background=(0.0, 0.0, 0.0),
            held_out=f"every {run.test_every}th image by name" if run.test_every else None,
            split=run.test_every,
            frame="data" if run.is_normalized is False else "model",
            extra=tuple(name for name in parts[0] if name not in gsplat_checkpoint.TENSORS),
            notes=run.notes(entries),
        )

    return _Model(
        describe,
        lambda check: read_gsplat(run, check=check),
        np.eye(4) if run.is_normalized is False else None,
        "gsplat normalises the world before training and does not store the transform.\n"
        "  Pass the capture as well (--data DATA): the transform is rebuilt from its poses and\n"
        "  points. In Python, gsplat_normalization rebuilds it, and load_splats takes it as frame.",
    )


def _open_nerfstudio(path: Path, iteration: int | None) -> _Model:
    run = open_nerfstudio(path, iteration)
    refuse_pointer(run.checkpoint)
    to_model = run.to_model

    def describe() -> ModelInfo:
        tensors = nerfstudio_tensors(run)
        return ModelInfo(
            path=path,
            format="nerfstudio",
            files=(run.checkpoint,),
            iteration=run.step,
            count=len(tensors["means"]),
            sh_degree=round((tensors["features_rest"].shape[1] + 1) ** 0.5) - 1,
            antialiased=run.is_antialiased,
            background=run.background,
            held_out=run.held_out,
            split=run.split,
            frame="model" if to_model is None else "data",
            notes=run.notes,
        )

    return _Model(
        describe,
        lambda check: read_nerfstudio(run, check=check),
        to_model,
        "no dataparser_transforms.json beside it, so the transform to the capture is unknown.\n"
        "  Copy that file from the training machine into the run's folder,\n"
        '  or keep the trainer\'s own coordinates: load_splats with frame "model", in Python.',
    )
