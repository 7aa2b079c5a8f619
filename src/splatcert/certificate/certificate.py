# SPDX-License-Identifier: Apache-2.0
"""The certificate: a threshold, everything it depends on, and boxes for any camera.

Nothing here requires torch. A frozen scale makes the predictions; it is put into the
certificate together with its model (`splatcert.deploy`, or `certify` itself).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera, camera_hash
from splatcert.certificate.content.record import Guarantee, Record
from splatcert.certificate.field_file import FieldArrays
from splatcert.certificate.issue import counted_pixels, guarantee_of
from splatcert.certificate.renderers import OtherRenderer
from splatcert.certificate.sights import rule_of, training_factors, training_sights
from splatcert.conformal.boxes import Boxes, Flag
from splatcert.conformal.levels import Level, parse_level
from splatcert.difficulty.holdout_check import HoldoutCheck, check_holdout
from splatcert.difficulty.predictor import ViewPredictor
from splatcert.difficulty.rule import FactorRule
from splatcert.difficulty.trained_on import TrainedOnCheck, check_trained_on
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import InputError
from splatcert.shown import Plotted
from splatcert.strangeness.comparison import CameraComparison, compare_cameras
from splatcert.strangeness.measures import Sight
from splatcert.strangeness.poses import TrainingPoses

if TYPE_CHECKING:
    from splatcert.field.fitted_scene import FittedScene
    from splatcert.scales.scale import FrozenScale, ScaledView
    from splatcert.splats.gaussians import Splats

OUTSIDE_BATCH = (
    "is not a view of the batch that set the unit of the view factor, so the guarantee does not "
    "cover it; certify with unit deployed to cover cameras outside the batch"
)


class CertificateError(InputError):
    """A certificate that cannot be used at all, or not with this model."""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Plotted):
    """Boxes with a guarantee for one model, one renderer and one set of calibration views.

    With probability at least 1 - alpha, at least a fraction 1 - beta of the pixels of a new
    view lie inside their boxes, if that view is exchangeable with the calibration views
    (thm:validity). Where calibration views have masks, this is about the pixels that count.
    """

    record: Record
    """The content of certificate.json."""
    field: FieldArrays
    """Residual field and support, as arrays."""
    views: SceneViews
    """Per-view numbers of training and held-out views."""
    scale: FrozenScale | None = None
    """Maps a camera to its scale; without it a certificate can be read, but not predict."""
    other: OtherRenderer | None = None
    """How the promise carries over to a different renderer; None for the certified one."""

    def __repr__(self) -> str:
        views = self.record.guarantee.views
        return f"<Certificate of {self.record.scene.name}, calibrated on {views} views>"

    @property
    def alpha(self) -> Fraction:
        """Largest probability that a new view falls short of its pixel coverage."""
        return self.record.guarantee.alpha

    @property
    def beta(self) -> Fraction:
        """Share of a view's pixels that may lie outside their boxes."""
        return self.record.guarantee.beta

    @property
    def threshold(self) -> float:
        """q; infinite where there were too few calibration views."""
        return self.record.guarantee.threshold

    @property
    def guarantee(self) -> str:
        """The guarantee in words."""
        return self.record.guarantee.statement

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the calibration views at this beta, in order of their names, [views]."""
        return self.scores_at(self.beta)

    def scores_at(self, beta: Fraction) -> NDArray[np.float64]:
        """Scores of the calibration views at a stored beta: a*_v / a_v (prop:oracle), [m]."""
        if self.other is not None and beta in self.other.scores:
            return self.other.scores[beta]
        record, views = self.record, self.views
        calibration = record.calibration
        if beta == parse_level(record.config.beta, "beta"):
            return np.array([view.score for view in calibration])
        rows = views.held_out.rows_of(view.name for view in calibration)
        factors = np.array([view.factor for view in calibration])
        return views.oracle("held-out", beta, record.scale.shape)[rows] / factors

    @cached_property
    def holdout_check(self) -> HoldoutCheck | None:
        """Whether calibration views are a fair sample of the capture; None if nobody can say."""
        calibration, training = self.record.calibration, self.record.training
        return check_holdout([v.camera for v in calibration], [v.camera for v in training])

    @cached_property
    def trained_on_check(self) -> TrainedOnCheck | None:
        """Whether the calibration photos look trained on; None if nobody can say."""
        return check_trained_on(self.record.calibration, self.record.training, self.views)

    @cached_property
    def coverage_by_tenth(self) -> NDArray[np.float64] | None:
        """Share of calibration pixels inside, by tenths of a view's half-width, [10].

        At the certified levels, on the views that set the threshold. NaN where no pixel is: with
        a constant scale, all are in the first tenth. None in certificates that lack the counts.
        """
        names = [view.name for view in self.record.calibration]
        return self.views.held_out.coverage_by_tenth(names)

    @property
    def usual_half_widths(self) -> list[float]:
        """Mean half-widths that calibration views get, or need where boxes are unbounded, [m]."""
        factors = [view.factor for view in self.record.calibration]
        if np.isfinite(self.threshold):
            return [self.threshold * factor for factor in factors]
        return [score * factor for score, factor in zip(self.scores, factors, strict=True)]

    @cached_property
    def rule(self) -> FactorRule | None:
        """How the view factor follows from a descriptor; None if the scale has its own rule."""
        return rule_of(self.record.scale)

    @property
    def predictor(self) -> ViewPredictor | None:
        """The frozen view predictor; None if every factor is one or the scale has its own rule."""
        return None if self.rule is None else self.rule.predictor

    @property
    def training_factors(self) -> NDArray[np.float64]:
        """a_v of the training views, each described by the other folds, [T]."""
        return training_factors(self.record.scale, self.views.training)

    @property
    def splats(self) -> Splats | None:
        """The model, if it was loaded with the certificate."""
        return None if self.scale is None else self.scale.scene.splats

    @property
    def fitted(self) -> FittedScene:
        """The model with everything derived from its training views."""
        return self._predicting().scene

    def _predicting(self) -> FrozenScale:
        if self.scale is None:
            raise CertificateError(
                "a certificate requires its model to predict.\n"
                "  Load both: load_certificate(path, load_splats(model))."
            )
        return self.scale

    @cached_property
    def _batch(self) -> frozenset[str]:
        """Hashes of the cameras that set the unit in `batch` mode."""
        return frozenset(v.pose for v in (*self.record.calibration, *self.record.unlabelled))

    @overload
    def predict(self, camera: Camera, *, preview_of: Camera | None = None) -> Boxes: ...
    @overload
    def predict(self, camera: Sequence[Camera]) -> list[Boxes]: ...
    def predict(
        self, camera: Camera | Sequence[Camera], *, preview_of: Camera | None = None
    ) -> Boxes | list[Boxes]:
        """Boxes for one camera or several, each independent of the others.

        For a coarser `preview_of` a camera, the flag uses the image size of that camera.
        """
        if not isinstance(camera, Camera):
            return self._predicting().each(camera, self.predict)
        scaled = self._predicting()(camera)
        flag = self.flag(scaled, preview_of or camera)
        if scaled.remark:
            flag = flag.beyond(scaled.remark)
        return Boxes.of_render(
            scaled.center,
            partial(scaled.shape, None),
            scaled.factor,
            self.threshold,
            flag,
            scaled.descriptor,
            margin=0.0 if self.other is None else self.other.margin,
        )

    @cached_property
    def poses(self) -> TrainingPoses:
        """The training cameras, as neighbours of a new one."""
        return TrainingPoses([v.camera for v in self.record.training], self.record.scene.extent)

    def compare(
        self, cameras: Sequence[Camera], descriptors: Sequence[Any] | None = None
    ) -> CameraComparison | None:
        """Test whether cameras differ from the calibration views; None if there are too few.

        `descriptors` are those of the cameras' boxes; without them, every camera is rendered.
        """
        if descriptors is None:
            descriptors = [self._predicting()(camera).descriptor for camera in cameras]
        record, table = self.record, self.views.held_out
        names = [view.name for view in record.calibration]
        return compare_cameras(
            cameras,
            [view.camera for view in record.calibration],
            [view.camera for view in record.training],
            (np.array(descriptors), table.descriptors[table.rows_of(names)]),
            extent=record.scene.extent,
            seed=record.config.seed,
        )

    def flag(self, scaled: ScaledView, camera: Camera) -> Flag:
        """Whether a camera with this scale differs from the calibration views."""
        if self.record.strangeness is not None:
            sight = Sight(camera, scaled.shares, scaled.factor)
            flag = self.record.strangeness.check(sight, self.poses)
        else:
            assert self.record.support is not None  # a record has one of the two
            flag = self.record.support.check(scaled.descriptor, camera)
        if self.record.scale.batch_only and camera_hash(camera) not in self._batch:
            flag = flag.beyond(OUTSIDE_BATCH)
        return flag

    @property
    def training_flags(self) -> list[Flag]:
        """Flags of the training cameras, from the stored numbers alone."""
        record, views = self.record, self.views
        if record.strangeness is not None:
            seen = training_sights(record.scale, record.training, views)
            return [record.strangeness.check(sight, self.poses) for sight in seen]
        assert record.support is not None  # a record has one of the two
        rows = zip(views.training.descriptors, record.training, strict=True)
        return [record.support.check(row, view.camera) for row, view in rows]

    def at(self, alpha: Level, beta: Level) -> Certificate:
        """The same certificate at other levels, from its stored scores.

        A beta at which no scores are stored is refused, never rounded.
        """
        levels = parse_level(alpha, "alpha"), parse_level(beta, "beta")
        if levels == (self.alpha, self.beta):
            return self
        promise = self._promise(*levels)
        return replace(self, record=replace(self.record, guarantee=promise))

    def _promise(self, alpha: Fraction, beta: Fraction) -> Guarantee:
        record, promise = self.record, self.record.promise
        certified = parse_level(record.config.beta, "beta")
        if promise.family is not None and beta != certified:
            raise CertificateError(
                f"the family's scores are known at beta = {certified} only, not at {beta}.\n"
                "  Certify the family again at that level."
            )
        names = [view.name for view in record.calibration]
        scores = dict(zip(names, self.scores_at(beta).tolist(), strict=True))
        counted = counted_pixels(self.views, record.calibration)
        q, levels = promise.threshold(scores, alpha), (alpha, beta)
        return guarantee_of(q, len(scores), levels, counted, record.scale, promise)

    @property
    def is_certified(self) -> bool:
        """Whether the levels are those chosen before labels were used."""
        config = self.record.config
        asked = parse_level(config.alpha, "alpha"), parse_level(config.beta, "beta")
        return asked == (self.alpha, self.beta)

    def carried_over(self, other: OtherRenderer, scale: FrozenScale) -> Certificate:
        """The certificate with another renderer's scores, margin and scale."""
        moved = replace(self, scale=scale, other=other)
        promise = moved._promise(self.alpha, self.beta)
        return replace(moved, record=replace(self.record, guarantee=promise))

    def save(self, folder: str | Path) -> Path:
        """Write the certificate's folder; returns it."""
        from splatcert.certificate.store import save_certificate

        return save_certificate(self, Path(folder))
