# SPDX-License-Identifier: Apache-2.0
"""The TOML file of a bench: what it may say, and what is refused by name."""

import dataclasses
from pathlib import Path

import pytest

from splatcert.config import TrainConfig
from splatcert_bench.run.layout import Bench
from splatcert_bench.run.profiles import PROFILES, read_config
from splatcert_bench.run.settings import BenchConfig, BenchError

SCENES = """
[[scene]]
name = "truck"
family = "outdoor"
path = "truck"
[[scene]]
name = "train"
family = "outdoor"
path = "train"
[[scene]]
name = "room"
family = "indoor"
path = "captures/room"
model = "runs/room"
densities = ["vanilla"]
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "bench.toml"
    path.write_text(text)
    return read_config(path)


def test_a_file_overrides_what_it_names_and_nothing_else(tmp_path):
    config = read(tmp_path, 'profile = "cpu"\n[train]\niterations = 100\n' + SCENES)
    default = PROFILES["cpu"]
    assert config.train.iterations == 100 and config.train.density == default.train.density
    assert config.members == default.members and config.study == default.study
    assert [entry.name for entry in config.scene] == ["truck", "train", "room"]
    assert config.scene[2].densities == ("vanilla",) and config.scene[0].model is None


def test_pools_leave_out_the_target_and_its_family(tmp_path):
    extra = '[[pool]]\nname = "outdoor"\nsources = ["truck", "train"]\n'
    pools = read(tmp_path, 'profile = "cpu"\n' + SCENES + extra).pools()
    assert pools["pool"]["truck"] == ("train", "room")
    assert pools["strict"] == {
        "truck": ("room",), "train": ("room",), "room": ("truck", "train")
    }  # fmt: skip
    assert pools["outdoor"] == {"room": ("truck", "train")}


def test_profiles_are_what_the_documentation_says():
    cpu, paper = PROFILES["cpu"], PROFILES["paper"]
    assert cpu.train == TrainConfig() and (cpu.capture.resolution, cpu.members.count) == (640, 5)
    assert (cpu.members.resolution, cpu.members.iterations) == (320, 2_100)
    assert not cpu.members.coarse_to_fine and paper.train.recipe == "published"
    assert (paper.train.iterations, paper.members.count) == (30_000, 10)
    assert paper.member_is_main() and not cpu.member_is_main()
    assert (cpu.evaluate.splits, cpu.evaluate.native_splits, cpu.evaluate.bootstrap) == (
        200, 100, 10_000
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('profile = "gpu"', "profile must be one of smoke, cpu, paper"),
        ('profile = "cpu"', "lists no scenes"),
        ('profile = "smoke"\nscenes = []', "scenes is not an entry"),
        ('profile = "smoke"\n[train]\niteration = 5', r"train.iteration is not an entry"),
        ('profile = "smoke"\n[train]\niterations = "5"', "train.iterations must be a whole number"),
        ('profile = "smoke"\n[train]\niterations = 0', "iterations must be at least 1"),
        ('profile = "smoke"\n[members]\nnumber = 5', "members.number is not an entry"),
        ('profile = "smoke"\n[study]\nbetas = ["1/5"]', "must contain 1/10"),
        ('profile = "cpu"\n[[scene]]\nname = "a"\npath = "a"', r"scene\[0\].family is missing"),
        ('profile = "cpu"\n[[scene]]\nname = "a"\nfamily = "f"', "either path or made"),
        ('profile = "cpu"\n[[scene]]\nname = "../a"\nfamily = "f"\nmade = 1', "becomes a folder"),
        (
            'profile = "smoke"\n[[pool]]\nname = "p"\nsources = ["x"]',
            "which is not a scene of this bench",
        ),
        (
            'profile = "smoke"\n[[scene]]\nname = "a"\nfamily = "f"\nmade = 1\nfull_members = 1',
            "full_members must be 0 .none. or at least 2",
        ),
        (
            'profile = "paper"\n[[scene]]\nname = "a"\nfamily = "f"\nmade = 1\nfull_members = 2',
            "full_members adds nothing",
        ),
        ("profile = ", "not valid TOML"),
        (
            'profile = "smoke"\n[[variant]]\nname = "v"\nscenes = ["made-1"]',
            "variant v changes nothing",
        ),
        (
            'profile = "smoke"\n[[variant]]\nname = "v"\nscenes = ["x"]\nseed = 1',
            "which is not a scene of this bench",
        ),
        (
            'profile = "smoke"\n[[variant]]\nname = "vanilla"\nscenes = ["made-1"]\nseed = 1',
            "densities = ..vanilla..",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(BenchError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(BenchError, match="cannot read"):
        read_config(tmp_path / "none.toml")


def test_the_file_of_the_real_captures_names_ten_scenes_and_no_machine():
    path = Path(__file__).parents[2] / "benchmarks" / "cpu.toml"
    config = read_config(path)
    assert len(config.scene) == 10 and config.profile == "cpu"
    assert not any(Path(entry.path or "/").is_absolute() for entry in config.scene)
    full = {entry.name for entry in config.scene if entry.full_members == 10}
    assert full == {"truck", "playroom"}  # garden is listed as not run yet
    vanilla = {entry.name for entry in config.scene if "vanilla" in entry.densities}
    assert vanilla == {"truck", "bicycle", "playroom"}
    assert set(config.pools()["strict"]["garden"]) == {"truck", "train", "drjohnson", "playroom"}


def test_variants_are_further_models_and_share_members_of_the_full_ensemble(tmp_path):
    listed = '[[variant]]\nname = "{}"\nscenes = ["truck"]\n{}\n'
    full = SCENES.replace('path = "truck"', 'path = "truck"\nfull_members = 3', 1)
    text = 'profile = "cpu"\n' + full
    text += listed.format("seed-2", "seed = 2") + listed.format("seed-3", "seed = 3")
    text += listed.format("long", 'recipe = "published"\niterations = 9000')
    bench = Bench(read(tmp_path, text), tmp_path / "out", tmp_path, tmp_path / "bench.toml")
    models = {model.label: model for model in bench.models()}
    assert list(models) == [
        "truck", "truck+seed-2", "truck+seed-3", "truck+long", "train", "room", "room+vanilla"
    ]  # fmt: skip
    long = models["truck+long"].config
    assert (long.iterations, long.recipe, long.seed) == (9_000, "published", 0)
    shared, own = models["truck+seed-2"], models["truck+seed-3"]
    assert shared.run == bench.folder("truck") / "full_02"
    assert shared.training_job == "truck/full_02"
    assert (own.run, own.training_job) == (own.folder / "run", "truck+seed-3/train")
    assert models["truck"].member is None and not models["truck+seed-2"].is_main


def test_path_traced_captures_are_a_family_and_a_bench_of_their_own():
    folder = Path(__file__).parents[2] / "benchmarks"
    made, real = (read_config(folder / name) for name in ("made.toml", "cpu.toml"))
    assert {entry.family for entry in made.scene} == {"path-traced"}
    assert "path-traced" not in {entry.family for entry in real.scene}
    assert not {entry.name for entry in made.scene} & {entry.name for entry in real.scene}


def test_the_documentation_names_every_key():
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    for part in dataclasses.fields(BenchConfig):
        kind = type(getattr(PROFILES["cpu"], part.name))
        assert part.name in page
        if part.name not in ("train", "field", "learn") and dataclasses.is_dataclass(kind):
            missing = [f.name for f in dataclasses.fields(kind) if f"{f.name}`" not in page]
            assert not missing, (part.name, missing)
