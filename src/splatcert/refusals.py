# SPDX-License-Identifier: Apache-2.0
"""What cannot be certified, said before any work is done.

Each refusal protects either the guarantee (labels that were already used) or the user's
time (a model that does not belong to the capture).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from splatcert.certificate.hashes import (
    label_hash,
    photo_file_hash,
    photo_mark,
    place_mark,
    source_marks,
)
from splatcert.difficulty.predictor import Shipped, ViewPredictor, shipped_predictor
from splatcert.errors import InputError, listed
from splatcert.raster.placement import fit_photos, sample_photos
from splatcert.raster.render import Backend
from splatcert.scene.roles import CalibrationView
from splatcert.scene.scene import Scene
from splatcert.splats.gaussians import Splats

Colour = tuple[float, float, float]
FEWEST_TRAINING, FEWEST_HELD_OUT = 2, 2
NO_MOVEMENT = 1e-9
"""Extent over coordinates that rounding alone explains."""


class HeldOutError(InputError):
    """Held-out views that cannot calibrate."""


class WrongModelError(InputError):
    """Splats that do not show what was photographed."""


class InformedPredictorError(InputError):
    """A predictor that has seen what it must not have seen."""


def refuse_unfit_views(scene: Scene) -> None:
    """Too few views, photos that are missing, labels that were used before."""
    held_out = scene.held_out
    if not len(held_out):
        raise HeldOutError(
            f"no photo of {scene.path} is held out, so nothing can calibrate: on photos that the\n"
            "  model was trained on its errors are too small. Keep some photos out of training\n"
            "  (--holdout 8 in splatcert train, then the same here), or photograph a few new\n"
            "  views, register them with the others, and name them in a file: --holdout FILE."
        )
    if len(held_out.with_photo) < FEWEST_HELD_OUT:
        raise HeldOutError(
            f"only {len(held_out.with_photo)} of {len(held_out)} held-out views of {scene.path} "
            "have a photo; calibration needs 2\n"
            "  at least, and 9 for a finite box at alpha = 1/10.\n"
            "  Hold out more, such as every 8th: --holdout 8."
        )
    if len(scene.training) < FEWEST_TRAINING:
        raise HeldOutError(
            f"{len(scene.training)} training view is left in {scene.path}; 2 are needed at least.\n"
            "  Hold out fewer photos."
        )
    reach = max(float(np.abs(camera.centre).max()) for camera in scene.training.cameras)
    if scene.extent <= NO_MOVEMENT * max(reach, 1.0):
        raise HeldOutError(
            f"all training cameras of {scene.path} stand at one point.\n"
            "  A view's difficulty is told by where its camera stands among them: photograph the\n"
            "  scene from several places."
        )
    used = held_out.ledger.views_seen("calibration", "source") & set(held_out.names)
    if used:
        raise HeldOutError(
            f"labels of {len(used)} held-out views were handed out before: "
            f"{listed(sorted(used))}.\n"
            "  The guarantee needs scales that nobody chose by them. If nobody did, load the\n"
            "  scene again and certify that: its ledger starts empty."
        )


def refuse_unlike_model(scene: Scene, splats: Splats, background: Colour, backend: Backend) -> None:
    """Splats with bad values, of another capture, or in another frame."""
    splats.check_finite()
    fit = fit_photos(splats, sample_photos(scene.training), background=background, backend=backend)
    if not fit.is_likeness:
        raise WrongModelError(
            f"the model does not show what was photographed: on {fit.photos} training views its\n"
            f"  renders reach {fit.psnr:.1f} dB, one flat colour per photo {fit.flat:.1f} dB.\n"
            "  Likely causes: splats of another capture; splats in a frame of their own (give the\n"
            "  trainer's run folder, not an exported PLY); poses computed again after training."
        )


def learned_from(predictor: ViewPredictor, scene: Scene) -> set[str]:
    """Held-out views whose labels a predictor learned from, told without looking at a photo.

    Views of the same name at the same place, unless only they agree: made scenes share the
    path of their test cameras.
    """
    places = {(name, place_mark(camera)) for name, camera in scene.cameras.items()}
    shared: set[str] = set()
    for source in source_marks(predictor.card):
        others = {(name, mark.place) for name, mark in source.others.items()}
        if source.scene == scene.path.name or not others or others & places:
            learned = {(name, mark.place) for name, mark in source.learned.items()}
            shared |= {name for name, _ in learned & places} & set(scene.held_out.names)
    return shared


def refuse_informed_predictor(
    predictor: ViewPredictor | None, scene: Scene, calibration: Sequence[CalibrationView] = ()
) -> None:
    """A predictor that learned from labels which are to calibrate now.

    Before labels are handed out, by names and places; afterwards, the same photograph anywhere.
    """
    if predictor is None:
        return
    shared = learned_from(predictor, scene)
    sources = source_marks(predictor.card)
    photos = {mark.photo for source in sources for mark in source.learned.values()}
    if photos:
        shared |= {view.name for view in calibration if _photo_mark(view) in photos}
    if shared:
        raise InformedPredictorError(
            f"the predictor learned from labels of {len(shared)} views that are to calibrate now: "
            f"{listed(sorted(shared))}.\n"
            "  Its scale has seen them, so the guarantee would not hold. Use a predictor learned "
            "on\n  other scenes, or --predictor none."
        )


def _photo_mark(view: CalibrationView) -> str:
    """Mark of a view's photograph, which is decoded only where it has no file."""
    file = photo_file_hash(view)
    return photo_mark(label_hash(view) if file is None else "", file)


def chosen_predictor(asked: Shipped, scene: Scene) -> tuple[Shipped, ViewPredictor]:
    """The predictor asked for; for "default", the first that has seen no held-out view.

    Where all have, it is the default one, which is then refused with the reason.
    """
    if asked == "default":
        names: tuple[Shipped, ...] = get_args(Shipped)
        for name in names:
            predictor = shipped_predictor(name)
            if not learned_from(predictor, scene):
                return name, predictor
    return asked, shipped_predictor(asked)
