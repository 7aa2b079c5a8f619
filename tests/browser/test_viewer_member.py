# SPDX-License-Identifier: Apache-2.0
"""`splatcert view FAMILY --member NAME` in a real browser: the member's boxes, and its promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import splatcert as sc
from certified_capture import HELD_OUT, made_capture, made_model, made_photos, made_truth
from splatcert.capture import Capture
from splatcert.splats.files import save_ply

pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")


@pytest.fixture(scope="module")
def family(tmp_path_factory) -> tuple[sc.Family, Path]:
    """One model under two scales, saved beside its model."""
    folder, splats = tmp_path_factory.mktemp("family"), made_model(made_truth())
    save_ply(splats, folder / "model.ply")
    capture = Capture.in_memory(made_capture(made_photos()), splats, unseen=HELD_OUT)
    known = sc.certify_family({"model": capture}, scales=["paper", "constant"])
    known.save(folder / "stored")
    return known, folder


@pytest.mark.parametrize("member", ["paper", "constant"])
def test_the_page_shows_the_member_asked_for(page, seen, family, member):
    known, folder = family
    command = [sys.executable, "-m", "splatcert.cli", "view", str(folder / "stored")]
    command += ["--model", str(folder / "model.ply"), "--member", member, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while not said.endswith("}\n"):
            said += process.stdout.readline()
        address = json.loads(said)["page"]
        page.goto(address)
        page.locator("[data-factor]").wait_for()
        told = page.locator("[data-threshold]").first
        assert told.get_attribute("data-threshold") == f"{known[member].threshold:.6g}"
        assert "each of the 2 candidates (paper, constant)" in told.inner_text()
        process.terminate()
    assert known["paper"].threshold != known["constant"].threshold
    assert not seen.errors
