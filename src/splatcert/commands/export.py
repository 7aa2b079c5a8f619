# SPDX-License-Identifier: Apache-2.0
"""`splatcert export`: PLY copies of a certified model for other tools."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splatcert.commands import CertificateOptions
from splatcert.console import say, stages
from splatcert.errors import OptionError
from splatcert.storage.whole import output_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from splatcert.certificate.certificate import Certificate
    from splatcert.splats.gaussians import Splats

SUPPORT, COLOURED, KEPT, LEGEND = "support.ply", "uncertainty.ply", "kept.ply", "legend.png"
COLUMNS = "columns.json"


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write PLY copies that say how well each Gaussian is known.

    One has support and uncertainty as further columns, which viewers ignore; one shows the
    uncertainty as colour; and with --keep one holds only the Gaussians that satisfy a rule.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder that splatcert certify wrote."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")]
    """Folder for the files."""
    keep: Annotated[str | None, tyro.conf.arg(metavar="RULE")] = None
    """Also write the Gaussians that satisfy a rule on columns, such as
    "views_seen >= 3 and uncertainty < 0.2 and opacity > 0.05"."""
    inputs: tyro.conf.OmitArgPrefixes[CertificateOptions] = field(
        default_factory=CertificateOptions
    )
    json: bool = False
    """Print one JSON object instead of words."""

    def run(self) -> None:
        """Compute the columns, write the copies, and say how many Gaussians each has."""
        from splatcert.deploy import open_certificate
        from splatcert.export import STORED, Rule, rule_columns, support_columns, with_columns
        from splatcert.report.colours import WidthBar
        from splatcert.splats.files import save_ply
        from splatcert.storage.png import save_png
        from splatcert.storage.whole import write_text_whole

        rule = None if self.keep is None else Rule.parse(self.keep)
        self.inputs.start()
        certificate = open_certificate(self.certificate, self.inputs.model, self.inputs.data)
        splats = certificate.observed.splats
        if rule is not None:  # a name that does not exist is told before the work
            names = rule_columns(splats, {name: splats.means[:, 0] for name in STORED})
            rule.apply(_arrays(names))
        folder = output_folder(self.output)
        total = len(certificate.record.training)
        with stages() as report:
            stored = support_columns(
                certificate,
                lambda done: report("looking through the training cameras", done, total),
            )
        chosen = None
        if rule is not None:
            chosen = rule.apply(_arrays(rule_columns(splats, stored)))
            refuse_empty(chosen, rule.text)
        scale = WidthBar.of(certificate)
        full = with_columns(splats, stored)
        save_ply(full, folder / SUPPORT)
        save_ply(self._coloured(splats, stored["uncertainty"], scale), folder / COLOURED)
        save_png(folder / LEGEND, scale.legend("uncertainty: certified half-width, of 255"))
        write_text_whole(folder / COLUMNS, json.dumps(STORED, indent=1) + "\n")
        if chosen is not None:
            save_ply(full[_tensor(chosen)], folder / KEPT)
        self._tell(certificate, stored, scale.end, chosen)

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

        count = len(certificate.observed.splats)
        kept = None if chosen is None else int(chosen.sum())
        medians = {name: float(column.double().median()) for name, column in stored.items()}
        if self.json:
            files = {"support": SUPPORT, "uncertainty": COLOURED, "legend": LEGEND}
            files |= {} if kept is None else {"kept": KEPT}
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
        say("model", f"{count:,} Gaussians of {certificate.record.scene.name}")
        say("columns", f"{self.output}/{SUPPORT} has {', '.join(STORED)} beside the usual ones")
        say("median", ", ".join(f"{name} {value:.4g}" for name, value in medians.items()))
        say("colours", f"{self.output}/{COLOURED}, from 0 to {top:g}; the key is {LEGEND}")
        if kept is not None:
            gone = count - kept
            say(
                "kept",
                f"{kept:,} Gaussians; {gone:,} go ({gone / count:.1%}): {self.output}/{KEPT}",
            )
            say("mind", "the kept model is another one: the certificate is not about its renders")


def refuse_empty(chosen: NDArray[np.bool_], rule: str) -> None:
    """A rule that nothing satisfies makes no model."""
    if not chosen.any():
        raise OptionError(
            f"no Gaussian of {len(chosen):,} satisfies {rule!r}.\n"
            "  Nothing was written. Without --keep, the medians of all columns are printed."
        )


def _arrays(columns: dict[str, Tensor]) -> dict[str, NDArray[np.generic]]:
    return {name: column.detach().cpu().numpy() for name, column in columns.items()}


def _tensor(values: NDArray[np.generic]) -> Tensor:
    import torch

    return torch.from_numpy(values.copy())
