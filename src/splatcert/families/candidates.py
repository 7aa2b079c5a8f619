# SPDX-License-Identifier: Apache-2.0
"""The candidates of a family: named, and refused where they cannot share a promise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from splatcert.camera import camera_hash
from splatcert.capture import Capture
from splatcert.certificate.content.promise import PromiseRecord
from splatcert.certificate.family import MOST_MEMBERS, is_name
from splatcert.config import CertifyConfig, PathPromise
from splatcert.conformal.calibrate import shortfall
from splatcert.conformal.family_conformal import FamilyError
from splatcert.errors import listed
from splatcert.raster.render import Backend
from splatcert.refusals import refuse_early, refuse_promise
from splatcert.scales.named import scale_by_name
from splatcert.scales.scale import Scale


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model under one scale."""

    capture: Capture
    scale: Scale


def candidates_of(
    captures: Mapping[str, Capture], scales: Sequence[Scale | str], config: CertifyConfig
) -> dict[str, Candidate]:
    """Every model under every scale, by name."""
    candidates: dict[str, Candidate] = {}
    for model, capture in captures.items():
        for scale in scales:
            known = scale
            if isinstance(known, str):
                known = scale_by_name(known, capture.scene, config.unit)
            parts = (model * (len(captures) > 1), known.name * (len(scales) > 1))
            name = member_name("-".join(filter(None, parts)) or known.name)
            if name in candidates:
                raise FamilyError(f"two candidates are called {name}.\n  Name them differently.")
            candidates[name] = Candidate(capture, known)
    return candidates


def refuse_candidates(
    candidates: Mapping[str, Candidate],
    promise: PathPromise | None,
    levels: tuple[Fraction, Fraction],
    backend: Backend,
) -> tuple[dict[str, Candidate], PromiseRecord]:
    """Candidates of one scene, with one ledger, and what each of them alone would promise.

    Those that cannot share a promise are refused.
    """
    if not 2 <= len(candidates) <= MOST_MEMBERS:
        raise FamilyError(
            f"a family has 2 to {MOST_MEMBERS} candidates, got {len(candidates)}.\n"
            "  Name several models, or several scales such as --scale paper,constant."
        )
    first, scale = next((one.capture, one.scale) for one in candidates.values())
    alone = refuse_promise(promise, first.scene, levels, scale)
    if message := shortfall(len(first.scene.held_out.with_photo), levels[0]):
        raise FamilyError(message)
    for name, one in candidates.items():
        if getattr(one.scale, "unit", "deployed") == "batch":
            raise FamilyError("unit batch cannot be used in a family.\n  Use unit deployed.")
        if wrong := _differing_views(first, one.capture):
            raise FamilyError(
                f"candidate {name} was opened with different views or cameras: {listed(wrong)}.\n"
                "  All candidates must have the same photos, resolution and hold-out."
            )
        refuse_early(one.capture, one.scale, backend)
    return {
        name: Candidate(replace(one.capture, scene=first.scene), one.scale)
        for name, one in candidates.items()
    }, alone


def member_name(text: str) -> str:
    """A name for a member, which is also a folder's, from that of a model or scale."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", text).lstrip("._-")[:80]
    if not is_name(name):
        raise FamilyError(f"{text!r:.80} cannot be the name of a member.\n  Rename the model.")
    return name


def _differing_views(first: Capture, other: Capture) -> list[str]:
    """Names of views that differ in role or camera."""
    one, two = _roles(first), _roles(other)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


def _roles(capture: Capture) -> dict[str, tuple[str, bool]]:
    held_out = set(capture.scene.held_out.names)
    cameras = capture.scene.cameras
    return {name: (camera_hash(camera), name in held_out) for name, camera in cameras.items()}
