# SPDX-License-Identifier: Apache-2.0
"""`splatcert report`: a certificate as one page for people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import tyro

from splatcert.commands.options import OptionError
from splatcert.console import say, stages


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write one self-contained HTML file about a certificate: for a screen, a phone or paper.

    From the certificate alone it has the guarantee, numbers and charts; with the model also
    renders and their boxes; with the photos also what the boxes miss.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder that splatcert certify wrote."""
    model: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """The certified model, for renders and boxes."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """The capture, for misses and exact coverage; needs --model."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """The page; report.html in the certificate's folder unless told."""
    views: int = 7
    """Views in the strip from easiest to hardest."""
    photos: bool = False
    """Embed the photographs of these views; needs --data. Think of who will read it."""
    images: Annotated[str | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of photographs, such as images_4; unless told, the one that was certified."""
    threads: int = 0
    """Threads of the cpu renderer; 0 means all cores. Pixels do not depend on it."""

    def __post_init__(self) -> None:
        if self.data is not None and self.model is None:
            raise OptionError("--data needs --model: misses are counted on renders.")
        if self.photos and self.data is None:
            raise OptionError("--photos needs --data: there are no photographs without a capture.")
        if self.threads < 0:
            raise OptionError(f"--threads must be 0 or more, got {self.threads}.")

    def run(self) -> None:
        """Load what is given, write the page, say where it is."""
        from splatcert.certificate.report import ReportOptions, write_report
        from splatcert.certificate.store import folder_of, read_content
        from splatcert.commands.certified import load_certified_scene, load_certified_splats
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.raster import native

        native.set_threads(self.threads)
        folder = folder_of(self.certificate)
        options = ReportOptions(views=self.views, photos=self.photos, model_path=self.model)
        record, scene, splats = read_content(folder)[1], None, None
        if self.data is not None:
            scene = load_certified_scene(record, self.data, self.images)
        if self.model is not None:
            splats = load_certified_splats(record, self.model, scene)
        output = folder / "report.html" if self.output is None else self.output
        with stages() as tell, catch_warnings():
            simplefilter("ignore", CalibrationTooSmall)  # the page says so
            write_report(folder, output, scene, splats, options, report=tell)
        say("report", f"{output}, {output.stat().st_size / 2**20:.1f} MB")
        if self.model is None:
            say("without", "pictures; give --model for renders and --data for misses")
        elif self.data is None:
            say("without", "misses; give --data for them")
