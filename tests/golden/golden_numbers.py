# SPDX-License-Identifier: Apache-2.0
"""The numbers of small certificates, as plain values: what a change of structure must not move.

    python tests/golden/golden_numbers.py    writes numbers.json beside this file

Run it only where the method itself changes, and say so in the changelog.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import certified_capture as made
import splatcert as sc
from splatcert.raster import native
from splatcert.scales.named import chosen_predictor
from splatcert.scales.paper import PaperScale

STORED = Path(__file__).with_name("numbers.json")
CASES = {
    "cpu, default predictor": {"predictor": "default"},
    "cpu, no predictor": {"predictor": None},
    "cpu, unit of the batch": {"predictor": "made", "unit": "batch"},
    "cpu, masks": {"predictor": "made", "masks": True},
    "reference, default predictor": {"predictor": "default", "backend": "reference"},
    "reference, no predictor, masks": {"predictor": None, "backend": "reference", "masks": True},
    "cpu, default predictor, wide holes": {"predictor": "default", "holes": "wide"},
    "reference, masks, wide holes": {
        "predictor": "made", "backend": "reference", "masks": True, "holes": "wide",
    },
}  # fmt: skip


def environment() -> dict[str, str]:
    """What may move a last bit: the same bits are asked for only where all of it agrees.

    Torch's libraries choose kernels by the maker of the processor, so `reference` depends on it.
    NumPy's OpenBLAS chooses by the processor too, unless it is told which kernels to use.
    """
    return {
        "machine": platform.machine(),
        "processor": processor(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "vector units": torch.backends.cpu.get_cpu_capability(),
        "blas": os.environ.get("OPENBLAS_CORETYPE", ""),
    }


def processor() -> str:
    """The maker of the processor, where Linux names it."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.is_file() else []
    return next((line.split()[-1] for line in lines if line.startswith("vendor_id")), "")


def golden_numbers() -> Iterator[tuple[str, dict]]:
    """Every case by name. The portable kernels exist on every machine."""
    before = native.isa()
    native.set_isa("portable")
    try:
        for name, case in CASES.items():
            yield name, numbers_of(**case)
    finally:
        native.set_isa(before)


def numbers_of(
    predictor: str | None,
    *,
    unit: str = "deployed",
    backend: str = "cpu",
    masks: bool = False,
    holes: str = "paper",
) -> dict:
    cameras, pictures = made.made_photos()
    shown = None
    if masks:
        shown = {name: torch.ones(p.shape[:2], dtype=torch.bool) for name, p in pictures.items()}
        for mask in shown.values():
            mask[:10, :25] = False
    scene = made.scene_from_tensors(cameras, pictures, held_out=made.HELD_OUT, masks=shown)
    chosen = made.made_predictor() if predictor == "made" else None
    if predictor == "default":
        chosen = chosen_predictor("default", scene)[1]
    certificate = sc.certify(
        scene,
        made.made_model(made.made_truth()),
        unseen=made.HELD_OUT,
        scale=PaperScale(chosen, unit, holes),
        config=sc.CertifyConfig(unit=unit),
        backend=backend,
    )
    record = certificate.record
    boxes = certificate.predict(cameras[made.HELD_OUT[3]])
    return {
        "q": record.guarantee.threshold,
        "statement": record.guarantee.statement,
        "scores": {view.name: view.score for view in record.calibration},
        "factors": {view.name: view.factor for view in record.calibration},
        "fields": {view.name: view.field for view in record.calibration},
        "poses": {view.name: view.pose for view in record.calibration},
        "images": {view.name: view.image for view in record.calibration},
        "frozen": record.labels.frozen,
        "splats": record.model.splats,
        "exchangeability": record.evenness.p_value,
        "splits": {k: [v.coverage, v.width, v.saving] for k, v in record.splits.scales.items()},
        "reference": record.scale.parameters["reference"],
        "feature means": record.scale.parameters["feature_means"],
        "feature stds": record.scale.parameters["feature_stds"],
        "field": [record.field.prior, record.field.ridge, record.field.residual],
        "descriptors": certificate.views.held_out.descriptors.tolist(),
        "oracle": certificate.views.held_out.oracle.tolist(),
        "training descriptors": digest(certificate.views.training.descriptors),
        "training oracle": digest(certificate.views.training.oracle),
        "half-widths": digest(np.asarray(boxes.half_width)),
        "lower": digest(np.asarray(boxes.lower)),
        "mean half-width": float(np.asarray(boxes.half_width, dtype=np.float64).mean()),
    }


def digest(array: np.ndarray) -> str:
    """The bits of an array as one sum."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


if __name__ == "__main__":
    content = {"environment": environment(), "numbers": dict(golden_numbers())}
    STORED.write_text(json.dumps(content, indent=1) + "\n")
