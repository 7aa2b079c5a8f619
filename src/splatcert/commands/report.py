# SPDX-License-Identifier: Apache-2.0
"""`splatcert report`: a certificate as one page for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import field as setting
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands import CertificateOptions
from splatcert.config import ReportConfig
from splatcert.console import Report as Tell
from splatcert.console import say, stages
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.report.content import NextPhoto
    from splatcert.splats.gaussians import Splats

LARGEST = 20


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write one self-contained HTML file about a certificate: for a screen, a phone or paper.

    From the certificate alone it has the guarantee, numbers and charts; with the model also
    renders and their boxes; with the photos also what the boxes miss. Both are taken from where
    they were when it was made, unless told otherwise.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder that splatcert certify wrote."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """The page; report.html in the certificate's folder unless told."""
    alone: bool = False
    """From the certificate alone, wherever its model and capture are."""
    suggest: int = 0
    """Photographs to take next, searched for as splatcert suggest does; takes a while. Unless
    told, the report names the calibration views that needed the widest boxes."""
    show: tyro.conf.OmitArgPrefixes[ReportConfig] = setting(default_factory=ReportConfig)
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = setting(
        default_factory=CertificateOptions
    )
    images: Annotated[str | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of photographs, such as images_4; unless told, the one that was certified."""
    json: bool = False
    """Print one JSON object instead of words."""

    def __post_init__(self) -> None:
        if not 0 <= self.suggest <= LARGEST:
            raise OptionError(f"--suggest must be 0 to {LARGEST}, got {self.suggest}.")

    def run(self) -> None:
        """Load what is there, write the page, say where it is."""
        from splatcert.certificate.store import folder_of, read_content
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.deploy import load_certified_scene, load_certified_splats
        from splatcert.report.build import write_report

        self.inputs.start()
        folder = folder_of(self.certificate)
        model, data = self._places(folder)
        record, scene, splats = read_content(folder)[1], None, None
        if data is not None:
            scene = load_certified_scene(record, data, self.images)
        if model is not None:
            splats = load_certified_splats(record, model, scene)
        output = folder / "report.html" if self.output is None else self.output
        with stages() as tell, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # the page says so
            write_report(
                folder,
                output,
                scene,
                splats,
                self.show,
                model_path=model,
                suggestions=self._suggestions(folder, splats, tell),
                report=tell,
            )
        size = output.stat().st_size
        if self.json:
            print(json.dumps({"kind": "report", "path": str(output), "bytes": size}, indent=2))
            return
        say("report", f"{output}, {size / 2**20:.1f} MB")
        if model is None:
            say("without", "pictures; give --model for renders and --data for misses")
        elif data is None:
            say("without", "misses; give --data for them")

    def _places(self, folder: Path) -> tuple[Path | None, Path | None]:
        """Where model and capture are; a capture is of no use without its model."""
        from splatcert.deploy import remembered

        if self.alone:
            return None, None
        model = self.inputs.model or remembered(folder, "model")
        data = self.inputs.data or remembered(folder, "data")
        if model is None and self.inputs.data is not None:
            raise OptionError("--data needs --model: misses are counted on renders.")
        if self.show.photos and (model is None or data is None):
            raise OptionError("--photos needs --data and --model: the capture is not known.")
        if self.suggest and model is None:
            raise OptionError("--suggest needs --model: poses are searched for by rendering.")
        return model, data if model is not None else None

    def _suggestions(
        self, folder: Path, splats: Splats | None, tell: Tell
    ) -> list[NextPhoto] | None:
        """Poses worth a photograph, if they were asked for."""
        if not self.suggest:
            return None
        from splatcert.certificate.store import load_certificate
        from splatcert.report.content import NextPhoto
        from splatcert.suggest.rank import suggest

        found = suggest(load_certificate(folder, splats), self.suggest, report=tell)
        return [
            NextPhoto(one.move, one.why(), one.half_width, tuple(one.camera.centre.tolist()))
            for one in found
        ]
