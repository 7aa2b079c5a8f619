# SPDX-License-Identifier: Apache-2.0
"""What to render from where: a certificate or a model, and the chosen cameras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from splatcert.certificate.certificate import Certificate
from splatcert.certificate.family import is_family
from splatcert.certificate.store import is_certificate
from splatcert.deploy import open_certificate
from splatcert.errors import OptionError
from splatcert.frames.choose_cameras import FILM_FPS, Choice, Pool, choose, is_named, resized
from splatcert.frames.ledger import Row
from splatcert.frames.writer import CertifiedFrames, FrameWriter, ModelFrames, require_exr
from splatcert.raster.placement import chosen_background, load_for_scene
from splatcert.raster.render import Backend
from splatcert.report.colours import WidthScale
from splatcert.report.words.promise import path_guarantee, promise_lines
from splatcert.scene.load import read_photographs
from splatcert.scene.scene import Scene
from splatcert.splats.account import TrainingAccount, account_of
from splatcert.splats.files import load_splats
from splatcert.strangeness.comparison import CameraComparison


@dataclass(frozen=True, kw_only=True)
class FrameRequest:
    """The options of `splatcert render` that decide what is in the frames."""

    path: Path
    cameras: str
    model: Path | None
    data: Path | None
    member: str | None
    """Member of a family."""
    resolution: str | None
    seconds: float | None
    fps: int | None
    maps: Literal["auto", "npz", "exr", "none"]
    background: tuple[float, float, float] | None
    backend: Backend | None
    """None for the certified one, or cpu for a model."""


@dataclass(frozen=True, eq=False)
class Job:
    """Cameras to render, and how."""

    writer: FrameWriter
    choice: Choice
    words: dict[str, str]
    """What is rendered, in labelled lines."""
    scale: WidthScale | None
    """Colours of the half-width; None for a plain model."""
    certificate: Certificate | None = None
    """The certificate whose boxes are drawn; None for a plain model."""
    engine: str | None = None
    """The back end of a certificate, in words; None for a plain model."""

    @property
    def false_alarms(self) -> Fraction | None:
        """The flag's rate of false alarms, where it is known."""
        limit = None if self.certificate is None else self.certificate.record.strangeness
        return None if limit is None else limit.rate

    def comparison(self, rows: Sequence[Row]) -> CameraComparison | None:
        """Whether the cameras of finished frames differ from the calibration views."""
        if self.certificate is None:
            return None
        cameras = [self.choice.cameras[row["name"]] for row in rows]
        return self.certificate.compare(cameras, [row["descriptor"] for row in rows])


def frame_job(asked: FrameRequest) -> Job:
    """Frames with boxes of a certificate, or plain frames of a model."""
    certified = is_certificate(asked.path) or is_family(asked.path)
    return _certified_job(asked) if certified else _model_job(asked)


def _certified_job(asked: FrameRequest) -> Job:
    if asked.background is not None:
        raise OptionError("a certificate fixes its background; --background is for a model.")
    if asked.maps == "exr":
        require_exr()
    certificate = open_certificate(asked.path, asked.model, asked.data, asked.member, asked.backend)
    record, other = certificate.record, certificate.other
    pool = Pool.of(record)
    chosen = choose(asked.cameras, pool, fps=asked.fps or FILM_FPS, seconds=asked.seconds)
    cameras = resized(chosen.cameras, asked.resolution or pool.longest_side)
    scale, maps = WidthScale.of(certificate), asked.maps
    if maps == "auto":
        maps = "none" if chosen.is_path else "npz"
    words = {
        "Certificate": f"{record.scene.name}, {record.model.gaussians:,} Gaussians",
        **(path_guarantee(certificate) if chosen.is_path else promise_lines(certificate)),
    }
    writer = CertifiedFrames(certificate=certificate, scale=scale, maps=maps)
    engine = record.renderer.backend if other is None else other.words(record.renderer.backend)
    return Job(writer, replace(chosen, cameras=cameras), words, scale, certificate, engine)


def _model_job(asked: FrameRequest) -> Job:
    extra = asked.model is not None or asked.member is not None
    if extra or asked.maps not in ("auto", "none"):
        raise OptionError(
            f"{asked.path} is a model; --model, --member and --maps go with a certificate.\n"
            "  splatcert certify makes one."
        )
    account, scene, pool = account_of(asked.path), None, None
    if asked.data is not None:
        scene = _scene_of(asked.data, asked.resolution, account)
        held_out = {view.name: view.camera for view in scene.held_out}
        pool = Pool({view.name: view.camera for view in scene.training}, held_out)
    chosen = choose(asked.cameras, pool, fps=asked.fps or FILM_FPS, seconds=asked.seconds)
    if not is_named(asked.cameras):
        chosen = replace(chosen, cameras=resized(chosen.cameras, asked.resolution))
    backend: Backend = asked.backend or "cpu"
    why, background = chosen_background(asked.background, account.background, asked.path, scene)
    if scene is None:
        splats, frame = load_splats(asked.path), "as stored"
    else:
        placed = load_for_scene(asked.path, scene, background=background, backend=backend)
        splats, frame = placed.splats, placed.words()
    words = {
        "Model": f"{asked.path}, {len(splats):,} Gaussians",
        "Frame": frame,
        "Background": " ".join(f"{c:g}" for c in background) + f", {why}",
    }
    return Job(ModelFrames(splats, background, backend), chosen, words, None)


def _scene_of(data: Path, resolution: str | None, account: TrainingAccount) -> Scene:
    """The capture as the model was trained on it: its photos, their size and its split."""
    photographs = read_photographs(
        data,
        resolution=resolution or account.long_side,
        sparse=account.sparse,
        skip_missing=account.skip_missing,
    )
    names, added = photographs.names, photographs.dataset.added
    rule = None if added else account.rule(names, own_split=photographs.own_split)
    if rule is None or (isinstance(rule, tuple) and not {*rule} <= {*names}):
        rule = "auto"  # photos registered afterwards, a model of every photo, or of another capture
    return photographs.scene(rule)
