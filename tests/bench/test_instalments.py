# SPDX-License-Identifier: Apache-2.0
"""A bench in instalments: small results are kept, models are lost, tables are the same."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from splatcert.cli import main
from splatcert_bench.run.fingerprint import Task, perform, read_stamp
from splatcert_bench.run.kept import MAX_BYTES, drop_passing, keep, take_over
from splatcert_bench.run.plan import left, skipped_jobs
from splatcert_bench.site.panels import PANELS

SMALL = 'profile = "smoke"\n[study]\nmethods = ["gsu", "ensemble"]\n'


def bench(config: Path, out: Path, *options: str) -> int:
    return main(["bench", str(config), "-o", str(out), "--threads", "1", *options])


def trained(out: Path) -> set[str]:
    """Jobs of this folder whose models are there."""
    return {str(path.parent.relative_to(out)) for path in out.glob("scenes/**/splats.ply")}


def without_pictures(out: Path) -> dict:
    """The results but for the figures that show views, which are not kept."""
    found = json.loads((out / "results.json").read_text())
    named = {picture["name"] for picture in found.pop("pictures")}
    assert named | found["missing"].keys() >= PANELS.keys()
    return found | {"missing": {n: why for n, why in found["missing"].items() if n not in PANELS}}


def test_three_machines_give_the_tables_of_one(tmp_path, capsys):
    config, kept = tmp_path / "small.toml", tmp_path / "kept"
    config.write_text(SMALL)
    assert bench(config, tmp_path / "whole") == 0
    whole = without_pictures(tmp_path / "whole")
    capsys.readouterr()

    first = tmp_path / "first"
    assert bench(config, first, "--keep", str(kept), "--only", "*/certify*,*/guide-source") == 0
    assert "tables" not in capsys.readouterr().out and not (first / "results.json").exists()
    assert not [path for path in kept.rglob("*") if path.suffix in (".ply", ".safetensors")]
    assert (kept / "pools/pool/made-1.json").is_file()
    assert (kept / "pools/pool/made-1.guide.json").is_file()
    assert not list(kept.rglob("guide-source.npz")), "guides are learned"
    shutil.rmtree(first)

    second = tmp_path / "second"
    assert bench(config, second, "--keep", str(kept), "--only", "made-1") == 0
    said = capsys.readouterr()
    assert "left for later" in said.out and "made-2/train" not in said.err
    assert all(name.startswith("scenes/made-1/") for name in trained(second))
    part = json.loads((second / "results.json").read_text())
    assert {study["scene"] for study in part["studies"]} == {"made-1"}
    assert part["unfinished"]["made-2"] == part["unfinished"]["made-3"] == "has not been studied"
    assert part["unfinished"]["learn/paper"] == "its predictors have not been learned yet"
    assert "## Not run yet" in (second / "results.md").read_text()
    shutil.rmtree(second)

    third = tmp_path / "third"
    assert bench(config, third, "--keep", str(kept)) == 0
    assert "scenes/made-1/member_00" not in trained(third), "only finished jobs needed it"
    assert not list(kept.rglob("*.picture.npz")), "a photograph shows in them"
    assert without_pictures(third) == whole

    last = tmp_path / "last"
    assert bench(config, last, "--keep", str(kept)) == 0
    assert trained(last) == set() and without_pictures(last) == whole


def test_an_unknown_name_is_refused(tmp_path, capsys):
    config = tmp_path / "small.toml"
    config.write_text(SMALL)
    assert bench(config, tmp_path / "out", "--only", "made-1,nowhere") == 2
    assert "--only 'nowhere' matches no scene" in capsys.readouterr().err


def produce(paths: tuple[Path, ...], text: str) -> None:
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.fixture
def chain(tmp_path):
    """A model that is too large to keep, its study and a table, each read by the next."""
    out = tmp_path / "out"
    model, record = out / "scenes" / "splats.ply", out / "scenes" / "train.json"
    study, table = out / "scenes" / "study.npz", out / "table"
    train = Task(
        "a/train", "train", produce, ((model, record), "1"), {}, (model, record), (), (model,)
    )
    look = Task("a/study", "study", produce, ((study,), "2"), {}, (study,), ("a/train",))
    tell = Task("told", "table", produce, ((table,), "3"), {}, (table,), ("a/study",))
    tasks = [train, look, replace(tell, is_light=True)]
    for task in tasks:
        perform(out / "jobs", task)
        keep(tmp_path / "kept", out, task)
    return tmp_path, out, tasks


def elsewhere(tmp_path: Path, out: Path, tasks: list[Task]) -> Path:
    """An empty output folder of the same name."""
    shutil.move(out, tmp_path / f"gone-{len(list(tmp_path.iterdir()))}")
    (out / "jobs").mkdir(parents=True)
    return out / "jobs"


def names(tasks: list[Task]) -> list[str]:
    return [task.name for task in tasks]


def test_a_lost_model_is_trained_again_only_if_an_unfinished_job_reads_it(chain):
    tmp_path, out, tasks = chain
    stamps = elsewhere(tmp_path, out, tasks)
    assert take_over(tmp_path / "kept", out, tasks) == names(tasks)
    assert not (out / "scenes/splats.ply").exists() and left(stamps, tasks) == []
    retold = [*tasks[:2], replace(tasks[2], settings={"new": 1})]
    assert names(left(stamps, retold)) == ["told"]
    anew = [tasks[0], replace(tasks[1], settings={"new": 1}), tasks[2]]
    assert names(left(stamps, anew)) == ["a/train", "a/study", "told"]


@pytest.mark.parametrize("harm", ["other bytes", "link", "large", "no stamp", "cut stamp", "names"])
def test_a_kept_file_that_is_not_what_its_stamp_says_is_not_taken_over(chain, harm):
    tmp_path, out, tasks = chain
    elsewhere(tmp_path, out, tasks)
    kept = tmp_path / "kept"
    study, stamp = kept / "scenes" / "study.npz", kept / "jobs" / "a.study.json"
    if harm == "other bytes":
        study.write_text("4")
    elif harm == "link":
        study.rename(tmp_path / "elsewhere")
        study.symlink_to(tmp_path / "elsewhere")
    elif harm == "large":
        with study.open("ab") as file:
            file.truncate(MAX_BYTES + 1)
    elif harm == "no stamp":
        stamp.unlink()
    elif harm == "cut stamp":
        stamp.write_text(stamp.read_text()[:40])
    else:
        stamp.write_text(stamp.read_text().replace("scenes/study.npz", "../study.npz"))
    assert "a/study" not in take_over(kept, out, tasks)
    assert names(left(out / "jobs", tasks))[:2] == ["a/train", "a/study"]
    assert not (out / "scenes/study.npz").exists()


def test_a_model_that_came_out_differently_redoes_what_reads_it(chain):
    tmp_path, out, tasks = chain
    stamps = elsewhere(tmp_path, out, tasks)
    (out / "scenes").mkdir()
    (out / "scenes/splats.ply").write_text("another run")
    assert "a/train" not in take_over(tmp_path / "kept", out, tasks)
    other = replace(tasks[0], arguments=(tasks[0].outputs, "another run"))
    perform(stamps, other)
    assert names(left(stamps, [other, *tasks[1:]])) == ["a/study", "told"]


def test_times_do_not_redo_what_does_not_show_them(chain):
    _, out, tasks = chain
    dated = replace(tasks[0], dated=tasks[0].outputs[1:], settings={"again": 1})
    perform(out / "jobs", dated)
    perform(out / "jobs", tasks[1])
    dated.outputs[0].unlink()
    slower = replace(dated, function=produce_slowly, arguments=(dated.outputs,))
    assert perform(out / "jobs", slower) is not None
    assert left(out / "jobs", [dated, tasks[1]]) == []
    showing = replace(tasks[1], reads_times=True)
    assert names(left(out / "jobs", [dated, showing])) == ["a/study"]


def produce_slowly(paths: tuple[Path, ...]) -> None:
    produce(paths[:1], "1")
    produce(paths[1:], "it took longer")


def test_what_was_kept_for_a_job_goes_once_that_is_done(chain):
    tmp_path, out, tasks = chain
    source = replace(tasks[1], passing=True)
    kept = tmp_path / "kept" / "scenes" / "study.npz"
    drop_passing(tmp_path / "kept", out, [tasks[0], source, replace(tasks[2], settings={"n": 1})])
    assert kept.is_file()
    drop_passing(tmp_path / "kept", out, [tasks[0], source, tasks[2]])
    assert not kept.exists()
    elsewhere(tmp_path, out, tasks)
    assert "a/study" in take_over(tmp_path / "kept", out, [tasks[0], source, tasks[2]])
    assert left(out / "jobs", [tasks[0], source, tasks[2]]) == []


def test_a_selection_runs_what_it_reads_and_leaves_other_scenes_alone(chain):
    _, out, tasks = chain
    other = replace(tasks[0], name="b/train")
    pool = replace(tasks[2], name="learn/pool", after=("a/study", "b/train"))
    every = [*tasks[:2], other, pool]
    stamps = out / "jobs"
    assert skipped_jobs(stamps, every, []) == set()
    assert skipped_jobs(stamps, every, ["a"]) == {"b/train", "learn/pool"}
    fresh = [replace(task, settings={"new": 1}) for task in every]
    assert skipped_jobs(stamps, fresh, ["a/st*"]) == {"b/train", "learn/pool"}
    assert skipped_jobs(stamps, fresh, ["b"]) == {"a/train", "a/study", "learn/pool"}
    assert skipped_jobs(stamps, fresh, ["?"]) == set()


def test_stamps_know_processor_time(chain):
    _, out, _ = chain
    stamp = read_stamp(out / "jobs", "a/train")
    assert stamp is not None and stamp.processor_seconds is not None
