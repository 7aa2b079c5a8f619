# SPDX-License-Identifier: Apache-2.0
"""Everything `certificate.json` says, as types: what is promised, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from splatcert.camera import Camera
from splatcert.certificate.diagnostics import SplitEstimates, SupportLimits
from splatcert.certificate.view_records import (
    MOST,
    CalibrationRecord,
    QueryRecord,
    RecordError,
    TrainingRecord,
    is_width,
)
from splatcert.config import CertifyConfig
from splatcert.conformal.exchangeability import PermutationTest
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import listed

FORMAT = "splatcert certificate"
SCHEMA = 3
"""Version of certificate.json that is written; older ones are read (`store.py`)."""
UnseenBy = Literal["model", "user", "assumed"]
"""Who says that the model has not seen the held-out photos: its own run or settings, whoever
held them out, or nobody."""
Purpose = Literal["calibration", "evaluation", "source"]


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
class ScaleRecord:
    """How a camera becomes a scale; all of it fixed before any calibration label."""

    name: str
    """Which kind of scale: "paper", "constant", or a name of its owner's."""
    needs_photos: bool
    """Whether prediction asks the training photographs."""
    shape: Fraction
    """lambda_b: how far the shape of the scale departs from a constant."""
    batch_only: bool
    """Whether only views of the query batch are covered.

    The batch's unit treats its views alike (prop:equivariance), a camera asked later it
    does not. Without shrinkage, or shrunk to one, the unit cancels (lem:gauge).
    """
    parameters: dict[str, Any]
    """Everything else the scale needs, in its own words."""


@dataclass(frozen=True, kw_only=True)
class LabelUse:
    """One line of the ledger of held-out labels: who was given whose, and what for."""

    order: int
    purpose: Purpose
    by: str
    views: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LabelRecord:
    """When the scales were fixed, and every use of held-out labels.

    Of the process that certified, and of earlier ones as the model's run folder lists them.
    """

    frozen: str
    """Hash of all scales of the query batch, taken before any calibration label."""
    handed_out_before: int
    """Length of the ledger at that moment."""
    ledger: tuple[LabelUse, ...]

    def earlier(self) -> str:
        """Which labels were used before the scales were fixed, in words, or nothing."""
        return "; ".join(
            f"{entry.by} already used {len(entry.views)} held-out photos "
            f"({listed(entry.views)}) for {entry.purpose}"
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
    held_out_by: UnseenBy
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
