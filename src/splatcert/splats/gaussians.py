# SPDX-License-Identifier: Apache-2.0
"""The splats themselves: raw parameters as files store them, and their activations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isqrt
from pathlib import Path

import torch
from torch import Tensor

from splatcert.errors import InputError

MAX_SH_DEGREE = 4
BRIGHTEST = 1e15
"""Largest harmonic: beyond it, squares and sums of colours leave the range of float32."""


class SplatsError(InputError):
    """Splat parameters that cannot be rendered."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Splats:
    """N Gaussians in world coordinates, before activation.

    Raw parameters are what every file format stores and what training steps on;
    the renderer activates them itself, so there is one place for each activation.
    """

    means: Tensor
    """Centres, [N, 3]."""
    quats: Tensor
    """Rotations w, x, y, z of any positive norm, [N, 4]."""
    log_scales: Tensor
    """Natural logarithms of the standard deviations along the local axes, [N, 3]."""
    logit_opacities: Tensor
    """Opacity = sigmoid of this, [N]."""
    sh: Tensor
    """Colour harmonics, constant term first, [N, (degree + 1)^2, 3]."""
    antialiased: bool = False
    """The file asks for opacity compensation of the low-pass filter."""
    extra: dict[str, Tensor] = field(default_factory=dict)
    """Further per-Gaussian columns of the file, by name, [N] each; written back unchanged."""
    origin: Path | None = None
    """The file or folder they were loaded from, whose run may say what they were trained on."""

    def __post_init__(self) -> None:
        count = self.means.shape[0]
        coefficients = self.sh.shape[1] if self.sh.ndim == 3 else 0
        expected = {
            "means": (count, 3),
            "quats": (count, 4),
            "log_scales": (count, 3),
            "logit_opacities": (count,),
            "sh": (count, coefficients, 3),
        }
        for name, shape in expected.items():
            got = tuple(getattr(self, name).shape)
            if got != shape:
                raise SplatsError(f"{name} has shape {list(got)}, expected {list(shape)}")
        degree = isqrt(coefficients) - 1
        if (degree + 1) ** 2 != coefficients or not 0 <= degree <= MAX_SH_DEGREE:
            raise SplatsError(
                f"{coefficients} harmonics per colour match no degree from 0 to {MAX_SH_DEGREE}"
            )
        for name, column in self.extra.items():
            if column.shape[:1] != (count,):
                raise SplatsError(f"extra column {name!r} has {len(column)} rows, expected {count}")

    @classmethod
    def from_gsplat(
        cls, params: Mapping[str, Tensor], *, activated: bool, antialiased: bool = False
    ) -> Splats:
        """From gsplat's parameters: means, quats, scales, opacities, and sh0 with shN or colors.

        `activated` says whether scales and opacities are those of the Gaussians, as
        `rasterization` takes them, or their logarithms and logits, as the trainer steps on
        and stores them. `colors` are harmonics, [N, K, 3].
        """
        colours = ("colors",) if "colors" in params else ("sh0", "shN")
        needed = ("means", "quats", "scales", "opacities", *colours)
        if missing := [name for name in needed if name not in params]:
            raise SplatsError(f"gsplat's parameters lack {', '.join(missing)}")
        taken = {name: params[name].float() for name in needed}
        scales, opacities = taken["scales"], taken["opacities"].reshape(-1)
        if activated:
            if (scales <= 0).any() or (opacities < 0).any() or (opacities > 1).any():
                raise SplatsError(
                    "activated scales must be positive and opacities 0 to 1.\n"
                    "  If these are logarithms and logits, say that they are not activated."
                )
            scales, opacities = scales.log(), opacities.logit()
        return cls(
            means=taken["means"],
            quats=taken["quats"],
            log_scales=scales,
            logit_opacities=opacities,
            sh=torch.cat([taken[name] for name in colours], dim=1),
            antialiased=antialiased,
        )

    def to_gsplat(self, *, activated: bool) -> dict[str, Tensor]:
        """Gsplat's parameters; `activated` as in `from_gsplat`, with all harmonics as `colors`.

        Not activated, harmonics are split into sh0 and shN as gsplat's trainer stores them.
        """
        shared = {"means": self.means, "quats": self.quats}
        if activated:
            return {
                **shared,
                "scales": self.scales,
                "opacities": self.opacities,
                "colors": self.sh,
            }
        return {
            **shared,
            "scales": self.log_scales,
            "opacities": self.logit_opacities,
            "sh0": self.sh[:, :1],
            "shN": self.sh[:, 1:],
        }

    def __len__(self) -> int:
        return self.means.shape[0]

    @property
    def sh_degree(self) -> int:
        """Degree of the colour harmonics."""
        return isqrt(self.sh.shape[1]) - 1

    @property
    def scales(self) -> Tensor:
        """Standard deviations, [N, 3]."""
        return self.log_scales.exp()

    @property
    def opacities(self) -> Tensor:
        """Peak opacities, [N]."""
        return self.logit_opacities.sigmoid()

    def to(self, *args: object, **kwargs: object) -> Splats:
        """All tensors moved or cast as by `torch.Tensor.to`."""
        moved = {
            f.name: getattr(self, f.name).to(*args, **kwargs)
            for f in fields(self)
            if isinstance(getattr(self, f.name), Tensor)
        }
        return replace(self, **moved)

    def __getitem__(self, index: Tensor | slice) -> Splats:
        """The Gaussians that a mask, index tensor or slice selects."""
        chosen = {
            f.name: getattr(self, f.name)[index]
            for f in fields(self)
            if isinstance(getattr(self, f.name), Tensor)
        }
        extra = {name: column[index] for name, column in self.extra.items()}
        return replace(self, **chosen, extra=extra)

    def check_finite(self) -> None:
        """Refuse values that no renderer can use, naming tensor, count and first index."""
        for name in ("means", "quats", "log_scales", "logit_opacities", "sh"):
            tensor: Tensor = getattr(self, name)
            # Both extremes are NaN if any entry is, so two numbers clear a whole tensor.
            if tensor.numel() == 0 or torch.stack(tensor.aminmax()).isfinite().all():
                continue
            # An opacity of exactly 0 or 1 is a legal infinite logit.
            bad = tensor.isnan() if name == "logit_opacities" else ~tensor.isfinite()
            rows = bad.reshape(len(self), -1).any(dim=1).nonzero()[:, 0]
            if len(rows):
                raise SplatsError(
                    f"{name}: {len(rows)} of {len(self)} Gaussians are not finite, "
                    f"first at index {int(rows[0])}.\n"
                    "  Remove them in the tool that wrote the model, or train again."
                )
        bright = (self.sh.abs().flatten(1).amax(1) > BRIGHTEST).nonzero()[:, 0]
        if len(bright):
            raise SplatsError(
                f"sh: {len(bright)} of {len(self)} Gaussians have colours beyond {BRIGHTEST:g}, "
                f"first at index {int(bright[0])}.\n"
                "  Remove them in the tool that wrote the model, or train again."
            )
        zero = (self.quats.norm(dim=1) == 0).nonzero()[:, 0]
        if len(zero):
            raise SplatsError(
                f"quats: {len(zero)} of {len(self)} Gaussians have a rotation of length zero, "
                f"first at index {int(zero[0])}.\n"
                "  Remove them in the tool that wrote the model, or train again."
            )
