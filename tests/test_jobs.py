# SPDX-License-Identifier: Apache-2.0
"""Jobs that wait for each other: in this process and in several, also when one dies."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from splatcert.training.jobs import ClusterError, Job, JobError, NotBegun, run_jobs
from waiting import PATIENCE, until


def write(path: Path, needed: tuple[Path, ...] = ()) -> str:
    assert all(one.exists() for one in needed)
    path.write_text("done")
    return path.name


def fail(message: str) -> None:
    raise ValueError(message)


def die() -> None:
    os._exit(7)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_begins_when_those_it_waits_for_are_done(tmp_path, workers):
    a, b, c, d = (tmp_path / name for name in "abcd")
    jobs = [
        Job("a", write, (a,)),
        Job("b", write, (b, (a,)), after=("a",)),
        Job("c", write, (c, (a,)), after=("a",)),
        Job("d", write, (d, (b, c)), after=("b", "c")),
    ]
    seen: list[tuple[str, ...]] = []
    outcomes = list(run_jobs(jobs, workers=workers, watch=lambda names: seen.append(tuple(names))))
    assert [o.error for o in outcomes] == [None] * 4
    assert outcomes[0].job.name == "a" and outcomes[3].result == "d"
    assert max(map(len, seen)) <= workers and seen[0] == ("a",)


def test_a_failure_takes_along_only_what_waits_for_it(tmp_path):
    jobs = [
        Job("bad", fail, ("no such thing",)),
        Job("after bad", write, (tmp_path / "x",), after=("bad",)),
        Job("after that", write, (tmp_path / "y",), after=("after bad",)),
        Job("good", write, (tmp_path / "z",)),
    ]
    found = {o.job.name: o for o in run_jobs(jobs)}
    assert isinstance(found["bad"].error, ValueError)
    assert isinstance(found["after bad"].error, NotBegun)
    assert "because after bad failed" in str(found["after that"].error)
    assert found["good"].result == "z" and not (tmp_path / "x").exists()


def test_a_process_that_dies_is_reported_and_the_rest_goes_on(tmp_path):
    jobs = [Job("dies", die), Job("lives", write, (tmp_path / "x",)), Job("fails", fail, ("why",))]
    found = {o.job.name: o for o in run_jobs(jobs, workers=2)}
    assert isinstance(found["dies"].error, JobError) and "code 7" in str(found["dies"].error)
    assert found["lives"].result == "x" and str(found["fails"].error) == "why"


def sleep_and_tell(folder: Path) -> None:
    (folder / f"{os.getpid()}.pid").touch()
    time.sleep(10 * PATIENCE)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to see which processes live")
def test_jobs_of_a_killed_parent_stop(tmp_path):
    """Or they would write beside the jobs of the run that resumes."""
    jobs = [Job(name, sleep_and_tell, (tmp_path,)) for name in "ab"]
    parent = multiprocessing.get_context("spawn").Process(target=run_all, args=(jobs,))
    parent.start()
    until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    parent.kill()
    parent.join()
    children = [int(path.stem) for path in tmp_path.glob("*.pid")]
    until(lambda: not any(alive(child) for child in children))


def run_all(jobs) -> None:
    list(run_jobs(jobs, workers=2))


def test_waiting_for_what_does_not_come_before_is_refused():
    with pytest.raises(ValueError, match="waits for"):
        list(run_jobs([Job("a", fail, ("",), after=("b",)), Job("b", fail, ("",))]))
    with pytest.raises(ValueError, match="two jobs"):
        list(run_jobs([Job("a", fail, ("",)), Job("a", fail, ("",))]))


def test_a_cluster_that_does_not_answer_is_told_at_once(monkeypatch):
    """Ray itself would try a closed port for minutes, so it is not even asked."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install splatcert[ray]")
    connect, asked = ray.init, []

    def init(**options):
        asked.append(options["address"])
        return connect(**options)

    monkeypatch.setattr(ray, "init", init)
    for address in ("127.0.0.1:1", "nonsense"):
        with pytest.raises(ClusterError, match="no Ray cluster answers"):
            list(run_jobs([Job("a", fail, ("",))], ray_address=address))
    assert asked == ["nonsense"]
