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
    from splatcert.capture import Capture, open_capture
    from splatcert.certificate.certificate import Certificate
    from splatcert.certificate.family import Family
    from splatcert.checkup.diagnose import Diagnosis, doctor
    from splatcert.config import CertifyConfig, LearnConfig, PathPromise, ReportConfig, TrainConfig
    from splatcert.conformal.boxes import Boxes, Flag
    from splatcert.deploy import load_certificate, verify
    from splatcert.difficulty.predictor import ViewPredictor, load_predictor
    from splatcert.difficulty.views_file import SceneViews
    from splatcert.errors import InputError
    from splatcert.families.certify import certify_family
    from splatcert.pipeline import certify, learn
    from splatcert.raster.render import Render, open_view, render
    from splatcert.raster.view import View
    from splatcert.report.build import write_report
    from splatcert.scales.guided import GuidedScale
    from splatcert.scales.maps import Constant, OwnMap
    from splatcert.scales.paper import PaperScale
    from splatcert.scales.scale import Scale
    from splatcert.scene.load import load_scene
    from splatcert.scene.scene import Scene, scene_from_tensors
    from splatcert.splats.files import load_splats
    from splatcert.splats.gaussians import Splats
    from splatcert.splats.ply import save_ply
    from splatcert.training.optimise import train
    from splatcert.verification.checks import Check, Verification

__version__ = "0.1.0"

__all__ = [
    "Boxes",
    "Camera",
    "Capture",
    "Certificate",
    "CertifyConfig",
    "Check",
    "Constant",
    "Diagnosis",
    "Family",
    "Flag",
    "GuidedScale",
    "InputError",
    "LearnConfig",
    "OwnMap",
    "PaperScale",
    "PathPromise",
    "Render",
    "ReportConfig",
    "Scale",
    "Scene",
    "SceneViews",
    "Splats",
    "TrainConfig",
    "Verification",
    "View",
    "ViewPredictor",
    "__version__",
    "certify",
    "certify_family",
    "doctor",
    "learn",
    "load_certificate",
    "load_predictor",
    "load_scene",
    "load_splats",
    "open_capture",
    "open_view",
    "render",
    "save_ply",
    "scene_from_tensors",
    "train",
    "verify",
    "write_report",
]

_HOMES = {
    "Boxes": "splatcert.conformal.boxes",
    "Camera": "splatcert.camera",
    "Capture": "splatcert.capture",
    "Certificate": "splatcert.certificate.certificate",
    "CertifyConfig": "splatcert.config",
    "Check": "splatcert.verification.checks",
    "Constant": "splatcert.scales.maps",
    "Diagnosis": "splatcert.checkup.diagnose",
    "Family": "splatcert.certificate.family",
    "Flag": "splatcert.conformal.boxes",
    "GuidedScale": "splatcert.scales.guided",
    "InputError": "splatcert.errors",
    "LearnConfig": "splatcert.config",
    "OwnMap": "splatcert.scales.maps",
    "PaperScale": "splatcert.scales.paper",
    "PathPromise": "splatcert.config",
    "Render": "splatcert.raster.render",
    "ReportConfig": "splatcert.config",
    "Scale": "splatcert.scales.scale",
    "Scene": "splatcert.scene.scene",
    "SceneViews": "splatcert.difficulty.views_file",
    "Splats": "splatcert.splats.gaussians",
    "TrainConfig": "splatcert.config",
    "Verification": "splatcert.verification.checks",
    "View": "splatcert.raster.view",
    "ViewPredictor": "splatcert.difficulty.predictor",
    "certify": "splatcert.pipeline",
    "certify_family": "splatcert.families.certify",
    "doctor": "splatcert.checkup.diagnose",
    "learn": "splatcert.pipeline",
    "load_certificate": "splatcert.deploy",
    "load_predictor": "splatcert.difficulty.predictor",
    "load_scene": "splatcert.scene.load",
    "load_splats": "splatcert.splats.files",
    "open_capture": "splatcert.capture",
    "open_view": "splatcert.raster.render",
    "render": "splatcert.raster.render",
    "save_ply": "splatcert.splats.ply",
    "scene_from_tensors": "splatcert.scene.scene",
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
