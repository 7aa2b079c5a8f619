# SPDX-License-Identifier: Apache-2.0
"""`splatcert suggest`: where to photograph next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands import CertificateOptions, unset
from splatcert.console import say, show_table, stages
from splatcert.errors import OptionError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate
    from splatcert.suggest.rank import Suggestion

LARGEST = 100


@dataclass(frozen=True, kw_only=True)
class Suggest:
    """Suggest where to take more photographs, ranked by how much they would help.

    Candidate poses are within reach of the training cameras. A pose ranks high if it shows wide
    boxes on surfaces that no photo shows from nearby. Each pose is ranked as if the earlier ones
    had been photographed.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    output: Annotated[Path | None, unset("DIR", "-o")] = None
    """Folder for cameras (cameras.json, COLMAP text), table and map. Default: print the table."""
    count: int = 12
    """Number of photographs to suggest."""
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = field(
        default_factory=CertificateOptions
    )
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST:
            raise OptionError(f"--count must be 1 to {LARGEST}, got {self.count}.")

    def run(self) -> None:
        """Rank poses, write them, and print the table."""
        from splatcert.deploy import open_certificate
        from splatcert.suggest.rank import COLUMNS, suggest

        self.inputs.start()
        certificate = open_certificate(
            self.certificate, self.inputs.model, self.inputs.data, self.inputs.member
        )
        with stages() as on:
            found = suggest(certificate, self.count, on=on)
        if self.output is not None:
            self._write(certificate, found, output_folder(self.output))
        if self.json:
            print(json.dumps(facts(found), indent=2))
            return
        rows = [(str(rank), *one.cells()) for rank, one in enumerate(found, 1)]
        show_table(("rank", *COLUMNS), rows, numbers=("rank", *COLUMNS[2:]))
        say(
            "Half-width",
            f"colours from 0 to 1; the median calibration view has {found[0].usual:.3f}",
        )
        if self.output is not None:
            say("Cameras", f"{self.output}/cameras.json; as COLMAP text in {self.output}/sparse/0")
            say("Map", f"{self.output}/suggestions.png")
        else:
            say("Next", f"splatcert suggest {self.certificate} -o DIR writes cameras and a map")

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
    """The same for scripts."""
    from splatcert.storage.schema import to_plain

    rows = []
    for one in found:
        known = {**vars(one), "why": one.why()}
        rows.append(to_plain(known))
    return {"kind": "suggestions", "suggestions": rows}
