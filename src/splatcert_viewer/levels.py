# SPDX-License-Identifier: Apache-2.0
"""The levels that the viewer offers: any alpha on a fine grid, and the betas with stored scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splatcert.certificate.certificate import Certificate

ALPHAS = tuple(Fraction(n, 100) for n in range(1, 51))
"""Levels alpha offered beside the certificate's own."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels at which a certificate can predict."""

    certificate: Certificate
    alphas: tuple[Fraction, ...]
    betas: tuple[Fraction, ...]

    @classmethod
    def of(cls, certificate: Certificate) -> Levels:
        """Levels of one certificate, including its own."""
        alphas = tuple(sorted({*ALPHAS, certificate.alpha}))
        family = certificate.record.promise.family
        betas = certificate.views.betas if family is None else (certificate.beta,)
        return cls(certificate, alphas, tuple(sorted(betas)))

    def at(self, alpha: float | Fraction, beta: float | Fraction) -> Certificate:
        """The certificate at the offered levels nearest to these."""
        return self.certificate.at(nearest(alpha, self.alphas), nearest(beta, self.betas))


def nearest(wanted: float | Fraction, levels: tuple[Fraction, ...]) -> Fraction:
    """The offered level nearest to the wanted one."""
    return min(levels, key=lambda level: abs(float(level) - float(wanted)))
