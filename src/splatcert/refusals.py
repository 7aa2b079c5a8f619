# SPDX-License-Identifier: Apache-2.0
"""Checks for inputs that cannot be certified, made before any work is done.

Each refusal protects either the guarantee (labels that were already used) or the user's
time (a model that does not belong to the capture).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from splatcert.capture import Capture
from splatcert.certificate.certificate import CertificateError
from splatcert.certificate.content.promise import PromiseRecord, promise_of
from splatcert.certificate.content.record import Record
from splatcert.certificate.hashes import (
    label_hash,
    photo_file_hash,
    photo_mark,
    source_marks,
    splats_hash,
)
from splatcert.config import FieldConfig, PathPromise
from splatcert.difficulty.card import field_card
from splatcert.errors import InputError, listed
from splatcert.raster.placement import fit_photos, sample_photos
from splatcert.raster.render import Backend, BackendError, unavailable
from splatcert.scales.guided import GuidedScale
from splatcert.scales.named import learned_from
from splatcert.scales.scale import Scale
from splatcert.scene.roles import CalibrationView
from splatcert.scene.scene import Scene
from splatcert.witnesses.album import refuse_large_album

if TYPE_CHECKING:
    from splatcert.splats.gaussians import Splats

FEWEST_TRAINING, FEWEST_HELD_OUT = 2, 2
LONGEST = 80
"""Characters of a card's entry that a message shows."""
NO_MOVEMENT = 1e-9
"""Extent relative to the coordinates, below which rounding alone explains it."""


class HeldOutError(InputError):
    """Held-out views that cannot calibrate."""


class WrongModelError(InputError):
    """Splats that do not show what was photographed."""


class PredictorSawTheseError(InputError):
    """A predictor that learned from calibration labels."""


class OtherFieldError(InputError):
    """A predictor or guide that was learned on differently fitted residual fields."""


def refuse_early(capture: Capture, scale: Scale, backend: Backend) -> None:
    """Refuse unsuitable inputs before any work is done or any label is read."""
    refuse_unfit_views(capture.scene)
    refuse_known_photos(scale, capture.scene)
    if isinstance(scale, GuidedScale):
        refuse_large_album(capture.scene.training.cameras)
    refuse_unlike_model(capture, backend)


def refuse_other_field(scale: Scale, field: FieldConfig) -> None:
    """Refuse a scale that was learned on other fields; older cards do not say on which."""
    known, asked = (scale.card or {}).get("field"), field_card(field)
    if known is not None and known != asked:
        learned = ", ".join(f"{name} {value}" for name, value in dict(known).items())[:LONGEST]
        raise OtherFieldError(
            f"the {scale.name} scale was learned on residual fields of {learned}; "
            f"ridge {field.ridge:g}, degree {field.degree} was requested.\n"
            "  Leave out --field.ridge and --field.degree, or learn from certificates made with "
            "them:\n  splatcert learn CERT ... -o predictor.json"
        )


def refuse_unfit_views(scene: Scene) -> None:
    """Refuse too few views, missing photos, and labels that were already used."""
    held_out = scene.held_out
    if not len(held_out):
        raise HeldOutError(
            f"no photo of {scene.path} is held out, so nothing can calibrate. On photos that the\n"
            "  model was trained on, its errors are too small. Keep some photos out of training\n"
            "  (--holdout 8 in splatcert train, then the same here), or take 12 to 20 new ones:\n"
            "  splatcert register DATA NEW_PHOTOS -o DATA2, then certify with DATA2."
        )
    if len(held_out.with_photo) < FEWEST_HELD_OUT:
        raise HeldOutError(
            f"only {len(held_out.with_photo)} of {len(held_out)} held-out views of {scene.path} "
            f"have a photo; calibration requires\n  at least {FEWEST_HELD_OUT}, and 9 for a finite "
            "box at alpha = 1/10.\n  Hold out more, such as every 8th: --holdout 8."
        )
    if len(scene.training) < FEWEST_TRAINING:
        raise HeldOutError(
            f"{len(scene.training)} training view is left in {scene.path}; at least "
            f"{FEWEST_TRAINING} are required.\n  Hold out fewer photos."
        )
    reach = max(float(np.abs(camera.centre).max()) for camera in scene.training.cameras)
    if scene.extent <= NO_MOVEMENT * max(reach, 1.0):
        raise HeldOutError(
            f"all training cameras of {scene.path} are at one point.\n"
            "  The difficulty of a view depends on where its camera is among them:\n"
            "  photograph the scene from several places."
        )
    used = held_out.ledger.views_seen("calibration", "source") & set(held_out.names)
    if used:
        raise HeldOutError(
            f"the labels of {len(used)} held-out views were already used: "
            f"{listed(sorted(used))}.\n"
            "  The guarantee requires that nobody used them to choose the scale. If nobody did,\n"
            "  load the scene again and certify that: its ledger starts empty."
        )


def refuse_promise(
    asked: PathPromise | None, scene: Scene, levels: tuple[Fraction, Fraction], scale: Scale
) -> PromiseRecord:
    """The promise to keep; one that the held-out photos or the scale cannot carry is refused."""
    if asked is not None and getattr(scale, "unit", "deployed") == "batch":
        raise HeldOutError(
            "unit batch covers only the held-out views, so it cannot promise a new stretch.\n"
            "  Use unit deployed, or a promise about views."
        )
    return promise_of(asked, tuple(scene.cameras), scene.held_out.with_photo, *levels)


def refuse_unlike_model(capture: Capture, backend: Backend) -> None:
    """Refuse splats with bad values, of a different capture, or in a different frame."""
    capture.splats.check_finite()
    fit = capture.likeness or fit_photos(
        capture.splats,
        sample_photos(capture.scene.training),
        background=capture.background,
        backend=backend,
    )
    if not fit.is_likeness:
        raise WrongModelError(
            f"the model does not show what was photographed: on {fit.photos} training views its\n"
            f"  renders reach {fit.psnr:.1f} dB, one flat colour per photo {fit.flat:.1f} dB.\n"
            "  Likely causes: splats of a different capture; splats in their own frame (give the\n"
            "  trainer's run folder, not an exported PLY); poses recomputed after training."
        )


def refuse_known_photos(
    scale: Scale, scene: Scene, calibration: Sequence[CalibrationView] = ()
) -> None:
    """Refuse a scale that learned from calibration labels.

    Before labels are opened, views are matched by name and place; afterwards, by photograph.
    """
    if scale.card is None:
        return
    shared = learned_from(scale.card, scene)
    sources = source_marks(scale.card)
    photos = {mark.photo for source in sources for mark in source.learned.values()}
    if photos:
        shared |= {view.name for view in calibration if _photo_mark(view) in photos}
    if shared and scale.name == "guided":
        raise PredictorSawTheseError(
            f"the guide learned from labels of {len(shared)} calibration views: "
            f"{listed(sorted(shared))}.\n"
            "  Its scale has seen them, so the guarantee would not hold. Use a guide learned on\n"
            "  other scenes, or the paper's scale: --scale paper."
        )
    if shared:
        raise PredictorSawTheseError(
            f"the predictor learned from labels of {len(shared)} calibration views: "
            f"{listed(sorted(shared))}.\n"
            "  Its scale has seen them, so the guarantee would not hold. Use a predictor learned "
            "on\n  other scenes, or --predictor none."
        )


def _photo_mark(view: CalibrationView) -> str:
    """Mark of a view's photograph, which is decoded only if it has no file."""
    file = photo_file_hash(view)
    return photo_mark(label_hash(view) if file is None else "", file)


def refuse_other_scale(record: Record, frozen: Any) -> None:
    """Check on one calibration view that a user's map is the one that was frozen."""
    from splatcert.certificate.hashes import map_hash

    view = record.calibration[0]
    scaled = frozen(view.camera)
    if map_hash(scaled.field) != view.field:
        raise CertificateError(
            f"the given scale {record.scale.name!r} is not the certified one: it differs on "
            f"{view.name}.\n  Pass the same map, on the same kind of machine, or certify again."
        )


def refuse_other_renderer(record: Record) -> None:
    """Refuse to predict with another renderer than the certified one."""
    from splatcert.raster.render import renderer_of

    stored = record.renderer
    here = renderer_of(stored.backend)
    there = {"name": stored.name, "version": stored.version, "constants": stored.constants}
    if here == there:
        return
    differing = [
        f"{key} {there[key]} (here {here[key]})" for key in there if here[key] != there[key]
    ]
    raise CertificateError(
        f"the certificate was made with a different renderer: {'; '.join(differing)}.\n"
        "  Its boxes apply to that renderer's pixels. Use that version, or certify again."
    )


def refuse_to_carry_over(record: Record, backend: Backend, *, photographs: bool) -> None:
    """Refuse another back end that cannot run, or to which the promise cannot be carried over."""
    certified = record.renderer.backend
    if (reason := unavailable(backend)) is not None:
        raise BackendError(reason)
    if record.promise.family is not None:
        raise CertificateError(
            f"a family's promise holds for the back end it was certified with, {certified}.\n"
            "  Use that one, or certify the family with the other."
        )
    if not photographs and unavailable(certified) is not None:
        raise CertificateError(
            f"the certificate was made with the back end {certified}, which cannot run here, so\n"
            f"  renders of {backend} cannot be compared with it. Pass the capture, whose "
            "calibration\n  photos are then scored again: --data DATA."
        )


def refuse_other_splats(record: Record, splats: Splats) -> None:
    """Refuse to predict with another model than the certified one."""
    stored = record.model
    if splats_hash(splats) == stored.splats:
        return
    mode = {True: "antialiased", False: "classic"}
    there = (
        f"{stored.gaussians:,} Gaussians of degree {stored.sh_degree}, {mode[stored.antialiased]}"
    )
    here = f"{len(splats):,} of degree {splats.sh_degree}, {mode[splats.antialiased]}"
    raise CertificateError(
        "the certificate was made for a different model.\n"
        f"  It names {there}, hash {stored.splats[:12]};\n"
        f"  this model has {here}, hash {splats_hash(splats)[:12]}.\n"
        "  Load the model that was certified, in the capture's frame, or certify this one."
    )
