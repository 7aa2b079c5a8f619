# SPDX-License-Identifier: Apache-2.0
"""`splatcert suggest`: where to photograph next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands.options import CertificateOptions, OptionError
from splatcert.console import output_folder, say, stages

if TYPE_CHECKING:
    from PIL import Image

    from splatcert.certificate.certificate import Certificate
    from splatcert.commands.pictures import Pixels
    from splatcert.commands.width_bar import WidthBar
    from splatcert.scene.cameras import Camera
    from splatcert.suggest.rank import Suggestion

LARGEST = 100
SHOWN = 6
"""Suggestions with a small render in the picture."""
MAP, PANEL, LEGEND, LINE = 760, 300, 88, 24
TALLEST = 3 * PANEL
"""Sizes in the picture, in pixels."""


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
        from splatcert.commands.certified import open_certificate
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
        from splatcert.artefacts import write_text_whole
        from splatcert.commands.pictures import save_png
        from splatcert.scene.camera_files import write_cameras

        drawn = picture(certificate, found)
        write_cameras(folder, {f"{one.name}.png": one.camera for one in found})
        write_text_whole(folder / "suggestions.json", json.dumps(facts(found), indent=1) + "\n")
        save_png(folder / "suggestions.png", drawn)


def facts(found: Sequence[Suggestion]) -> dict[str, Any]:
    """All suggestions for scripts."""
    from splatcert.certificate.plain import to_plain
    from splatcert.certificate.provenance import CameraRecord

    rows = []
    for one in found:
        known = {**vars(one), "camera": asdict(CameraRecord.of(one.camera)), "why": one.why()}
        rows.append(to_plain(known))
    return {"kind": "suggestions", "suggestions": rows}


def picture(certificate: Certificate, found: Sequence[Suggestion]) -> Pixels:
    """A map of the capture with all suggestions, and the first ones as small renders."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    from splatcert.commands.pictures import INK, PAPER
    from splatcert.commands.plan_view import SEEN, PlanView
    from splatcert.commands.width_bar import WidthBar

    scale = WidthBar.of(certificate)
    training = [view.camera.camera() for view in certificate.record.training]
    plan = PlanView.around([*training, *(one.camera for one in found)], MAP)
    shown = panels(certificate, found[:SHOWN], scale)
    height = max(MAP + LEGEND + LINE * len(found), len(shown) * shown[0].height) + 16
    sheet = Image.new("RGB", (MAP + shown[0].width + 32, height), PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=14)
    sheet.paste(
        Image.fromarray(plan.draw(certificate.observed.splats, training, marks(found))), (0, 0)
    )
    draw.text((16, MAP + 12), f"{len(training)} training cameras", fill=SEEN, font=font)
    words = f"{len(found)} suggestions, lighter where a photo gains more"
    draw.text((16, MAP + 34), words, fill=INK, font=font)
    draw.text(
        (MAP - 276, MAP + 12), "half-width in the small pictures, of 255", fill=INK, font=font
    )
    scale.draw(draw, MAP - 276, MAP + 38, 256)
    for place, one in enumerate(found, 1):
        line = MAP + LEGEND + LINE * (place - 1)
        draw.text((34, line), f"{place}", fill=INK, font=font, anchor="ra")
        draw.text((46, line), one.in_short(), fill=INK, font=font)
    for row, panel in enumerate(shown):
        sheet.paste(panel, (MAP + 16, 8 + row * panel.height))
    return np.asarray(sheet)


def marks(found: Sequence[Suggestion]) -> dict[str, tuple[Camera, tuple[int, int, int]]]:
    """Suggestions by their number, in colours by their gain; the least is still seen."""
    import numpy as np

    from splatcert.report.colours import WidthScale

    most = max(one.gain for one in found)
    marked = {}
    for place, one in enumerate(found, 1):
        share = np.array([0.35 + 0.65 * one.gain / most])
        red, green, blue = WidthScale(255).colours(share)[0]
        marked[str(place)] = (one.camera, (int(red), int(green), int(blue)))
    return marked


def panels(
    certificate: Certificate, found: Sequence[Suggestion], scale: WidthBar
) -> list[Image.Image]:
    """Each as it would look now: the render, its half-width, and where to stand."""
    from PIL import Image, ImageDraw, ImageFont

    from splatcert.commands.pictures import INK, PAPER, to_pixels

    font, drawn = ImageFont.load_default(size=14), []
    camera = found[0].camera
    size = PANEL, min(max(1, round(PANEL * camera.height / camera.width)), TALLEST)
    for place, one in enumerate(found, 1):
        boxes = certificate.predict(one.camera)
        sheet = Image.new("RGB", (2 * PANEL + 16, size[1] + 30), PAPER)
        ImageDraw.Draw(sheet).text((0, 4), f"{place}  {one.move}"[:80], fill=INK, font=font)
        halves = (
            to_pixels(boxes.center.cpu().numpy()),
            scale.colours(boxes.half_width.cpu().numpy()),
        )
        for column, pixels in enumerate(halves):
            small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
            sheet.paste(small, (column * (PANEL + 16), 26))
        drawn.append(sheet)
    return drawn
