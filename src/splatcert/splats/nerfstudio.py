# SPDX-License-Identifier: Apache-2.0
"""Runs of nerfstudio's splatfacto: `nerfstudio_models/step-*.ckpt` and the files beside it.

The trainer works in a frame of its own and saves the transform to it in
`dataparser_transforms.json`; the original frame is COLMAP's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splatcert.splats.gaussians import Splats
from splatcert.splats.harmonics import rgb_to_constant
from splatcert.splats.transform import FrameError, split_similarity
from splatcert.splats.untrusted import (
    MAX_TEXT_BYTES,
    ForeignFileError,
    check_stored,
    load_checkpoint,
    load_config,
    setting,
)
from splatcert.storage.schema import read_json

CHECKPOINT = re.compile(r"step-(\d{1,12})\.ckpt")
TENSORS = ("means", "scales", "quats", "features_dc", "features_rest", "opacities")
COLOURS = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}
RANDOM_BACKGROUND = (0.1490, 0.1647, 0.2157)
"""What splatfacto shows behind a model that was trained on random backgrounds."""


@dataclass(frozen=True)
class NerfstudioRun:
    """One checkpoint and what config.yml says about the run."""

    checkpoint: Path
    step: int | None
    config: dict[str, Any]
    """Plain values of config.yml; empty if it is missing."""

    @property
    def folder(self) -> Path:
        """The run, which holds config.yml."""
        parent = self.checkpoint.parent
        return parent.parent if parent.name == "nerfstudio_models" else parent

    @property
    def is_antialiased(self) -> bool:
        """Trained with opacity compensation."""
        return setting(self.config, "pipeline", "model", "rasterize_mode") == "antialiased"

    @property
    def background(self) -> tuple[float, float, float] | None:
        """Colour behind the Gaussians in evaluation."""
        name = setting(self.config, "pipeline", "model", "background_color")
        return RANDOM_BACKGROUND if name == "random" else COLOURS.get(str(name))

    @property
    def held_out(self) -> str | None:
        """How evaluation images were chosen, in nerfstudio's words."""
        mode, interval, fraction = self._evaluation
        if mode == "interval":
            return f"interval {interval}"
        if mode == "fraction" or (mode is None and fraction is not None):
            return f"fraction, {fraction} for training"
        return None if mode is None else str(mode)

    @property
    def split(self) -> int | float | Literal["none"] | None:
        """Every n-th image was held out, or this fraction was for training, or none was."""
        mode, interval, fraction = self._evaluation
        if mode == "interval" and isinstance(interval, int) and interval > 1:
            return interval
        if mode in ("fraction", None) and isinstance(fraction, float) and 0 < fraction < 1:
            return fraction
        return "none" if mode == "all" else None

    @property
    def _evaluation(self) -> tuple[object, object, object]:
        parser = setting(self.config, "pipeline", "datamanager", "dataparser") or {}
        keys = ("eval_mode", "eval_interval", "train_split_fraction")
        mode, interval, fraction = (setting(parser, key) for key in keys)
        return mode, interval, fraction

    @property
    def to_model(self) -> NDArray[np.float64] | None:
        """Similarity from the original frame to the model's, 4x4; None if not stored."""
        path = self.folder / "dataparser_transforms.json"
        return read_dataparser_transform(path) if path.is_file() else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know before trusting renders of this model."""
        model = setting(self.config, "pipeline", "model") or {}
        notes = []
        if not self.config:
            notes.append("no config.yml: antialiasing and background are unknown")
        if setting(model, "background_color") == "random":
            notes.append("trained on random backgrounds")
        if setting(model, "use_bilateral_grid") is True:
            notes.append("renders are without the bilateral grids of training")
        if setting(model, "camera_optimizer", "mode") not in (None, "off"):
            notes.append("training moved the training cameras; poses here are as captured")
        if self.held_out == "all":
            notes.append("eval_mode all: every image was a training image")
        return tuple(notes)


def open_nerfstudio(path: Path, step: int | None = None) -> NerfstudioRun:
    """The newest checkpoint of a run folder or its nerfstudio_models, or one checkpoint."""
    if path.is_file():
        match = CHECKPOINT.fullmatch(path.name)
        run = NerfstudioRun(path, int(match[1]) if match else None, {})
    else:
        inner = path / "nerfstudio_models"
        folder = inner if inner.is_dir() else path
        found = nerfstudio_steps(folder)
        if not found:
            raise ForeignFileError(f"{path}: no step-*.ckpt inside")
        chosen = max(found) if step is None else step
        if chosen not in found:
            listed = ", ".join(str(n) for n in sorted(found))
            raise ForeignFileError(f"{folder}: no checkpoint of step {chosen}; it has {listed}")
        run = NerfstudioRun(found[chosen], chosen, {})
    config = run.folder / "config.yml"
    return NerfstudioRun(run.checkpoint, run.step, load_config(config) if config.is_file() else {})


def nerfstudio_steps(folder: Path) -> dict[int, Path]:
    """Checkpoint files of a folder by step."""
    matches = ((CHECKPOINT.fullmatch(path.name), path) for path in folder.glob("step-*.ckpt"))
    return {int(match[1]): path for match, path in matches if match}


def read_dataparser_transform(path: Path) -> NDArray[np.float64]:
    """x_model = scale * (transform @ [x, 1]) as one 4x4 matrix."""
    content = read_json(
        path, "transform file", MAX_TEXT_BYTES, allow_nan=True, raises=ForeignFileError
    )
    try:
        transform = np.array(content["transform"], dtype=np.float64).reshape(3, 4)
        scale = float(content["scale"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ForeignFileError(f"{path}: expected 'transform' (3x4) and 'scale'") from None
    matrix = np.vstack([scale * transform, [0.0, 0.0, 0.0, 1.0]])
    try:
        return split_similarity(matrix)[0]
    except FrameError as error:
        raise FrameError(
            f"{path} does not define a frame: {str(error).splitlines()[0]}\n"
            "  Copy the file from the training machine again."
        ) from None


def read_nerfstudio(run: NerfstudioRun, *, check: bool = True) -> Splats:
    """The Gaussians in the trainer's frame; the inverse of `run.to_model` leads to the original."""
    raw = nerfstudio_tensors(run)
    count = len(raw["means"])
    constant = raw["features_dc"].float().reshape(count, 1, 3)
    rest = raw["features_rest"].float()
    if rest.shape[1] == 0:
        # Without harmonics splatfacto learns the logit of a plain colour.
        constant = rgb_to_constant(constant.sigmoid())
    splats = Splats(
        means=raw["means"].float().clone(),
        quats=raw["quats"].float().clone(),
        log_scales=raw["scales"].float().clone(),
        logit_opacities=raw["opacities"].float().reshape(count).clone(),
        sh=torch.cat([constant, rest], dim=1),
        antialiased=run.is_antialiased,
    )
    if check:
        splats.check_finite()
    return splats


def nerfstudio_tensors(run: NerfstudioRun) -> dict[str, Tensor]:
    """Splatfacto's tensors by their short names, mapped from the file, with shapes checked."""
    path = run.checkpoint
    pipeline = load_checkpoint(path).get("pipeline")
    if not isinstance(pipeline, dict):
        raise ForeignFileError(f"{path}: no entry 'pipeline'; this is not a nerfstudio checkpoint")
    found: dict[str, Tensor] = {}
    for key, value in pipeline.items():
        # Releases before 1.0 lack "gauss_params."; distributed runs add "module.".
        match = re.fullmatch(
            r"(?:module\.)?_model\.(?:module\.)?(?:gauss_params\.)?(\w+)", str(key)
        )
        if match and match[1] in TENSORS and isinstance(value, Tensor):
            check_stored(path, match[1], value)
            found.setdefault(match[1], value.detach())
    missing = [name for name in TENSORS if name not in found]
    if missing:
        models = sorted({str(key).split(".")[1] for key in pipeline if "." in str(key)})
        raise ForeignFileError(
            f"{path}: not a splatfacto model, because it lacks {', '.join(missing)}.\n"
            f"  Found under _model: {', '.join(models)[:200]}.\n"
            "  Models with appearance networks (splatfacto-w) have no colours of their own."
        )
    count = len(found["means"]) if found["means"].ndim else -1
    rest = found["features_rest"]
    expected = {
        "means": (count, 3),
        "scales": (count, 3),
        "quats": (count, 4),
        "features_rest": (count, rest.shape[1] if rest.ndim == 3 else 0, 3),
    }
    for name, shape in expected.items():
        if tuple(found[name].shape) != shape:
            raise ForeignFileError(
                f"{path}: {name} has shape {list(found[name].shape)}, expected {list(shape)}"
            )
    for name, width in (("features_dc", 3), ("opacities", 1)):
        if found[name].numel() != width * count:
            raise ForeignFileError(f"{path}: {name} does not fit {count} Gaussians")
    return found
