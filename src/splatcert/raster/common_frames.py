# SPDX-License-Identifier: Apache-2.0
"""Models whose converter turned their axes, set right by the photographs."""

from __future__ import annotations

from collections.abc import Sequence

from splatcert.raster.placement import (
    BLACK,
    Colour,
    FrameFit,
    SmallPhoto,
    rank_frames,
    require_frame,
)
from splatcert.raster.render import Backend
from splatcert.splats.formats.frames import common_frames
from splatcert.splats.gaussians import Splats


def try_common_frames(
    splats: Splats,
    photos: Sequence[SmallPhoto],
    *,
    background: Colour = BLACK,
    backend: Backend = "cpu",
) -> list[FrameFit]:
    """Every common axis convention by how well renders match the photographs, the best first.

    Converters of the same format disagree, most often by a half turn about x. Raises
    FrameError where the photographs do not single one out; `fits[0].restore(splats)`
    are the splats in the capture's frame, `fits[0].name` says how they were turned.
    """
    fits = rank_frames(splats, common_frames(), photos, background=background, backend=backend)
    require_frame(fits)
    return fits
