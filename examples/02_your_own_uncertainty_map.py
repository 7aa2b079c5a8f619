# SPDX-License-Identifier: Apache-2.0
"""Certified boxes from an uncertainty map of your own. NumPy only: no splats, no torch."""

import numpy as np

from splatcert.conformal import (
    ViewConformal,
    measure_coverage,
    native_multiplier,
    permutation_test,
    pooled_threshold,
    rgb_residual,
)

rng = np.random.default_rng(0)


def photograph(height=90, width=120):
    """A made view: photo, render, and a map that claims to be the render's standard deviation.

    Some views are harder than others, and the map is too confident. Both are usual.
    """
    difficulty = rng.lognormal(0, 0.5)
    rows, columns = np.mgrid[0:height, 0:width]
    texture = 1 + np.sin(rows / 7) * np.sin(columns / 11)
    error = 0.02 * difficulty * (0.2 + texture)[..., None] * rng.normal(size=(height, width, 3))
    render = 0.5 + 0.2 * np.sin(columns / 30)[..., None] * np.ones(3)
    photo = np.round(np.clip(render + error, 0, 1) * 255) / 255
    return photo, render, 0.01 * (0.3 + texture) * difficulty**0.6


# Forty held-out views, in the order they were taken: fifteen calibrate, the others check.
views = [photograph() for _ in range(40)]
residuals = [rgb_residual(photo, render) for photo, render, _ in views]
maps = [claimed for _, _, claimed in views]
known, known_maps, new, new_maps = residuals[:15], maps[:15], residuals[15:], maps[15:]

conformal = ViewConformal(alpha="1/10", beta="1/10").conformalize(known, known_maps)
print(f"guarantee   {conformal.guarantee()}")

# A view that has not been photographed: its render and its map are enough.
_, render, claimed = photograph()
boxes = conformal.predict_interval(render, claimed)
print(
    f"new view    boxes of {boxes.half_width.min():.3f} to {boxes.half_width.max():.3f} "
    f"about the render, {boxes.half_width.mean():.3f} on average"
)

# Three readings of the same map, on views that none of them has seen.
readings = {
    "taken at its word": native_multiplier("gaussian", "1/10"),
    "pooled pixels": pooled_threshold(known, known_maps, "1/10"),
    "views": conformal.threshold,
}
for name, multiplier in readings.items():
    found = measure_coverage(new, new_maps, multiplier, "1/10")
    print(
        f"{name:<18}covers {found.pixel_coverage:4.0%} of pixels, and 90% of them in "
        f"{found.covered_views:2} of {found.views} views"
    )

# Would it matter in which order the views were taken?
test = permutation_test(conformal.scores, {"capture order": np.arange(15)})
print(f"order       {test.in_words()}")
