# SPDX-License-Identifier: Apache-2.0
"""What stands between camera and things in the harder captures: glass, and thin wire."""

from __future__ import annotations

from typing import Any

import mitsuba as mi
import numpy as np
import shapes

mi.set_variant("scalar_rgb")
T = mi.ScalarTransform4f
Thing = dict[str, Any]


def case(mesh: Any) -> Thing:
    """Four panes of glass around everything on the table, in a frame of thin brass.

    They are open at the top: through glass, the lamp would be found by chance alone.
    """
    half, height = 0.86, 0.92
    corners = [(sx * half, sy * half) for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    bars = [shapes.wire([(x, y, 0.004), (x, y, height)], 0.006) for x, y in corners]
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        bars.append(shapes.wire([(x0, y0, height), (x1, y1, height)], 0.006))
    brass = {"type": "roughconductor", "material": "Au", "alpha": 0.2}
    found: Thing = {"frame": mesh("frame", shapes.joined(bars), brass)}
    for side in range(4):
        place = T().rotate([0, 0, 1], 90 * side).translate([half, 0, height / 2 + 0.004])
        found[f"pane{side}"] = {
            "type": "rectangle",
            "to_world": place.rotate([0, 1, 0], 90).scale([height / 2, half, 1]),
            "bsdf": {"type": "thindielectric", "int_ior": 1.5, "ext_ior": 1.0},
        }
    return found


def fence(mesh: Any) -> Thing:
    """Half a ring of wire netting around the things, thinner than a pixel from afar."""
    radius, heights = 0.9, np.linspace(0.02, 0.5, 13)
    angle = np.linspace(0.3, 0.3 + np.pi, 61)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    rails = [np.stack([x, y, 0 * angle + height], axis=1) for height in heights]
    posts = [np.array([(px, py, 0.0), (px, py, 0.5)]) for px, py in zip(x, y, strict=True)]
    wires = [shapes.wire(line, 0.0025) for line in [*rails, *posts]]
    steel = {"type": "roughconductor", "material": "Cr", "alpha": 0.2}
    return {"fence": mesh("fence", shapes.joined(wires), steel)}
