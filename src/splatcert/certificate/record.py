# SPDX-License-Identifier: Apache-2.0
"""Everything `certificate.json` says, as types: what is promised, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from splatcert.camera import Camera, CameraRecord
from splatcert.certificate.diagnostics import SplitEstimates, SupportLimits
from splatcert.config import CertifyConfig
from splatcert.conformal.exchangeability import PermutationTest
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import InputError, listed

FORMAT = "splatcert certificate"
SCHEMA = 2
"""Of certificate.json; another one is refused."""
HeldOutBy = Literal["model", "user", "assumed"]
"""Who says that the model has not seen the held-out photos: its own run or settings, whoever
held them out, or nobody."""
MOST = 1e30
"""Largest number that a threshold, score or factor can mean: with it, widths stay finite."""


def is_width(value: float) -> bool:
    """Whether a number can be a threshold or a score."""
    return 0 <= value <= MOST or value == math.inf


class RecordError(InputError):
    """An entry of a certificate that can mean nothing."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The promise: levels, how many views it was calibrated on, and the threshold."""

    alpha: Fraction
    beta: Fraction
    views: int
    """m, the calibration views."""
    rank: int
    """k = ceil((m + 1)(1 - alpha)); the threshold is the k-th smallest score."""
    threshold: float
    """q; infinite where k > m."""
    counted: CountedPixels
    """Which pixels it is about."""
    statement: str
    """The same in words."""

    def __post_init__(self) -> None:
        if not is_width(self.threshold):
            raise RecordError(
                f"the threshold must be 0 to {MOST:g}, or infinite, got {self.threshold}"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """One training view: where from, and what was seen."""

    name: str
    camera: CameraRecord
    pose: str
    """Hash of the camera."""
    image: str
    """Hash of the pixels as they were compared."""
    file: str | None
    """Hash of the photograph's file, where there is one."""


@dataclass(frozen=True, kw_only=True)
class QueryRecord:
    """One held-out view before its label: its scale is fixed by these entries."""

    name: str
    camera: CameraRecord
    pose: str
    field: str
    """Hash of the rendered residual field b."""
    factor: float
    """a_v."""

    def __post_init__(self) -> None:
        if not 1 / MOST <= self.factor <= MOST:
            raise RecordError(f"the factor must be {1 / MOST:g} to {MOST:g}, got {self.factor}")


@dataclass(frozen=True, kw_only=True)
class CalibrationRecord(QueryRecord):
    """One calibration view with what its label gave."""

    image: str
    file: str | None
    score: float
    """R_v (eq:view-score)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_width(self.score):
            raise RecordError(f"the score must be 0 to {MOST:g}, or infinite, got {self.score}")


@dataclass(frozen=True, kw_only=True)
class ScaleRecord:
    """How a query becomes a scale, s = a b~; all of it fixed before any calibration label."""

    lambda_a: Fraction
    lambda_b: Fraction
    unit: Literal["deployed", "batch"]
    reference: float
    """Mean raw prediction of the views that set the unit of a."""
    predictor: dict[str, Any] | None
    """The frozen view predictor; None for a = 1."""
    features: tuple[str, ...]
    feature_means: tuple[float, ...]
    feature_stds: tuple[float, ...]
    """Units of the descriptor: training views, each described by the other folds."""

    @property
    def batch_only(self) -> bool:
        """Whether only views of the query batch are covered.

        The batch's unit treats its views alike (prop:equivariance), a camera asked later it
        does not. Without shrinkage, or shrunk to one, the unit cancels (lem:gauge).
        """
        return self.unit == "batch" and 0 < self.lambda_a < 1


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """One line of the ledger of held-out labels."""

    order: int
    purpose: Literal["calibration", "evaluation", "source"]
    by: str
    views: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LabelRecord:
    """When the scales were fixed, and the hand-overs of held-out labels.

    Those of the process that certified, and what the model's run folder says of earlier ones.
    """

    frozen: str
    """Hash of all scales of the query batch, taken before any calibration label."""
    handed_out_before: int
    """Length of the ledger at that moment."""
    ledger: tuple[HandOver, ...]

    def earlier(self) -> str:
        """Whose labels had been handed out before the scales were fixed, in words, or nothing."""
        return "; ".join(
            f"photos of {len(entry.views)} held-out views ({listed(entry.views)}) had been handed "
            f"out before, for {entry.purpose} by {entry.by}"
            for entry in self.ledger[: self.handed_out_before]
        )


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """The splats."""

    splats: str
    """Hash of their content."""
    gaussians: int
    sh_degree: int
    antialiased: bool


@dataclass(frozen=True, kw_only=True)
class RendererRecord:
    """The renderer, whose pixels the guarantee is about."""

    backend: Literal["cpu", "reference", "cuda"]
    name: str
    version: str
    constants: dict[str, float]
    background: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class LoadRecord:
    """How photographs became pictures, to load them again in the same way."""

    images: str | None
    """Folder that took the place of the capture's own."""
    resolution: str | None
    """Largest long side, or a factor; None for the photographs' own size."""
    background: tuple[float, float, float] | None
    """Below transparent pixels."""
    masks: str | None
    """Folder of masks, "alpha" or "off"; None for what the capture itself names."""


@dataclass(frozen=True, kw_only=True)
class SceneRecord:
    """The capture."""

    name: str
    format: str
    split: str
    """How held-out views were chosen, in words."""
    held_out_by: HeldOutBy
    sizes: dict[str, int]
    """Views of each size in pixels."""
    extent: float
    loaded: LoadRecord | None
    """None for pictures that were never files."""


@dataclass(frozen=True, kw_only=True)
class FieldRecord:
    """How the fit of the residual field ended."""

    prior: float
    ridge: float
    steps: int
    converged: bool
    """Whether the residual is within the tolerance asked for."""
    ending: str
    """Why it stopped, in words."""
    residual: float
    """Relative residual of the normal equations at the end."""
    training_psnr: float
    """Mean PSNR of the training re-renders, in decibels."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The whole of certificate.json."""

    format: Literal["splatcert certificate"] = FORMAT
    schema: int = SCHEMA
    splatcert: str
    created: str
    """UTC time; the one entry that differs between two runs, and that no seal covers."""
    guarantee: Guarantee
    config: CertifyConfig
    scale: ScaleRecord
    model: ModelRecord
    renderer: RendererRecord
    scene: SceneRecord
    field: FieldRecord
    labels: LabelRecord
    training: tuple[TrainingRecord, ...]
    calibration: tuple[CalibrationRecord, ...]
    unlabelled: tuple[QueryRecord, ...]
    """Held-out views without a photograph: part of the query batch, of no calibration."""
    support: SupportLimits
    exchangeability: PermutationTest
    splits: SplitEstimates | None
    """Diagnostic estimate by random splits; None where the views are too few for one."""
    files: dict[str, str]
    """Hashes of the files beside this one."""
    seal: str
    """Hash of everything above but the time; see `seal_of`."""

    def __post_init__(self) -> None:
        for role in ("training", "calibration"):
            if not getattr(self, role):
                raise RecordError(f"{role} must name at least one view")


@dataclass(frozen=True, kw_only=True)
class CountedPixels:
    """How much of the calibration photographs entered their scores."""

    masked_views: int
    """Calibration views of which some pixels do not count."""
    share: float
    """Pixels that count, of all pixels of the calibration views."""

    @classmethod
    def of(cls, views: SceneViews, calibration: Mapping[str, Camera]) -> CountedPixels:
        """From the stored counts of these held-out views and the sizes of their cameras."""
        known = dict(zip(views.held_out.names, views.held_out.pixels.tolist(), strict=True))
        counted = {name: known[name] for name in calibration}
        sizes = {name: camera.width * camera.height for name, camera in calibration.items()}
        return cls(
            masked_views=sum(counted[name] < sizes[name] for name in sizes),
            share=sum(counted.values()) / sum(sizes.values()),
        )

    def words(self, views: int) -> str:
        """For people, of so many calibration views."""
        return (
            f"on {self.masked_views} of {views} calibration views; {100 * self.share:.1f}% of "
            "the pixels count, and the guarantee is about these"
        )
