# SPDX-License-Identifier: Apache-2.0
"""`splatcert suggest`: where to photograph next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands import CertificateOptions
from splatcert.console import say, stages
from splatcert.errors import OptionError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.suggest.rank import Suggestion

LARGEST = 100


@dataclass(frozen=True, kw_only=True)
class Suggest:
    """Rank the photographs that would help most, among poses within reach of the capture.

    A pose is worth the error bar it would show on surfaces that no photo shows from nearby.
    Each is ranked as if the ones before it had been taken.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder that splatcert certify wrote."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="DIR")] = None
    """Folder for cameras (cameras.json, COLMAP text), figures and a picture."""
    count: int = 12
    """How many."""
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = field(
        default_factory=CertificateOptions
    )
    json: bool = False
    """Print one JSON object instead of words."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST:
            raise OptionError(f"--count must be 1 to {LARGEST}, got {self.count}.")

    def run(self) -> None:
        """Rank, write, and say why."""
        from splatcert.deploy import open_certificate
        from splatcert.suggest.rank import suggest

        self.inputs.start()
        certificate = open_certificate(self.certificate, self.inputs.model, self.inputs.data)
        with stages() as report:
            found = suggest(certificate, self.count, report=report)
        if self.output is not None:
            self._write(certificate, found, output_folder(self.output))
        if self.json:
            print(json.dumps(facts(found), indent=2))
            return
        for place, one in enumerate(found, 1):
            say(f"{place}.", f"{one.move}: {one.why()}")
        if self.output is not None:
            say("cameras", f"{self.output}/cameras.json; as COLMAP text in {self.output}/sparse/0")
            say("picture", f"{self.output}/suggestions.png")
        else:
            say("next", "-o DIR writes the cameras and a picture of them")

    def _write(self, certificate: Certificate, found: Sequence[Suggestion], folder: Path) -> None:
        from splatcert.scene.readers.camera_files import write_cameras
        from splatcert.storage.png import save_png
        from splatcert.storage.whole import write_text_whole
        from splatcert.suggest.picture import picture

        drawn = picture(certificate, found)
        write_cameras(folder, {f"{one.name}.png": one.camera for one in found})
        write_text_whole(folder / "suggestions.json", json.dumps(facts(found), indent=1) + "\n")
        save_png(folder / "suggestions.png", drawn)


def facts(found: Sequence[Suggestion]) -> dict[str, Any]:
    """All suggestions for scripts."""
    from splatcert.camera import CameraRecord
    from splatcert.storage.schema import to_plain

    rows = []
    for one in found:
        known = {**vars(one), "camera": asdict(CameraRecord.of(one.camera)), "why": one.why()}
        rows.append(to_plain(known))
    return {"kind": "suggestions", "suggestions": rows}
