# SPDX-License-Identifier: Apache-2.0
"""Certified boxes from your own uncertainty map. NumPy only: no splats, no torch."""

import numpy as np
from numpy.typing import NDArray

from splatcert.conformal import (
    ViewConformal,
    measure_coverage,
    native_multiplier,
    permutation_test,
    pooled_threshold,
    rgb_residual,
)

Array = NDArray[np.float64]
rng = np.random.default_rng(0)


def photograph(height: int = 90, width: int = 120) -> tuple[Array, Array, Array]:
    """A synthetic view: photo, render, and a map that claims to be the standard deviation.

    Some views are harder than others, and the map is overconfident. Both are common.
    """
    difficulty = rng.lognormal(0, 0.5)
    rows, columns = np.arange(float(height))[:, None], np.arange(float(width))
    texture = 1 + np.sin(rows / 7) * np.sin(columns / 11)
    error = 0.02 * difficulty * (0.2 + texture)[..., None] * rng.normal(size=(height, width, 3))
    render = 0.5 + 0.2 * np.sin(columns / 30)[None, :, None] * np.ones((height, 1, 3))
    photo = np.round((render + error).clip(0, 1) * 255) / 255
    return photo, render, 0.01 * (0.3 + texture) * difficulty**0.6


# Forty held-out views in capture order: fifteen calibrate, the others test.
views = [photograph() for _ in range(40)]
residuals = [rgb_residual(photo, render) for photo, render, _ in views]
maps = [claimed for _, _, claimed in views]
known, known_maps, new, new_maps = residuals[:15], maps[:15], residuals[15:], maps[15:]

conformal = ViewConformal(alpha="1/10", beta="1/10").conformalize(known, known_maps)
print(f"guarantee   {conformal.guarantee()}")

# A new view needs only its render and its map.
_, render, claimed = photograph()
boxes = conformal.predict_interval(render, claimed)
print(
    f"new view    boxes of {boxes.half_width.min():.3f} to {boxes.half_width.max():.3f} "
    f"around the render, {boxes.half_width.mean():.3f} on average"
)

# Three ways to use the same map, on views that none of them has seen.
readings = {
    "uncalibrated": native_multiplier("gaussian", "1/10"),
    "pooled pixels": pooled_threshold(known, known_maps, "1/10"),
    "views": conformal.threshold,
}
for name, multiplier in readings.items():
    found = measure_coverage(new, new_maps, multiplier, "1/10")
    print(
        f"{name:<16}covers {found.pixel_coverage:4.0%} of all pixels, "
        f"and at least 90% of the pixels in {found.covered_views:2} of {found.views} views"
    )

# Is there evidence that scores depend on the capture order?
test = permutation_test(conformal.scores, {"capture order": np.arange(15)})
print(f"order       {test.in_words()}")
