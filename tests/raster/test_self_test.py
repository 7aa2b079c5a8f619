# SPDX-License-Identifier: Apache-2.0
"""What `native/self_test.cpp` compares with is what the reference renderer gives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from splatcert.camera import Camera
from splatcert.raster.reference import ReferenceView
from splatcert.splats.gaussians import Splats

STORED = Path(__file__).resolve().parents[2] / "native/self_test_values.hpp"
GAUSSIANS, WIDTH, HEIGHT = 300, 70, 45
PIXEL_STEP, GAUSSIAN_STEP = 97, 50
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// Values of the reference renderer in double precision, for self_test.cpp. To write them anew:
//   SPLATCERT_UPDATE_SELF_TEST=1 pytest tests/raster/test_self_test.py
#pragma once

namespace reference {

// clang-format off
"""
FOOT = """\
// clang-format on

}  // namespace reference
"""


def numbers() -> Iterator[float]:
    """The self-test's numbers: twelve bits each."""
    state = 1
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield (state >> 20) / 4096


def values_of_the_reference() -> dict[str, np.ndarray]:
    source = numbers()

    def many(*shape: int, factor: float, offset: float) -> torch.Tensor:
        drawn = [factor * next(source) + offset for _ in range(int(np.prod(shape)))]
        return torch.tensor(drawn, dtype=torch.float64).reshape(shape)

    leaves = {
        "means": many(GAUSSIANS, 3, factor=4, offset=-2),
        "quats": many(GAUSSIANS, 4, factor=2, offset=-1),
        "log_scales": many(GAUSSIANS, 3, factor=2, offset=-3),
        "logits": many(GAUSSIANS, factor=4, offset=-2),
        "colours": many(GAUSSIANS, 3, factor=1, offset=0),
    }
    pattern = many(HEIGHT, WIDTH, 3, factor=2, offset=-1)
    for leaf in leaves.values():
        leaf.requires_grad_()
    pose = np.eye(4)
    pose[:3] = [[0.8, 0, -0.6, 0], [0, 1, 0, 0], [0.6, 0, 0.8, 5]]
    camera = Camera(world_to_camera=pose, fx=60, fy=62, cx=34.5, cy=23, width=WIDTH, height=HEIGHT)
    splats = Splats(
        means=leaves["means"],
        quats=leaves["quats"],
        log_scales=leaves["log_scales"],
        logit_opacities=leaves["logits"],
        sh=torch.zeros(GAUSSIANS, 1, 3, dtype=torch.float64),
    )
    image = ReferenceView(splats, camera).composite(leaves["colours"])
    (image * pattern).sum().backward()
    stored = {"image": image.detach().reshape(-1, 3)[::PIXEL_STEP].numpy()}
    for name, leaf in leaves.items():
        assert leaf.grad is not None
        stored[f"grad_{name}"] = leaf.grad[::GAUSSIAN_STEP].numpy()
    return stored


def test_the_self_test_holds_the_values_of_the_reference():
    values = values_of_the_reference()
    if os.environ.get("SPLATCERT_UPDATE_SELF_TEST"):
        lines = []
        for name, array in values.items():
            lines.append(f"constexpr double {name}[] = {{")
            flat = [f"{value:.9e}" for value in array.ravel()]
            lines += [f"    {', '.join(flat[k : k + 5])}," for k in range(0, len(flat), 5)]
            lines.append("};")
        STORED.write_text(HEAD + "\n".join(lines) + "\n" + FOOT, encoding="utf-8")
    arrays = re.findall(r"double (\w+)\[\] = \{(.*?)\};", STORED.read_text(encoding="utf-8"), re.S)
    stored = {name: np.array(body.strip(" ,\n").split(","), dtype=float) for name, body in arrays}
    assert stored.keys() == values.keys()
    for name, array in values.items():
        assert np.abs(array).max() > 0.1  # there is something to compare with
        np.testing.assert_allclose(stored[name], array.ravel(), rtol=1e-6, atol=1e-8)
