# SPDX-License-Identifier: Apache-2.0
"""The content of `certificate.json` as types: the guarantee, and what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from splatcert.camera import Camera
from splatcert.certificate.content.promise import PromiseRecord
from splatcert.certificate.content.view_records import (
    MOST,
    CalibrationRecord,
    QueryRecord,
    RecordError,
    TrainingRecord,
    is_width,
)
from splatcert.certificate.diagnostics import SplitEstimates, SupportLimits
from splatcert.config import Backend, CertifyConfig
from splatcert.conformal.permutation import PermutationTest
from splatcert.difficulty.views_file import SceneViews
from splatcert.errors import listed
from splatcert.strangeness.limit import StrangenessLimit

FORMAT = "splatcert certificate"
SCHEMA = 4
"""Version of certificate.json that is written; older ones are read (`store.py`)."""
UnseenBy = Literal["model", "user", "assumed", "registered"]
"""Why the model should not have seen the held-out photos: its own run or settings say so, the
user does, nobody does, or they were registered after the capture was made."""
Purpose = Literal["calibration", "evaluation", "source"]
Holes = Literal["wide", "paper"]
"""Boxes where the model shows nothing: wide, or the narrowest of their view, as in the paper."""
Center = Literal["render", "corrected"]
"""What boxes lie around: the render, or a picture corrected by training photographs."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee: levels, number of calibration views, and threshold."""

    alpha: Fraction
    beta: Fraction
    views: int
    """m, the number of calibration views."""
    rank: int
    """k = ceil((m + 1)(1 - alpha)); the threshold is the k-th smallest score.

    For a path, m counts stretches here.
    """
    threshold: float
    """q; infinite where k > m."""
    counted: CountedPixels
    """Pixels that the guarantee is about."""
    statement: str
    """The guarantee in words."""

    def __post_init__(self) -> None:
        if not is_width(self.threshold):
            raise RecordError(
                f"the threshold must be 0 to {MOST:g}, or infinite, got {self.threshold}"
            )


@dataclass(frozen=True, kw_only=True)
class ScaleRecord:
    """How a scale follows from a camera; fixed before any calibration label is used."""

    name: str
    """Kind of scale: "paper", "guided", "constant", or a name chosen by the user."""
    needs_photos: bool
    """Whether prediction requires the training photographs."""
    shape: Fraction
    """lambda_b: how far the shape of the scale departs from a constant."""
    holes: Holes
    """Whether the residual field of the shape grows where the model is transparent."""
    batch_only: bool
    """Whether only views of the query batch are covered.

    The batch's unit treats its own views alike (prop:equivariance), but not other cameras.
    Without shrinkage, or shrunk to one, the unit cancels (lem:gauge).
    """
    bounds: tuple[float, float] | None
    """Range of raw predictions that a new view's is clipped to; None if there is none."""
    parameters: dict[str, Any]
    """Everything else the scale requires, in its own format."""

    def __post_init__(self) -> None:
        if self.bounds is not None and not 0 < self.bounds[0] <= self.bounds[1] <= MOST:
            raise RecordError(f"the bounds of predictions must be 0 to {MOST:g} and ordered")


@dataclass(frozen=True, kw_only=True)
class LabelUse:
    """One line of the ledger of held-out labels: who used which views, and for what."""

    order: int
    purpose: Purpose
    by: str
    views: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LabelRecord:
    """When the scales were fixed, and every use of held-out labels.

    This includes uses by earlier processes, as the model's run folder lists them.
    """

    frozen: str
    """Hash of all scales of the query batch, taken before any calibration label was used."""
    handed_out_before: int
    """Length of the ledger at that moment."""
    ledger: tuple[LabelUse, ...]

    def earlier(self) -> str:
        """Labels used before the scales were fixed, in words; empty if there were none."""
        return "; ".join(
            f"{entry.by} already used {len(entry.views)} held-out photos "
            f"({listed(entry.views)}) for {entry.purpose}"
            for entry in self.ledger[: self.handed_out_before]
        )


@dataclass(frozen=True, kw_only=True)
class PhotoHistory:
    """Earlier certificates that some of the calibration photos calibrated (`history.py`)."""

    certificates: int
    """Number of certificates."""
    photos: int
    """Number of photos of this certificate that calibrated one of them."""

    def __post_init__(self) -> None:
        if min(self.certificates, self.photos) < 0 or (self.certificates > 0) != (self.photos > 0):
            raise RecordError(
                f"{self.photos} photos cannot have calibrated {self.certificates} certificates"
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

    backend: Backend
    name: str
    version: str
    constants: dict[str, float]
    background: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class LoadRecord:
    """How photographs were loaded, to load them again in the same way."""

    images: str | None
    """Folder used instead of the capture's own."""
    resolution: str | None
    """Limit on the longest side, or a factor; None for the photographs' own size."""
    background: tuple[float, float, float] | None
    """Colour behind transparent pixels."""
    masks: str | None
    """Folder of masks, "alpha" or "off"; None for the capture's own masks."""
    sparse: str | None
    """Folder of the COLMAP model inside the capture; "first" for the first one found, as before
    schema 4; None for other formats."""
    skip_missing: bool
    """Whether poses without a photo were left out."""


@dataclass(frozen=True, kw_only=True)
class SceneRecord:
    """The capture."""

    name: str
    format: str
    split: str
    """How held-out views were chosen, in words."""
    held_out_by: UnseenBy
    sizes: dict[str, int]
    """Number of views of each size in pixels."""
    extent: float
    loaded: LoadRecord | None
    """Load options; None for pictures that do not come from files."""


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
    """The complete content of certificate.json."""

    format: Literal["splatcert certificate"] = FORMAT
    schema: int = SCHEMA
    splatcert: str
    created: str
    """UTC time; the one entry that differs between two runs, not covered by the seal."""
    guarantee: Guarantee
    promise: PromiseRecord
    """What the guarantee is about: a view, a stretch of a path, or a family."""
    config: CertifyConfig
    scale: ScaleRecord
    center: Center
    """What boxes lie around."""
    model: ModelRecord
    renderer: RendererRecord
    scene: SceneRecord
    field: FieldRecord
    labels: LabelRecord
    history: PhotoHistory | None
    """What the user's ledger knew of the calibration photos; None if none was kept."""
    training: tuple[TrainingRecord, ...]
    calibration: tuple[CalibrationRecord, ...]
    unlabelled: tuple[QueryRecord, ...]
    """Held-out views not used to calibrate: without a photograph, or in no stretch of a path."""
    support: SupportLimits | None
    """Limits of the flag in certificates of schemas 2 and 3; None since."""
    strangeness: StrangenessLimit | None
    """Limit of the flag since schema 4."""
    evenness: PermutationTest
    """Whether calibration scores depend on the place or the order of their views."""
    splits: SplitEstimates | None
    """Diagnostic estimate by random splits of views; None for too few, or a different promise."""
    files: dict[str, str]
    """Hashes of the files beside this one."""
    seal: str
    """Hash of everything above except the time; see `seal_of`."""

    def __post_init__(self) -> None:
        for role in ("training", "calibration"):
            if not getattr(self, role):
                raise RecordError(f"{role} must name at least one view")
        if (self.support is None) == (self.strangeness is None):
            raise RecordError("one of support and strangeness must hold the limits of the flag")


@dataclass(frozen=True, kw_only=True)
class CountedPixels:
    """Share of the calibration photographs that entered their scores."""

    masked_views: int
    """Number of calibration views in which some pixels do not count."""
    share: float
    """Share of all pixels of the calibration views that count."""

    @classmethod
    def of(cls, views: SceneViews, calibration: Mapping[str, Camera]) -> CountedPixels:
        """Computed from the stored counts of these held-out views and their cameras' sizes."""
        known = dict(zip(views.held_out.names, views.held_out.pixels.tolist(), strict=True))
        counted = {name: known[name] for name in calibration}
        sizes = {name: camera.width * camera.height for name, camera in calibration.items()}
        return cls(
            masked_views=sum(counted[name] < sizes[name] for name in sizes),
            share=sum(counted.values()) / sum(sizes.values()),
        )

    def words(self, views: int) -> str:
        """The counts in words, for this number of calibration views."""
        return (
            f"on {self.masked_views} of {views} calibration views; {100 * self.share:.1f}% of "
            "the pixels count, and the guarantee is about those pixels"
        )
