# SPDX-License-Identifier: Apache-2.0
"""Finished jobs are never redone; changed ones are."""

from dataclasses import replace
from pathlib import Path

import pytest

from splatcert_bench.run.evaluation import work_done
from splatcert_bench.run.fingerprint import Task, is_done, perform, read_stamp


def produce(path: Path, text: str, log: Path) -> None:
    with log.open("a") as file:
        file.write(f"{path.name} ")
    path.write_text(text)


def break_down() -> None:
    raise RuntimeError("out of luck")


@pytest.fixture
def pair(tmp_path):
    """A job, and one that reads what it leaves."""
    log = tmp_path / "log"
    a = Task("a", "make", produce, (tmp_path / "a", "1", log), {"text": "1"}, (tmp_path / "a",))
    b = Task("b", "use", produce, (tmp_path / "b", "2", log), {}, (tmp_path / "b",), ("a",))
    return tmp_path / "jobs", a, b, log


def test_what_is_done_is_not_done_again(pair):
    stamps, a, b, log = pair
    assert not is_done(stamps, a)
    assert perform(stamps, a) is not None and perform(stamps, b) is not None
    assert perform(stamps, a) is None and perform(stamps, b) is None
    assert is_done(stamps, a) and is_done(stamps, b) and log.read_text() == "a b "
    stamp = read_stamp(stamps, "a")
    assert stamp.seconds >= 0 and (stamp.load is None or stamp.load >= 0)
    assert stamp.peak_mib is None or stamp.peak_mib > 0


def test_another_setting_redoes_a_job_and_what_reads_other_content(pair):
    stamps, a, b, log = pair
    perform(stamps, a), perform(stamps, b)
    # Other settings, equal content: the reader has nothing new to read.
    same = replace(a, settings={"text": "1", "note": "new"})
    assert perform(stamps, same) is not None and perform(stamps, b) is None
    other = replace(a, settings={"text": "3"}, arguments=(a.arguments[0], "3", log))
    assert perform(stamps, other) is not None and perform(stamps, b) is not None
    assert log.read_text() == "a b a a b "


def test_a_lost_or_cut_file_is_made_again(pair):
    stamps, a, _, _ = pair
    perform(stamps, a)
    a.outputs[0].write_text("")
    assert not is_done(stamps, a) and perform(stamps, a) is not None
    a.outputs[0].unlink()
    assert perform(stamps, a) is not None
    (stamps / "a.json").write_text("{ not JSON")
    assert read_stamp(stamps, "a") is None and perform(stamps, a) is not None


def test_a_failure_leaves_its_traceback_and_no_stamp(pair):
    stamps, a, _, _ = pair
    broken = replace(a, function=break_down, arguments=())
    with pytest.raises(RuntimeError, match="out of luck"):
        perform(stamps, broken)
    assert "out of luck" in (stamps / "a.error.txt").read_text() and not is_done(stamps, broken)
    perform(stamps, a)
    assert not (stamps / "a.error.txt").exists()


def test_time_and_memory_are_summed_up_by_kind_of_job(pair):
    stamps, a, _, _ = pair
    for name in ("hall.v2/certify@0.01", "hall+seed-1/certify", "hall/member_03", "learn/pool@0.1"):
        perform(stamps, replace(a, name=name))
    found = work_done(stamps)
    assert found["jobs"].startswith("4 in ")
    kinds = {name for name in found if name.startswith("jobs, ")}
    assert kinds == {"jobs, certify", "jobs, learn", "jobs, member"}
    assert found["jobs, certify"].startswith("2, 0 s of processor time")
