# SPDX-License-Identifier: Apache-2.0
"""What was photographed: cameras, photos, sparse points, and who may see labels."""

from splatcert.scene.cameras import Camera
from splatcert.scene.load import load_scene
from splatcert.scene.points import SparsePoints
from splatcert.scene.roles import (
    CalibrationView,
    EvaluationView,
    HeldOut,
    LabelLedger,
    LabelledView,
    QueryView,
    SourceView,
    TrainingView,
    require_labels,
)
from splatcert.scene.scene import Scene, TrainingViews, scene_from_tensors

__all__ = [
    "CalibrationView",
    "Camera",
    "EvaluationView",
    "HeldOut",
    "LabelLedger",
    "LabelledView",
    "QueryView",
    "Scene",
    "SourceView",
    "SparsePoints",
    "TrainingView",
    "TrainingViews",
    "load_scene",
    "require_labels",
    "scene_from_tensors",
]
