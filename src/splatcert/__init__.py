# SPDX-License-Identifier: Apache-2.0
"""Certified error bars for Gaussian splats.

Names are imported when first used, so that `import splatcert` and `splatcert --help`
do not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splatcert.config import TrainConfig
    from splatcert.errors import InputError
    from splatcert.raster.interface import Render, open_view, render
    from splatcert.scene.cameras import Camera
    from splatcert.scene.load import load_scene
    from splatcert.splats.files import load_splats
    from splatcert.splats.gaussians import Splats
    from splatcert.train.optimise import train

__version__ = "0.1.0"

__all__ = [
    "Camera",
    "InputError",
    "Render",
    "Splats",
    "TrainConfig",
    "__version__",
    "load_scene",
    "load_splats",
    "open_view",
    "render",
    "train",
]

_HOMES = {
    "Camera": "splatcert.scene.cameras",
    "InputError": "splatcert.errors",
    "Render": "splatcert.raster.interface",
    "Splats": "splatcert.splats.gaussians",
    "TrainConfig": "splatcert.config",
    "load_scene": "splatcert.scene.load",
    "load_splats": "splatcert.splats.files",
    "open_view": "splatcert.raster.interface",
    "render": "splatcert.raster.interface",
    "train": "splatcert.train.optimise",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
