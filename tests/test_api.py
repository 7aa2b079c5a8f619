# SPDX-License-Identifier: Apache-2.0
"""The public names, and that they cost nothing until they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import splatcert
from splatcert import _native

PUBLIC = {
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
}


def test_the_public_names_are_these():
    assert set(splatcert.__all__) == PUBLIC == set(dir(splatcert))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_resolves(name):
    assert getattr(splatcert, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'certfy'"):
        splatcert.certfy  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    heavy = "import sys, splatcert; print({'torch', 'numpy', 'cv2', 'tyro'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_stub_declares_what_the_extension_has():
    def public(names):
        return {name for name in names if not name.startswith("_")}

    source = Path(splatcert.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    declared = [node for node in ast.parse(source).body if hasattr(node, "name")]
    assert public(node.name for node in declared) == public(dir(_native))
    for node in declared:
        if isinstance(node, ast.ClassDef):
            if issubclass(getattr(_native, node.name), Exception):
                continue
            members = {member.name for member in node.body if hasattr(member, "name")}
            assert public(members) == public(dir(getattr(_native, node.name)))


def test_no_public_name_is_that_of_a_package():
    """Importing the package would put it in the place of the name."""
    packages = {path.stem for path in Path(splatcert.__file__).parent.iterdir()}
    assert not packages & set(splatcert.__all__) - {"__version__"}


@pytest.mark.parametrize("call", ["load_certificate", "verify"])
def test_reading_and_verifying_a_certificate_needs_no_torch(call):
    stored = Path(__file__).parent / "golden" / "schema-2" / "certificate"
    code = f"""if True:
        import sys, splatcert as sc
        found = sc.{call}({str(stored)!r})
        assert getattr(found, "passed", True)
        print('torch' in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
