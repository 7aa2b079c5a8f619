# SPDX-License-Identifier: Apache-2.0
"""`splatcert inspect`: what is this, and what would be used of it?"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.console import say
from splatcert.errors import InputError

if TYPE_CHECKING:
    from splatcert.capture import Training
    from splatcert.certificate.certificate import Certificate
    from splatcert.raster.placement import PlacedModel
    from splatcert.scene.scene import Scene
    from splatcert.splats.files import ModelInfo

NO_CAPTURE = "  It is no capture: no cameras in sparse/0, transforms.json or transforms_train.json."
FRAMES = {
    "data": "the capture's own",
    "model": "the trainer's own; the way back to the capture is not stored",
    "unknown": "not stored; give --data CAPTURE to compare renders with its photos",
}

CERTIFICATE = "certificate.json"
REBUILT = ", and --data CAPTURE rebuilds it"


class InspectError(InputError):
    """Something that is neither a capture nor a model."""


@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Say what a capture, a model, a certificate or a predictor is, and what is used of it."""

    path: Annotated[Path, tyro.conf.Positional]
    """A capture (COLMAP, transforms.json, Blender), a model (PLY, folder, checkpoint), a
    certificate, a view predictor, or a file of cameras."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Capture the model was trained on: find its frame and render a few training views."""
    json: bool = False
    """Print one JSON object instead of words."""

    def run(self) -> None:
        """Look, reading neither pixels nor Gaussians unless a capture is given, and tell."""
        if not self.path.exists():
            raise InspectError(
                f"{self.path}: no such file or folder.\n"
                "  Give a capture's folder, a model's folder or file, or a certificate's folder."
            )
        if (self.path / CERTIFICATE).is_file() or self.path.name == CERTIFICATE:
            self._show_certificate()
            return
        if is_camera_list(self.path):
            self._show_cameras()
            return
        if is_predictor(self.path):
            self._show_predictor()
            return
        found = look(self.path)
        placed = self._placed(found)
        if self.json:
            print(json.dumps(facts(found, placed), indent=2, default=str))
        else:
            for label, text in words(found, placed).items():
                say(label, text)

    def _show_certificate(self) -> None:
        """A certificate; its model is not needed to read it."""
        from splatcert.certificate.store import load_certificate
        from splatcert.commands import certify

        if self.data is not None:
            raise InspectError(f"{self.path} is a certificate; --data goes with a model.")
        certificate = load_certificate(self.path)
        if self.json:
            print(json.dumps(certify.facts(certificate, self.path), indent=2))
            return
        for label, text in certificate_words(certificate).items():
            say(label, text)
        for label, text in model_place(self.path).items():
            say(label, text)

    def _show_cameras(self) -> None:
        """Cameras without photos, as a trainer or splatcert suggest writes them."""
        from splatcert.scene.readers.camera_files import read_camera_list

        if self.data is not None:
            raise InspectError(f"{self.path} is a list of cameras; --data goes with a model.")
        cameras = read_camera_list(self.path)
        sizes = Counter(f"{camera.width}x{camera.height}" for camera in cameras.values())
        if self.json:
            known = {"kind": "cameras", "path": str(self.path), "names": list(cameras)}
            print(json.dumps({**known, "sizes": dict(sizes)}, indent=2))
            return
        say("cameras", f"{len(cameras)}, from {next(iter(cameras))} to {list(cameras)[-1]}")
        say("size", _counted(dict(sizes), "pixels"))
        say("next", f"splatcert render CERT --cameras {self.path} -o DIR")

    def _show_predictor(self) -> None:
        """Where a predictor was learned, and how well it did there."""
        from splatcert.difficulty.predictor import load_predictor
        from splatcert.report.predictor_card import Card, read_card, show

        if self.data is not None:
            raise InspectError(f"{self.path} is a view predictor; --data goes with a model.")
        predictor = load_predictor(self.path)
        if self.json:
            known = {"kind": "predictor", "path": str(self.path), "sha256": predictor.sha256}
            print(json.dumps({**known, "card": predictor.card}, indent=2))
            return
        say("predictor", f"of how hard a view is, from {len(predictor.weights)} features")
        try:
            card = read_card(predictor.card)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            card = Card(facts={"card": "none to be read: nobody knows where it was learned"})
        show(predictor, card)
        say("next", f"splatcert certify DATA MODEL -o CERT --predictor {self.path}")

    def _placed(self, found: Scene | ModelInfo) -> PlacedModel | None:
        """The model among the photographs it was trained on, if they are given."""
        if self.data is None:
            return None
        from splatcert.raster.placement import load_for_scene
        from splatcert.scene.load import load_scene
        from splatcert.scene.scene import Scene

        if isinstance(found, Scene):
            raise InspectError(f"{self.path} is a capture; --data goes with a model.")
        return load_for_scene(self.path, load_scene(self.data))


def certificate_words(certificate: Certificate) -> dict[str, str]:
    """What a certificate is about, and what it says."""
    from splatcert.report.summary import words

    record = certificate.record
    constants = f"{record.renderer.name} {record.renderer.version}"
    return {
        "certificate": f"of {record.scene.name}, {record.created}, splatcert {record.splatcert}",
        "model": f"{record.model.gaussians:,} Gaussians, hash {record.model.splats[:12]}",
        "renderer": f"{constants}, at {_counted(record.scene.sizes, 'pixels')}",
        "views": f"{len(record.training)} training, {len(record.calibration)} calibration, "
        f"{len(record.unlabelled)} held out without a photo",
        **words(certificate),
        "seal": "unbroken; splatcert verify checks the rest",
    }


def model_place(path: Path) -> dict[str, str]:
    """Where a certificate's model is, and what can be done with both."""
    from splatcert.certificate.store import folder_of
    from splatcert.deploy import remembered

    folder = folder_of(path)
    place = remembered(folder, "model")
    if place is None:
        return {
            "model file": "not where it was, or not remembered: give --model MODEL to commands "
            "that render"
        }
    return {
        "model file": str(place),
        "next": f"splatcert render {path} -o DIR; splatcert suggest {path}; "
        f"splatcert export {path} -o DIR",
    }


def is_camera_list(path: Path) -> bool:
    """Whether a file is a JSON list, as cameras.json is; a capture's JSON is an object."""
    if not (path.is_file() and path.suffix == ".json"):
        return False
    with path.open("rb") as file:
        return file.read(256).lstrip().startswith(b"[")


def is_predictor(path: Path) -> bool:
    """Whether a file says it is a view predictor."""
    from splatcert.difficulty.predictor import FORMAT

    if not (path.is_file() and path.suffix == ".json"):
        return False
    with path.open("rb") as file:
        return f'"{FORMAT}"'.encode() in file.read(256)


def look(path: Path) -> Scene | ModelInfo:
    """The capture or the model that a path is."""
    from splatcert.capture import training_of
    from splatcert.scene.load import SceneError, load_scene, recognise
    from splatcert.splats.files import describe_model
    from splatcert.splats.formats.recognise import recognise as recognise_model

    if path.is_file() and path.suffix == ".json" and recognise_model(path) is not None:
        return describe_model(path)
    try:
        recognise(path)
    except SceneError:
        try:
            training_of(path)  # a run that is not finished says so, and how to go on
            return describe_model(path)
        except InputError as no_model:
            if path.is_file():
                raise
            raise InspectError(f"{no_model}\n{NO_CAPTURE}") from None
    return load_scene(path)


def facts(found: Scene | ModelInfo, placed: PlacedModel | None = None) -> dict[str, Any]:
    """Everything, for scripts."""
    from splatcert.scene.scene import Scene

    if not isinstance(found, Scene):
        known = {"kind": "model", **asdict(found)}
        return known if placed is None else {**known, "placed": placed.facts()}
    known = {key.replace(" ", "_").replace("-", "_"): v for key, v in found.describe().items()}
    return {"kind": "capture", **known}


def words(found: Scene | ModelInfo, placed: PlacedModel | None = None) -> dict[str, str]:
    """What matters, for people."""
    from splatcert.scene.scene import Scene

    told = _scene_words(found) if isinstance(found, Scene) else _model_words(found)
    if placed is not None:
        told["frame"] = placed.words()
    return {label: text for label, text in told.items() if text}


def _scene_words(scene: Scene) -> dict[str, str]:
    known: dict[str, Any] = scene.describe()
    points = known["points"]
    cloud = "none"
    if points is not None:
        error = points["mean reprojection error"]
        cloud = f"{points['count']:,}" + (f", reprojection error {error:.2f} px" if error else "")
    missing = known["held-out photos missing"]
    return {
        "capture": f"{scene.format}, read from {known['source']}",
        "views": f"{len(scene.training)} for training, {len(scene.held_out)} held out",
        "split": known["split"],
        "unused": f"{known['unused']} photos in neither part" if known["unused"] else "",
        "missing": f"{missing} held-out photos" if missing else "",
        "size": _counted(known["sizes"], "pixels"),
        "lens": _counted(known["lenses"], ""),
        "masks": f"on {known['masks']} photos" if known["masks"] else "",
        "background": _colour(known["background"]),
        "points": cloud,
        "extent": f"{scene.extent:.3g} in the capture's units",
        "frame": "the capture's own",
        "next": f"splatcert train {scene.path} -o RUN, or with a model of it splatcert certify "
        f"{scene.path} MODEL -o CERT",
    }


def _model_words(info: ModelInfo) -> dict[str, str]:
    from splatcert.capture import training_of

    training = training_of(info.path)
    if training.seen is not None and training.kept_out is not None:
        return {**_file_words(info), **_run_words(training)}
    return _file_words(info)


def _run_words(training: Training) -> dict[str, str]:
    """What the run folder of `splatcert train` adds to its file."""
    from splatcert.errors import listed

    seen, kept_out = training.seen or (), training.kept_out or ()
    return {
        "trained": f"by splatcert train on {len(seen)} photos, long side {training.long_side}",
        "frame": "the capture's own",
        "held out": f"{len(kept_out)} photos, {listed(kept_out)}" if kept_out else "none",
        "background": _colour(training.background),
        "note": "",
        "next": "splatcert certify DATA MODEL -o CERT" if kept_out else "",
    }


def _file_words(info: ModelInfo) -> dict[str, str]:
    size = sum(file.stat().st_size for file in info.files)
    step = f", iteration {info.iteration}" if info.iteration is not None else ""
    return {
        "model": f"{info.format}{step}, read from {', '.join(map(str, info.files))}",
        "gaussians": f"{info.count:,}, harmonics of degree {info.sh_degree}",
        "size": f"{size / 1e6:,.1f} MB",
        "mode": "antialiased" if info.antialiased else "classic, not antialiased",
        "frame": FRAMES[info.frame] + (REBUILT if _can_be_rebuilt(info) else ""),
        "held out": info.held_out or "not stored",
        "background": _colour(info.background),
        "columns": f"also {', '.join(info.extra)}" if info.extra else "",
        "note": ". ".join(info.notes),
    }


def _can_be_rebuilt(info: ModelInfo) -> bool:
    return info.format == "gsplat" and info.frame == "model"


def _counted(counts: dict[str, int], unit: str) -> str:
    """Kinds with how many views have each, the count left out where all are alike."""
    if len(counts) == 1:
        return f"{next(iter(counts))} {unit}".strip()
    return ", ".join(f"{kind} {unit}".strip() + f" ({n})" for kind, n in counts.items())


def _colour(colour: tuple[float, float, float] | None) -> str:
    return "" if colour is None else "red {:g}, green {:g}, blue {:g}".format(*colour)
