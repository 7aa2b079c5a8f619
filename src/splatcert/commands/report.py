# SPDX-License-Identifier: Apache-2.0
"""`splatcert report`: a certificate as one HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import field as setting
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands import CertificateOptions, unset
from splatcert.config import ReportConfig
from splatcert.console import say, stages
from splatcert.errors import OptionError
from splatcert.progress import Progress

if TYPE_CHECKING:
    from splatcert.report.content import NextPhotos
    from splatcert.scene.scene import Scene
    from splatcert.splats.gaussians import Splats

LARGEST = 20


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write a certificate as one self-contained HTML page, for screen, phone or print.

    The certificate alone gives the guarantee, numbers and charts; the model adds renders and
    boxes; the capture adds pixels outside their boxes. Model and capture are read from where
    they were certified, unless --model or --data say otherwise.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    output: Annotated[Path | None, unset("FILE", "-o")] = None
    """File to write. Default: report.html in the certificate's folder."""
    alone: bool = False
    """Use the certificate alone, without its model and capture."""
    suggest: int = 0
    """Number of photographs to suggest (slow); 0 lists the hardest calibration views instead."""
    show: tyro.conf.OmitArgPrefixes[ReportConfig] = setting(default_factory=ReportConfig)
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = setting(
        default_factory=CertificateOptions
    )
    images: Annotated[str | None, unset("FOLDER")] = None
    """Folder of photographs, such as images_4. Default: the certified one."""
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if not 0 <= self.suggest <= LARGEST:
            raise OptionError(f"--suggest must be 0 to {LARGEST}, got {self.suggest}.")

    def run(self) -> None:
        """Load what is available and write the page."""
        from splatcert.certificate.family import member_folder
        from splatcert.certificate.store import folder_of, read_content
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.deploy import load_certified_scene, load_certified_splats
        from splatcert.report.build import write_report

        self.inputs.start()
        folder = folder_of(member_folder(self.certificate, self.inputs.member))
        model, data = self._places(folder)
        record, scene, splats = read_content(folder)[1], None, None
        if data is not None:
            scene = load_certified_scene(record, data, self.images)
        if model is not None:
            splats = load_certified_splats(record, model, scene)
        output = folder / "report.html" if self.output is None else self.output
        with stages() as on, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # the page says so
            write_report(
                folder,
                output,
                scene,
                splats,
                self.show,
                model_path=model,
                suggestions=self._suggestions(folder, splats, scene, on),
                on=on,
            )
        size = output.stat().st_size
        if self.json:
            print(json.dumps({"kind": "report", "path": str(output), "bytes": size}, indent=2))
            return
        say("Report", f"{output}, {size / 2**20:.1f} MB")
        if model is None:
            say("Left out", "pictures: pass --model to add renders, and --data to add misses")
        elif data is None:
            say("Left out", "misses: pass --data to add them")

    def _places(self, folder: Path) -> tuple[Path | None, Path | None]:
        """Paths of model and capture; a capture is not used without its model."""
        from splatcert.certificate.store import remembered

        if self.alone:
            return None, None
        model = self.inputs.model or remembered(folder, "model")
        data = self.inputs.data or remembered(folder, "data")
        if model is None and self.inputs.data is not None:
            raise OptionError("--data requires --model: misses are counted on renders.")
        if self.show.photos and (model is None or data is None):
            raise OptionError(
                "--photos requires --data and --model: the capture's path is unknown."
            )
        if self.suggest and model is None:
            raise OptionError("--suggest requires --model: poses are found by rendering.")
        return model, data if model is not None else None

    def _suggestions(
        self, folder: Path, splats: Splats | None, scene: Scene | None, on: Progress
    ) -> NextPhotos | None:
        """Poses worth a photograph, if requested."""
        if not self.suggest:
            return None
        from splatcert.deploy import load_certificate
        from splatcert.report.content import NextPhoto, NextPhotos
        from splatcert.suggest.rank import COLUMNS, suggest

        photos = []
        certificate = load_certificate(folder, splats, scene=scene)
        for one in suggest(certificate, self.suggest, on=on):
            x, y, z = one.camera.centre.tolist()
            photos.append(NextPhoto(one.cells(), (x, y, z)))
        return NextPhotos(COLUMNS, tuple(photos))
