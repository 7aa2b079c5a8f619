# SPDX-License-Identifier: Apache-2.0
"""A page's state as the last part of its address: camera, mode, levels and member.

Entries are readable, such as `mode=half-width`. A link may come from anybody, so what is not
offered here is ignored, and the page says which entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np

from splatcert_viewer.cameras.viewpoint import Viewpoint
from splatcert_viewer.frame import MODES, Mode
from splatcert_viewer.levels import Levels, nearest

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

CAMERA_NUMBERS = 9
"""Position, rotation (w, x, y, z), field of view and aspect."""
LONGEST = 2000
"""Characters of a link; ours have about 150."""
SAME = 1e-4
"""Levels that differ by less are the same: a link holds decimals."""


@dataclass(frozen=True, eq=False)
class PageState:
    """What a link restores."""

    certificate: Certificate
    """At the chosen levels."""
    mode: Mode = "RGB"
    viewpoint: Viewpoint | None = None
    """None for the initial camera."""

    def link(self) -> str:
        """The state as the last part of an address."""
        certificate, camera = self.certificate, self.viewpoint
        numbers: tuple[float, ...] = ()
        if camera is not None:
            numbers = (*camera.position, *camera.wxyz, camera.fov, camera.aspect)
        entries = {
            "camera": ",".join(f"{number:.7g}" for number in numbers),
            "mode": self.mode,
            "alpha": f"{float(certificate.alpha):.7g}",
            "beta": f"{float(certificate.beta):.7g}",
            "member": member_of(certificate) or "",
        }
        return "&".join(f"{key}={quote(text, safe=',-.')}" for key, text in entries.items() if text)


def read_link(link: str, levels: Levels) -> tuple[PageState, tuple[str, ...]]:
    """The state that a link restores, and the entries that cannot be used here."""
    known: dict[str, str] = {}
    ignored: list[str] = []
    for entry in link.split("&") if len(link) <= LONGEST else ("",):
        key, _, text = entry.partition("=")
        if key in ("camera", "mode", "alpha", "beta", "member") and key not in known:
            known[key] = unquote(text)
        elif link:
            ignored.append("an unknown entry")
    certificate = levels.certificate
    found = {
        "camera": _viewpoint(known["camera"]) if "camera" in known else None,
        "mode": next((mode for mode in MODES if mode == known.get("mode")), None),
        "alpha": _level(known.get("alpha", ""), levels.alphas),
        "beta": _level(known.get("beta", ""), levels.betas),
        "member": True if known.get("member") == member_of(certificate) else None,
    }
    ignored += [key for key in known if found[key] is None]
    chosen = certificate.at(found["alpha"] or certificate.alpha, found["beta"] or certificate.beta)
    state = PageState(chosen, found["mode"] or "RGB", found["camera"])
    return state, tuple(dict.fromkeys(ignored))


def member_of(certificate: Certificate) -> str | None:
    """The certificate's name in its family; None if it is in none."""
    family = certificate.record.promise.family
    return None if family is None else family.member


def _level(text: str, offered: tuple[Fraction, ...]) -> Fraction | None:
    try:
        wanted = float(text)
    except ValueError:
        return None
    level = nearest(wanted, offered) if np.isfinite(wanted) else None
    return level if level is not None and abs(float(level) - wanted) < SAME else None


def _viewpoint(text: str) -> Viewpoint | None:
    """The viewpoint of a link, if it is a camera."""
    try:
        numbers = np.array([float(part) for part in text.split(",", CAMERA_NUMBERS)])
        if len(numbers) != CAMERA_NUMBERS or not np.isfinite(numbers).all() or numbers[8] <= 0:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # such a camera is refused below
            turn = numbers[3:7] / np.linalg.norm(numbers[3:7])
            viewpoint = Viewpoint(turn, numbers[:3], float(numbers[7]), float(numbers[8]))
            viewpoint.camera(1000)
    except ValueError:
        return None
    return viewpoint
