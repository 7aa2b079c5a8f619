# SPDX-License-Identifier: Apache-2.0
"""`splatcert report`: a certificate as one HTML page."""

from __future__ import annotations

import json
import os
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
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.content.record import Record
    from splatcert.report.content import NextPhotos
    from splatcert.scene.scene import Scene
    from splatcert.splats.gaussians import Splats

LARGEST = 20
OUTPUT = (
    "File to write. Default: report.html, or comparison.html, in the folder of the (second) "
    "certificate; beside that folder if the certificate was made on another computer."
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write a certificate as one self-contained HTML page, for screen, phone or print.

    The certificate alone gives the guarantee, numbers and charts; the model adds renders and
    boxes; the capture adds pixels outside their boxes. Model and capture are read from where
    they were certified, unless --model or --data say otherwise.

    With two certificates, write a page that compares them on the photographs that both were
    calibrated on: the same views in the same colours, and which of them got worse.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    other: Annotated[
        Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[OTHER]", help_behavior_hint="")
    ] = None
    """Second certificate, to compare the first with."""
    output: Annotated[Path | None, unset("FILE", "-o", text=OUTPUT)] = None
    other_model: Annotated[Path | None, unset("MODEL")] = None
    """Path to the model of the second certificate, if it has moved."""
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
        if self.other is None and self.other_model is not None:
            raise OptionError("--other-model requires a second certificate to compare with.")
        if self.other is not None and (self.suggest or self.show.photos):
            raise OptionError(
                "--suggest and --photos are for a report about one certificate.\n"
                "  Leave them out, or pass only one certificate."
            )

    def run(self) -> None:
        """Load what is available and write the page."""
        self.inputs.start()
        if self.other is not None:
            self._compare(self.other)
        else:
            self._report()

    def _report(self) -> None:
        from splatcert.certificate.family import member_folder
        from splatcert.certificate.store import folder_of, read_content
        from splatcert.conformal.calibrate import CalibrationTooSmall
        from splatcert.deploy import load_certified_scene, load_certified_splats
        from splatcert.report.build import write_report

        folder = folder_of(member_folder(self.certificate, self.inputs.member))
        record, scene, splats = read_content(folder)[1], None, None
        model, data = self._places(folder, record, self.inputs.model)
        if data is not None:
            scene = load_certified_scene(record, data, self.images)
        if model is not None:
            splats = load_certified_splats(record, model, scene)
        output = self.output or place_of_page(self.certificate, folder, record, "report.html")
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
        self._say_left_out(model, data, record)

    def _say_left_out(self, model: Path | None, data: Path | None, record: Record) -> None:
        if model is None and record.scale.needs_photos and not self.alone:
            say("Left out", "pictures: pass --data and --model, because boxes require the photos")
        elif model is None:
            say("Left out", "pictures: pass --model to add renders, and --data to add misses")
        elif data is None:
            say("Left out", "misses: pass --data to add them")

    def _compare(self, other: Path) -> None:
        """Write the page about two certificates."""
        from splatcert.certificate.family import member_folder
        from splatcert.certificate.store import folder_of
        from splatcert.report.compare import compare, write_comparison

        given = (self.certificate, self.inputs.model), (other, self.other_model)
        folders, certificates, scenes = [], [], []
        for path, model in given:
            folder = folder_of(member_folder(path, self.inputs.member))
            certificate, scene = self._loaded(folder, model)
            folders.append(folder)
            certificates.append(certificate)
            scenes.append(scene)
        record = certificates[1].record
        output = self.output or place_of_page(other, folders[1], record, "comparison.html")
        with stages() as on:
            found = compare(
                (certificates[0], certificates[1]),
                (str(self.certificate), str(other)),
                (scenes[0], scenes[1]),
                self.show,
                on,
            )
            write_comparison(found, output)
        counts = {verdict: found.count(verdict) for verdict in ("worse", "same", "better")}
        widths = [255 * found.mean_given(side) for side in (0, 1)]
        if self.json:
            facts = {"kind": "comparison", "path": str(output), "photographs": len(found.rows)}
            print(json.dumps({**facts, **counts, "half_width_of_255": widths}, indent=2))
            return
        say("Comparison", f"{output}, {output.stat().st_size / 2**20:.1f} MB")
        say(
            "Half-width",
            f"{widths[0]:.1f} of 255 in A, {widths[1]:.1f} in B, on the photos of both",
        )
        say("Photos", ", ".join(f"{count} {verdict} in B" for verdict, count in counts.items()))
        if not found.pictures:
            say("Left out", "pictures: pass --model and --other-model to add them")

    def _loaded(self, folder: Path, model: Path | None) -> tuple[Certificate, Scene | None]:
        """A certificate with its model and capture, where they are known."""
        from splatcert.certificate.store import read_content
        from splatcert.deploy import load_certificate, load_certified_scene, load_certified_splats

        record = read_content(folder)[1]
        place, data = self._places(folder, record, model)
        scene = None if data is None else load_certified_scene(record, data, self.images)
        splats = None if place is None else load_certified_splats(record, place, scene)
        return load_certificate(folder, splats, scene=scene), scene

    def _places(
        self, folder: Path, record: Record, model: Path | None
    ) -> tuple[Path | None, Path | None]:
        """Paths of model and capture, neither of which is used without the other it requires."""
        from splatcert.certificate.store import remembered

        if self.alone:
            return None, None
        named, model = model, model or remembered(folder, "model")
        data = self.inputs.data or remembered(folder, "data")
        if model is None and self.inputs.data is not None:
            raise OptionError("--data requires --model: misses are counted on renders.")
        if self.show.photos and (model is None or data is None):
            raise OptionError(
                "--photos requires --data and --model: the capture's path is unknown."
            )
        if self.suggest and model is None:
            raise OptionError("--suggest requires --model: poses are found by rendering.")
        if data is None and record.scale.needs_photos and not (named or self.suggest):
            return None, None
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


def place_of_page(given: Path, folder: Path, record: Record, name: str) -> Path:
    """In the folder of a certificate made on this computer; beside a stranger's.

    `given` is what the user named: the certificate, or the family that `folder` is a member of.
    """
    from splatcert.certificate.family import is_family
    from splatcert.certificate.history import was_made_here

    if was_made_here(record):
        return folder / name
    around = Path(os.path.abspath(given if is_family(given) else folder))
    names = dict.fromkeys((around.name, Path(os.path.abspath(folder)).name))
    return around.parent / f"{'-'.join(names)}-{name}"
