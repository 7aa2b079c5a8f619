# SPDX-License-Identifier: Apache-2.0
"""`splatcert inspect`: recognise what a path is, and describe it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands import CaptureOptions, CaptureToTrain, unset
from splatcert.console import say, say_all
from splatcert.errors import InputError

if TYPE_CHECKING:
    from splatcert.raster.placement import Placement
    from splatcert.scene.scene import Scene
    from splatcert.splats.files import ModelInfo

NO_CAPTURE = (
    "  It is not a capture: no cameras in sparse/0, transforms.json or transforms_train.json."
)
CERTIFICATE = "certificate.json"
HEAD = 256
"""Bytes of a JSON file that tell what it is."""


class InspectError(InputError):
    """A path that is nothing splatcert knows, or an option that does not fit it."""


@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Describe a capture, model, certificate or predictor."""

    path: Annotated[Path, tyro.conf.Positional]
    """Capture, model, certificate, view predictor, guide or cameras.json."""
    data: Annotated[Path | None, unset("PATH")] = None
    """Capture of the model, to find its coordinate frame by rendering a few training views."""
    capture: tyro.conf.OmitArgPrefixes[CaptureToTrain] = field(default_factory=CaptureToTrain)
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        """Recognise the path and print what is known about it."""
        if not self.path.exists():
            raise InspectError(
                f"{self.path}: no such file or folder.\n"
                "  Pass the folder of a capture or certificate, or the folder or file of a model."
            )
        from splatcert.certificate.family import is_family

        if (self.path / CERTIFICATE).is_file() or self.path.name == CERTIFICATE:
            self._show_certificate()
        elif is_family(self.path):
            self._show_family()
        elif is_camera_list(self.path):
            self._show_cameras()
        elif is_predictor(self.path):
            self._show_predictor()
        elif is_guide(self.path):
            self._show_guide()
        else:
            self._show_capture_or_model()

    def _show_capture_or_model(self) -> None:
        """Read neither pixels nor Gaussians, unless --data asks for renders."""
        from splatcert.report.words.describe import capture_lines, model_lines
        from splatcert.scene.scene import Scene

        found = recognised(self.path, self.capture)
        if isinstance(found, Scene):
            self._refuse_data("capture")
        elif self.data is None:
            self._refuse_capture_options("model")
        placed = self._placed()
        if self.json:
            print(json.dumps(facts(found, placed), indent=2, default=str))
        elif isinstance(found, Scene):
            say_all(capture_lines(found))
        else:
            say_all(model_lines(found, placed))

    def _show_certificate(self) -> None:
        """Describe a certificate; this does not require its model."""
        from splatcert.commands.certificates.certify import facts
        from splatcert.deploy import load_certificate
        from splatcert.report.words.describe import certificate_lines

        self._refuse_both("certificate")
        certificate = load_certificate(self.path)
        if self.json:
            print(json.dumps(facts(certificate, self.path), indent=2))
        else:
            say_all(certificate_lines(certificate, self.path))

    def _show_family(self) -> None:
        """Describe a family: its promise and all members with their widths."""
        from splatcert.certificate.family import read_family
        from splatcert.commands.certificates.family import family_facts, show_family

        self._refuse_data("family of certificates")
        family = read_family(self.path)
        if self.json:
            print(json.dumps(family_facts(family, self.path), indent=2))
            return
        show_family(family, self.path)
        say("Next", f"splatcert report {self.path} --member {next(iter(family))}")

    def _show_cameras(self) -> None:
        """Describe cameras without photos, as a trainer or `splatcert suggest` writes them."""
        from splatcert.report.words.describe import counted
        from splatcert.scene.readers.camera_files import read_camera_list

        self._refuse_both("list of cameras")
        cameras = read_camera_list(self.path)
        sizes = Counter(f"{camera.width}x{camera.height}" for camera in cameras.values())
        if self.json:
            known = {"kind": "cameras", "path": str(self.path), "names": list(cameras)}
            print(json.dumps({**known, "sizes": dict(sizes)}, indent=2))
            return
        say("Cameras", f"{len(cameras)}, from {next(iter(cameras))} to {list(cameras)[-1]}")
        say("Size", counted(sizes, "pixels"))
        say("Next", f"splatcert render CERT --cameras {self.path} -o DIR")

    def _show_predictor(self) -> None:
        """Show where a predictor was trained, and how well it did there."""
        from splatcert.difficulty.predictor import load_predictor
        from splatcert.report.words.describe import show_predictor

        self._refuse_both("view predictor")
        predictor = load_predictor(self.path)
        if self.json:
            known = {"kind": "predictor", "path": str(self.path), "sha256": predictor.sha256}
            print(json.dumps({**known, "card": predictor.card}, indent=2))
            return
        say("Predictor", f"view difficulty from {len(predictor.weights)} features")
        show_predictor(predictor)
        say("Next", f"splatcert certify DATA MODEL -o CERT --predictor {self.path}")

    def _show_guide(self) -> None:
        """Show what the guided scale learned, and from how many captures."""
        from splatcert.difficulty.guided.guide import load_guide

        self._refuse_both("guide")
        guide = load_guide(self.path)
        if self.json:
            known = {"kind": "guide", "path": str(self.path), "sha256": guide.sha256}
            print(json.dumps({**known, "card": guide.card}, indent=2))
            return
        learned = f"learned at beta = {guide.beta}"
        say("Guide", f"weights of the guided scale for {len(guide.weights)} maps, {learned}")
        say("SHA-256", guide.sha256)
        say("Next", f"splatcert certify DATA MODEL -o CERT --scale guided --guide {self.path}")

    def _refuse_both(self, kind: str) -> None:
        self._refuse_capture_options(kind)
        self._refuse_data(kind)

    def _refuse_capture_options(self, kind: str) -> None:
        if given := self.capture.given:
            raise InspectError(f"{self.path} is a {kind}; {given[0]} goes with a capture.")

    def _refuse_data(self, kind: str) -> None:
        if self.data is not None:
            raise InspectError(f"{self.path} is a {kind}; --data goes with a model.")

    def _placed(self) -> Placement | None:
        """The model in the frame of its capture, if that is given."""
        if self.data is None:
            return None
        from splatcert.raster.placement import load_for_scene

        return load_for_scene(self.path, self.capture.load(self.data))


def is_camera_list(path: Path) -> bool:
    """Whether a file is a JSON list, as cameras.json is; a capture's JSON is an object."""
    return _json_head(path).lstrip().startswith(b"[")


def is_predictor(path: Path) -> bool:
    """Whether a file declares itself a view predictor."""
    from splatcert.difficulty.predictor import FORMAT

    return f'"{FORMAT}"'.encode() in _json_head(path)


def is_guide(path: Path) -> bool:
    """Whether a file declares itself a guide, the weights of the guided scale."""
    from splatcert.difficulty.guided.guide import FORMAT

    return f'"{FORMAT}"'.encode() in _json_head(path)


def _json_head(path: Path) -> bytes:
    """The first bytes of a JSON file; nothing of any other path."""
    if not (path.is_file() and path.suffix == ".json"):
        return b""
    with path.open("rb") as file:
        return file.read(HEAD)


def recognised(path: Path, capture: CaptureOptions) -> Scene | ModelInfo:
    """The capture, read with these options, or model at a path."""
    from splatcert.scene.recognise import SceneError, recognise
    from splatcert.splats.account import account_of
    from splatcert.splats.files import NoModelError, describe_model
    from splatcert.splats.formats.recognise import recognise as recognise_model
    from splatcert.storage.ply_table import PlyError

    if path.is_file() and path.suffix == ".json" and recognise_model(path) is not None:
        return describe_model(path)
    try:
        recognise(path, sparse=capture.sparse)
    except SceneError:
        try:
            account_of(path)  # an unfinished run says so, and how to resume it
            return describe_model(path)
        except (NoModelError, PlyError) as no_model:
            if path.is_file():
                raise
            raise InspectError(f"{no_model}\n{NO_CAPTURE}") from None
    return capture.load(path)


def facts(found: Scene | ModelInfo, placed: Placement | None = None) -> dict[str, Any]:
    """The same for scripts."""
    from splatcert.scene.scene import Scene

    if not isinstance(found, Scene):
        known = {"kind": "model", **asdict(found)}
        return known if placed is None else {**known, "placed": placed.facts()}
    known = {key.replace(" ", "_").replace("-", "_"): v for key, v in found.describe().items()}
    check = found.holdout_check
    return {"kind": "capture", **known, "holdout_check": None if check is None else check.facts()}
