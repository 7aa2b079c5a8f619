# SPDX-License-Identifier: Apache-2.0
"""`splatcert doctor`: every back end is compared, timed and described; a wrong one is found."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from splatcert import cli
from splatcert.checkup import agreement, diagnose, speed
from splatcert.checkup.agreement import measure_agreement
from splatcert.checkup.diagnose import Diagnosis, Finding, doctor
from splatcert.checkup.machine import Adapter
from splatcert.checkup.scenes import agreement_scenes, made_scene
from splatcert.checkup.words import COLUMNS, closing_lines, facts, finding_row, machine_lines
from splatcert.raster import native
from splatcert.raster.native import NativeView
from splatcert.raster.render import BACKENDS, unavailable
from splatcert.witnesses import album
from splatcert.witnesses.maps import WitnessMaps

PAGE = Path(__file__).resolve().parents[2] / "docs/doctor.md"
BLOCK = re.compile(r"(```text\n\$ splatcert doctor\n)(.*?)(```\n)", re.S)


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("SPLATCERT_UPDATE_DOCS"):
            patch.setattr(speed, "ENOUGH", 0.0)  # one run each: no test looks at the rates
            patch.setattr(speed, "FAST", 0.0)
        return doctor()


def test_every_back_end_is_examined_under_every_instruction_set(diagnosis):
    names = [one.name for one in diagnosis.findings]
    sets = [f"cpu {isa}" for isa in native.available_isas()]
    assert names == [*sets, *(name for name in BACKENDS if name != "cpu")]
    assert native.isa() == diagnosis.machine.instruction_set


def test_back_ends_that_run_agree_and_the_others_say_why_not(diagnosis):
    for one in diagnosis.findings:
        assert (one.reason is None) == (unavailable(one.backend) is None)
        assert (one.agreement is None) == (one.speed is None) == (one.reason is not None)
        assert one.faults == ()
        if one.speed is not None:
            assert min(one.speed.renders, one.speed.queries, one.speed.field_steps) > 0
    assert diagnosis.healthy


def test_a_back_end_with_a_wrong_transpose_or_picture_is_found(monkeypatch):
    scenes = [made_scene("small", 60, 24, size=0.1, opacity=1.0)]
    assert measure_agreement("cpu", scenes).faults("cpu") == ()
    right = NativeView.scatter
    monkeypatch.setattr(NativeView, "scatter", lambda self, image: right(self, image) * 1.001)
    (fault,) = measure_agreement("cpu", scenes).faults("cpu")
    assert fault.startswith("adjoint error")
    monkeypatch.setattr(NativeView, "scatter", right)
    shown = NativeView.composite
    monkeypatch.setattr(NativeView, "composite", lambda self, values: shown(self, values) + 1e-3)
    faults = " ".join(measure_agreement("cpu", scenes).faults("cpu"))
    assert "of the numbers differ by more than 0.0001" in faults


def test_wrong_answers_of_photographs_are_found(monkeypatch):
    scenes, right = [made_scene("small", 60, 24, size=0.1, opacity=1.0)], album.ask

    def louder(*asked):
        return WitnessMaps(right(*asked).planes * 1.01)

    monkeypatch.setattr(album, "ask", louder)
    assert measure_agreement("cpu", scenes).faults("cpu")


def test_bits_that_change_are_a_fault_except_in_the_transpose_of_cuda():
    fine = agreement.Agreement(1e-6, 1e-7, 0.0, 1e-8, True, False)
    assert fine.faults("cuda") == ()
    assert fine.faults("gpu") == ("a second transpose has other bits",)
    assert replace(fine, repeats=False).faults("cuda") == ("a second render has other bits",)


def test_the_scenes_are_the_same_every_time():
    one, other = agreement_scenes(), agreement_scenes()
    assert all((a.values == b.values).all() for a, b in zip(one, other, strict=True))


def test_a_wrong_back_end_is_exit_code_1_and_named(diagnosis, monkeypatch, capsys):
    wrong = Finding(backend="gpu", agreement=diagnosis.findings[0].agreement, faults=("it is off",))
    ill = Diagnosis(diagnosis.machine, (*diagnosis.findings[:1], wrong))
    monkeypatch.setattr(diagnose, "doctor", lambda on: ill)
    assert cli.main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert "do not use gpu" in printed and "it is off" in printed
    assert cli.main(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["healthy"]
    assert [one["verdict"] for one in told["backends"]] == ["agrees", "disagrees"]


def test_the_facts_for_scripts_are_complete(diagnosis):
    told = facts(diagnosis)
    assert json.loads(json.dumps(told)) == told
    assert told["machine"]["splatcert"] and told["machine"]["threads"] >= 1
    assert {"agreement", "speed", "reason", "faults"} <= set(told["backends"][0])


def test_a_second_gpu_is_named_with_how_to_choose_it(diagnosis):
    chip = Adapter("A Chip 3", "IntegratedGPU", "Vulkan")
    told = machine_lines(replace(diagnosis.machine, other_adapters=(chip,)))["GPU"]
    assert "Not used: A Chip 3 (IntegratedGPU; Vulkan)" in told and "SPLATCERT_GPU" in told


def test_the_page_shows_what_doctor_prints(diagnosis, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "112")
    monkeypatch.setattr(diagnose, "doctor", lambda on: diagnosis)
    assert cli.main(["doctor"]) == 0
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    if os.environ.get("SPLATCERT_UPDATE_DOCS"):
        page = BLOCK.sub(lambda found: f"{found[1]}{printed}{found[3]}", page)
        PAGE.write_text(page, encoding="utf-8")
    found = BLOCK.search(page)
    assert found is not None
    shown = found[2].splitlines()
    assert shown[5].split("  ")[0] == COLUMNS[0] and all(name in shown[5] for name in COLUMNS)
    labels = {*machine_lines(diagnosis.machine), "Timed on", "Verdict"}
    assert labels <= {line[:14].strip() for line in shown}
    assert labels <= {line[:14].strip() for line in printed.splitlines()}
    assert set(closing_lines(diagnosis)) >= {"Timed on", "Verdict"}
    rows = [line for line in shown if re.match(r"(cpu \w+|reference|gpu) +agrees", line)]
    width = len(finding_row(diagnosis.findings[0]))
    assert rows and all(len(re.split(r" {2,}", row)) == width for row in rows)
