# SPDX-License-Identifier: Apache-2.0
"""Thresholds at other levels, at once, from numbers that a certificate keeps.

`views.npz` has every calibration view's oracle factor at several betas. Divided by the view's
factor it is the view's score (prop:oracle), so no pixel is needed to ask for another alpha or
another beta. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal.calibrate import (
    shortfall,
    state_calibration,
    state_guarantee,
    threshold_of,
)

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

ALPHAS = tuple(Fraction(n, 100) for n in range(1, 51))
"""Levels alpha that are offered beside the certificate's own."""


@dataclass(frozen=True)
class Promise:
    """What calibration gives at one pair of levels."""

    alpha: Fraction
    beta: Fraction
    threshold: float
    """q; infinite where the views are too few."""
    statement: str
    calibration: str
    """Which score became the threshold, in words."""
    missing: str
    """What is missing for a finite threshold, in words, or nothing."""
    certified: bool
    """Whether these are the levels of the certificate itself."""


@dataclass(frozen=True, eq=False)
class StoredLevels:
    """The scores of one certificate's calibration views at every stored beta."""

    alphas: tuple[Fraction, ...]
    scores: dict[Fraction, NDArray[np.float64]]
    """R_v by beta, [m]; those of the certificate's own beta are its very scores."""
    certified: tuple[Fraction, Fraction]
    """alpha and beta of the certificate."""
    masked: bool
    batch_only: bool

    @classmethod
    def of(cls, certificate: Certificate) -> StoredLevels:
        """From the numbers beside a certificate."""
        record, views = certificate.record, certificate.views
        rows = [views.held_out.names.index(view.name) for view in record.calibration]
        factors = np.array([view.factor for view in record.calibration])
        scores = {
            beta: views.oracle("held-out", beta, certificate.rule.lambda_b)[rows] / factors
            for beta in sorted(views.betas)
        }
        return cls(
            alphas=tuple(sorted({*ALPHAS, certificate.alpha})),
            scores={**scores, certificate.beta: certificate.scores},
            certified=(certificate.alpha, certificate.beta),
            masked=bool(record.guarantee.counted.masked_views),
            batch_only=record.scale.batch_only,
        )

    @property
    def betas(self) -> tuple[Fraction, ...]:
        """Stored levels beta, rising."""
        return tuple(sorted(self.scores))

    def at(self, alpha: float | Fraction, beta: float | Fraction) -> Promise:
        """The promise at the offered levels nearest to these."""
        alpha, beta = nearest(alpha, self.alphas), nearest(beta, self.betas)
        scores = self.scores[beta]
        return Promise(
            alpha=alpha,
            beta=beta,
            threshold=threshold_of(scores, alpha),
            statement=state_guarantee(
                alpha, beta, scores.size, masked=self.masked, batch_only=self.batch_only
            ),
            calibration=state_calibration(alpha, scores.size),
            missing=" ".join((shortfall(scores.size, alpha) or "").split()),
            certified=(alpha, beta) == self.certified,
        )


def nearest(wanted: float | Fraction, levels: tuple[Fraction, ...]) -> Fraction:
    """The offered level next to a wanted one."""
    return min(levels, key=lambda level: abs(float(level) - float(wanted)))
