# SPDX-License-Identifier: Apache-2.0
"""`splatcert export`: PLY copies of a certified model for other tools."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from splatcert.commands import CertificateOptions, unset
from splatcert.console import say, stages
from splatcert.errors import OptionError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from splatcert.certificate.certificate import Certificate
    from splatcert.export import SafeOrbit
    from splatcert.splats.gaussians import Splats

SUPPORT, COLOURED, KEPT, LEGEND = "support", "uncertainty", "kept", "legend.png"
COLUMNS, ORBIT = "columns.json", "safe_orbit.json"


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write copies of the model with the uncertainty of every Gaussian.

    support.ply has support and uncertainty as extra columns, which viewers ignore.
    uncertainty.ply shows uncertainty as colour. With --keep, kept.ply has only the Gaussians
    that satisfy a rule.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")]
    """Folder to write the files to."""
    keep: Annotated[str | None, unset("RULE")] = None
    """Rule for the kept file, such as "views_seen >= 3 and uncertainty < 0.2"."""
    format: Literal["ply", "spz", "glb"] = "ply"
    """File format. glb keeps the columns as attributes; spz is smaller and has no room for them."""
    safe_orbit: bool = False
    """Store the elevations and smallest radius of the calibration cameras in each spz file."""
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = field(
        default_factory=CertificateOptions
    )
    json: bool = False
    """Print one JSON object instead of text."""

    def __post_init__(self) -> None:
        if self.safe_orbit and self.format != "spz":
            raise OptionError("--safe-orbit requires --format spz: no other format stores it.")

    def run(self) -> None:
        """Compute the columns, write the copies, and print what they hold."""
        from splatcert.deploy import open_certificate
        from splatcert.export import STORED, Rule, rule_columns, support_columns, with_columns
        from splatcert.report.colours import WidthScale
        from splatcert.splats.formats.save import save_glb, save_spz
        from splatcert.splats.ply import save_ply
        from splatcert.storage.png import save_png
        from splatcert.storage.whole import write_text_whole

        rule = None if self.keep is None else Rule.parse(self.keep)
        self.inputs.start()
        certificate = open_certificate(
            self.certificate, self.inputs.model, self.inputs.data, self.inputs.member
        )
        splats = certificate.fitted.splats
        if rule is not None:  # an unknown name is refused before the work
            names = rule_columns(splats, {name: splats.means[:, 0] for name in STORED})
            rule.apply(_arrays(names))
        orbit = self._orbit(certificate)
        folder = output_folder(self.output)
        with stages() as on:
            stored = support_columns(certificate, on)
        chosen = None
        if rule is not None:
            chosen = rule.apply(_arrays(rule_columns(splats, stored)))
            refuse_empty(chosen, rule.text)
        scale = WidthScale.of(certificate)
        full = with_columns(splats, stored)
        save: Any = {"ply": save_ply, "spz": save_spz, "glb": save_glb}[self.format]
        if orbit is not None:
            save = partial(save_spz, safe_orbit=orbit.stored)
            write_text_whole(folder / ORBIT, json.dumps(asdict(orbit), indent=1) + "\n")
        save(full, folder / self._file(SUPPORT))
        coloured = self._coloured(splats, stored["uncertainty"], scale)
        save(coloured, folder / self._file(COLOURED))
        save_png(folder / LEGEND, scale.legend("uncertainty: certified half-width, of 255"))
        write_text_whole(folder / COLUMNS, json.dumps(STORED, indent=1) + "\n")
        if chosen is not None:
            save(full[_tensor(chosen)], folder / self._file(KEPT))
        self._tell(certificate, stored, scale.end, chosen)
        if orbit is not None and not self.json:
            low, high = math.degrees(orbit.elevation_min), math.degrees(orbit.elevation_max)
            say(
                "Safe orbit",
                f"elevation {low:.0f} to {high:.0f} degrees, radius at least "
                f"{orbit.radius_min:.3g}; centre and up in {self.output}/{ORBIT}",
            )

    def _orbit(self, certificate: Certificate) -> SafeOrbit | None:
        """The limits of the calibration cameras, if asked for."""
        from splatcert.export import SafeOrbit

        cameras = [view.camera for view in certificate.record.calibration]
        return SafeOrbit.of(cameras) if self.safe_orbit else None

    def _file(self, stem: str) -> str:
        return f"{stem}.{self.format}"

    def _coloured(self, splats: Splats, values: Tensor, scale: Any) -> Splats:
        """The splats in the colours of their uncertainty."""
        from splatcert.export import with_colours

        return with_colours(splats, _tensor(scale.colours(values.cpu().numpy()) / 255.0))

    def _tell(
        self,
        certificate: Certificate,
        stored: dict[str, Tensor],
        top: float,
        chosen: NDArray[np.bool_] | None,
    ) -> None:
        from splatcert.export import STORED

        count = len(certificate.fitted.splats)
        kept = None if chosen is None else int(chosen.sum())
        medians = {name: float(column.double().median()) for name, column in stored.items()}
        if self.json:
            files = {stem: self._file(stem) for stem in (SUPPORT, COLOURED)} | {"legend": LEGEND}
            files |= {} if kept is None else {KEPT: self._file(KEPT)}
            files |= {"safe_orbit": ORBIT} if self.safe_orbit else {}
            content = {
                "kind": "export",
                "path": str(self.output),
                "files": files,
                "gaussians": count,
                "kept": kept,
                "rule": self.keep,
                "scale_top": top,
                "medians": {name: value for name, value in medians.items() if value < float("inf")},
            }
            print(json.dumps(content, indent=2))
            return
        say("Model", f"{count:,} Gaussians of {certificate.record.scene.name}")
        added = f"with {', '.join(STORED)} added"
        if self.format == "spz":
            added = "unchanged: spz has no room for columns (use --format ply or glb)"
        say("Splats", f"{self.output}/{self._file(SUPPORT)}, {added}")
        say("Medians", ", ".join(f"{name} {value:.4g}" for name, value in medians.items()))
        say(
            "Colours",
            f"{self.output}/{self._file(COLOURED)}, from 0 to {top:.3g}; legend in {LEGEND}",
        )
        if kept is not None:
            gone = count - kept
            say(
                "Kept",
                f"{self.output}/{self._file(KEPT)}: {kept:,} Gaussians; {gone:,} removed "
                f"({gone / count:.1%})",
            )
            say(
                "Note",
                "the filtered model is a different model; the certificate does not cover its "
                "renders",
            )


def refuse_empty(chosen: NDArray[np.bool_], rule: str) -> None:
    """Refuse a rule that no Gaussian satisfies."""
    if not chosen.any():
        raise OptionError(
            f"none of {len(chosen):,} Gaussians satisfies {rule!r}.\n"
            "  Nothing was written. Run without --keep to see the medians of all columns."
        )


def _arrays(columns: dict[str, Tensor]) -> dict[str, NDArray[np.generic]]:
    return {name: column.detach().cpu().numpy() for name, column in columns.items()}


def _tensor(values: NDArray[np.generic]) -> Tensor:
    import torch

    return torch.from_numpy(values.copy())
