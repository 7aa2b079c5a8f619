# SPDX-License-Identifier: Apache-2.0
"""Certified error bars for Gaussian splats.

Names are imported when first used, so that `import splatcert` and `splatcert --help`
do not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splatcert.camera import Camera
    from splatcert.config import CertifyConfig, ReportConfig, TrainConfig
    from splatcert.deploy import load_certificate, verify
    from splatcert.errors import InputError
    from splatcert.pipeline import certify
    from splatcert.raster.render import Render, open_view, render
    from splatcert.report.build import write_report
    from splatcert.scene.load import load_scene
    from splatcert.splats.files import load_splats
    from splatcert.splats.gaussians import Splats
    from splatcert.training.optimise import train

__version__ = "0.1.0"

__all__ = [
    "Camera",
    "CertifyConfig",
    "InputError",
    "Render",
    "ReportConfig",
    "Splats",
    "TrainConfig",
    "__version__",
    "certify",
    "load_certificate",
    "load_scene",
    "load_splats",
    "open_view",
    "render",
    "train",
    "verify",
    "write_report",
]

_HOMES = {
    "Camera": "splatcert.camera",
    "CertifyConfig": "splatcert.config",
    "InputError": "splatcert.errors",
    "Render": "splatcert.raster.render",
    "ReportConfig": "splatcert.config",
    "Splats": "splatcert.splats.gaussians",
    "TrainConfig": "splatcert.config",
    "certify": "splatcert.pipeline",
    "load_certificate": "splatcert.deploy",
    "load_scene": "splatcert.scene.load",
    "load_splats": "splatcert.splats.files",
    "open_view": "splatcert.raster.render",
    "render": "splatcert.raster.render",
    "train": "splatcert.training.optimise",
    "verify": "splatcert.deploy",
    "write_report": "splatcert.report.build",
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
