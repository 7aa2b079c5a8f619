# SPDX-License-Identifier: Apache-2.0
"""The smoke profile from made photographs to tables; killed, edited, broken."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from splatcert.capture import Capture
from splatcert.certificate.store import VIEWS
from splatcert.cli import main
from splatcert.config import CertifyConfig
from splatcert.deploy import load_certificate
from splatcert.difficulty.factor import LAMBDA_GRID
from splatcert.difficulty.guided.guide import load_guide
from splatcert.difficulty.views_file import SceneViews
from splatcert.pipeline import certify
from splatcert.scales.guided import GuidedScale
from splatcert.scene.roles import LabelLedger
from splatcert.splats.files import load_splats
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.run.profiles import read_config
from splatcert_bench.run.settings import FOLD_POOLS
from splatcert_bench.studies.access import count_access, joined, load_ledger, load_study_ledger
from splatcert_bench.studies.counts import EDGES
from splatcert_bench.studies.study import SHAPE
from splatcert_bench.studies.study_file import load_guided, load_study
from view_kinds import ready
from waiting import PATIENCE, until

VARIANT = '[[variant]]\nname = "seed-1"\nscenes = ["made-1"]\nseed = 1\n'
MAY_DIFFER = ("time", "results.md")
"""How names begin of files that show times."""


def tables(out: Path) -> dict[str, bytes]:
    """All that came out, but what shows a time."""
    files = [out / "results.json", *(out / "tables").rglob("*"), *(out / "figures").rglob("*")]
    files += sorted((out / "studies").glob("*.npz"))
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in files
        if path.is_file() and not path.name.startswith(MAY_DIFFER)
    }


def bench(config: Path, out: Path, *options: str) -> int:
    return main(["bench", str(config), "-o", str(out), "--threads", "1", *options])


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "smoke.toml"
    path.write_text('profile = "smoke"\n' + VARIANT)
    return path


@pytest.fixture(scope="module")
def whole(config) -> Path:
    """A bench that was left alone."""
    out = config.parent / "whole"
    assert bench(config, out) == 0
    return out


def test_smoke_gives_studies_predictors_and_tables(whole):
    names = {path.name for path in (whole / "studies").iterdir()}
    assert {"made-1-fastgs-model.npz", "made-1-fastgs-ensemble-mean.npz"} <= names
    assert {"made-1-vanilla-model.npz", "made-2-fastgs-model.ratios.npz"} <= names
    assert "made-1-seed-1-model.npz" in names and (whole / "tables" / "variants.md").is_file()
    assert not (whole / "scenes" / "made-1" / "seed-1" / "run").exists()  # it is a member
    pictures = sorted(name for name in names if name.endswith("picture.npz"))
    assert [name.split(".")[0] for name in pictures].count("made-1-fastgs-model") == 3
    assert pictures[3:] == [f"made-{k}-fastgs-model.median.picture.npz" for k in (2, 3)]
    assert json.loads((whole / "results.json").read_text())
    assert list((whole / "tables").glob("*.md")) and list((whole / "tables").glob("*.tex"))
    study = load_study(whole / "studies" / "made-1-fastgs-model.npz")
    assert {SHAPE, "gsu", "gavis-64", "gavis-64-pv", "ensemble"} <= set(study.maps)
    assert study.predictions["pool"].sources == ("made-2", "made-3")
    assert study.predictions["strict"].sources == ("made-3",)
    raw = {pool: one.raw for pool, one in study.predictions.items()}
    assert not np.array_equal(raw["one-model"], raw["out-of-fold"])
    recipe = json.loads((whole / "pools/paper/made-1.json").read_text())["card"]
    assert (recipe["views"], recipe["penalty"], recipe["prior"]) == ("training", "rank", "flat")
    assert study.facts["labels.before"] == 0 and study.facts["labels.after"] == len(study)
    assert study.facts["packing.maps"] < 1e-4 and study.facts["packing.features"] < 1e-4
    assert not any(name.startswith(("latency", "seconds")) for name in study.facts)


def test_scores_of_the_shape_are_the_oracle_factors_of_the_certificate(whole):
    study = load_study(whole / "studies" / "made-2-fastgs-model.npz")
    views = SceneViews.load(whole / "scenes" / "made-2" / "fastgs" / "certificate" / VIEWS)
    assert views.held_out.names == study.names
    beta = Fraction(1, 10)
    for at, weight in enumerate(LAMBDA_GRID):
        ours = study.map(SHAPE).scores[:, study.beta_index(beta), at]
        assert np.array_equal(ours, views.oracle("held-out", beta, weight))


def test_what_is_deployed_agrees_with_the_identities(whole):
    """R_v(a b~) = a*_v / a_v and mean(a b~) = a_v, measured on maps."""
    for path in sorted((whole / "studies").glob("*-model.npz")):
        study = load_study(path)
        for pool, one in study.predictions.items():
            shape = SHAPE if "@" not in pool else pool.replace("pool", "gsu") + "-pv"
            if pool in FOLD_POOLS:  # learned late, when models may be gone: not measured
                assert not one.scores.size
                continue
            needed = study.map(shape).scores[:, :, LAMBDA_GRID.index(one.lambda_b)]
            assert np.allclose(one.scores, needed / one.factors[:, None], rtol=1.1e-6)
            assert np.allclose(one.means, one.factors, rtol=1.1e-6)


def test_access_is_counted_from_ledgers(config, whole):
    """Nothing of the target before its scales were fixed; a ledger that says otherwise counts."""
    study = load_study(whole / "studies" / "made-1-fastgs-model.npz")
    bench = Bench(read_config(config), whole, config.parent, config)
    sources = [bench.load(scene) for scene in ("made-2", "made-3")]
    assert study.facts["access.source.image"] == sum(len(scene.held_out) for scene in sources)
    assert study.facts["access.calibration.image"] == 11
    assert {study.facts[f"access.test.{kind}"] for kind in ("image", "selection")} == {0}
    assert study.facts["access.test.features"] == len(study) - 11
    certificate = load_certificate(Model(bench, "made-1", "fastgs").certificate)
    ledger = LabelLedger()
    used = ledger.record("source", "somebody", study.names)
    known = certificate.record, certificate.views
    leaked = count_access("made-1", *known, {"made-1": [used]}, ((), 0))
    assert leaked["access.test.image"] == leaked["access.test.selection"] == len(study) - 11
    early = count_access("made-1", *known, {}, joined([((), 0), ([used], 1)]))
    assert early["access.test.image"] == len(study) - 11 and early["access.calibration.image"] == 0


def test_every_job_that_opens_labels_keeps_a_ledger(config, whole):
    """The guided scale and the audit fix their scales first; guides name what they learned from."""
    bench = Bench(read_config(config), whole, config.parent, config)
    model = Model(bench, "made-1", "fastgs")
    held_out = bench.load("made-1").held_out
    for path, by in ((model.guided_ledger, "guided"), (model.audit_ledger, "audit")):
        (used,), fixed = load_study_ledger(path)
        assert (fixed, used.purpose, used.by) == (0, "evaluation", f"bench {by}")
        assert used.views == held_out.with_photo
    learned = load_ledger(bench.guide_ledger("strict"), "made-1")
    assert list(learned) == ["made-3"]
    (used,) = learned["made-3"]
    opened = bench.load("made-3").held_out.with_photo
    assert (used.purpose, used.by, used.views) == ("source", "bench guide", opened)


def test_pooled_pixels_of_the_guided_scale_are_counted(whole):
    """Every pixel once, in the main pool of main models, which the tables pool."""
    study = load_study(whole / "studies" / "made-2-fastgs-model.npz")
    stored = load_guided(whole / "studies" / "made-2-fastgs-model.guided.npz")
    for method in ("guided", "corrected"):
        one = stored[f"{method} pool"]
        assert one.counts.sum(axis=1).tolist() == study.pixels.tolist()
        assert one.tenths.sum(axis=(1, 2)).tolist() == study.pixels.tolist()
        covered = (np.cumsum(one.counts, axis=1) >= np.ceil(0.9 * study.pixels)[:, None]).argmax(1)
        exact = one.scores[:, study.beta_index("1/10")]
        assert np.allclose(EDGES[covered], exact, rtol=0.003) and (EDGES[covered] >= exact).all()
        assert not stored[f"{method} strict"].counts.size


def test_the_guided_scale_is_the_one_that_certify_deploys(config, whole):
    """With the guide that was learned without the target, around either centre."""
    guide = load_guide(whole / "pools" / "strict" / "made-2.guide.json")
    assert [row["scene"] for row in guide.card["scenes"]] == ["made-3"]
    bench = Bench(read_config(config), whole, config.parent, config)
    model = Model(bench, "made-2", "fastgs")
    splats = load_splats(model.run / "splats.ply")
    stored = load_guided(whole / "studies" / "made-2-fastgs-model.guided.npz")
    for method, center in (("guided", "render"), ("corrected", "corrected")):
        found = certify(
            Capture(scene=bench.load("made-2"), splats=splats, unseen_by="model"),
            scale=GuidedScale(guide, center),
            config=CertifyConfig(field=bench.config.field, splits=1),
            remember=False,
        ).record.calibration
        ours = stored[f"{method} strict"]
        assert ours.sources == ("made-3",)
        assert [view.score for view in found] == ours.scores[:, 1].tolist()


def test_a_finished_bench_does_nothing_again(config, whole, capsys):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.npz")}
    capsys.readouterr()
    assert bench(config, whole, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["done"] == said["jobs"] and said["failed"] == []
    assert before == {path: path.stat().st_mtime_ns for path in whole.rglob("*.npz")}


def test_killed_at_random_moments_it_goes_on_to_the_same_tables(config, whole, tmp_path):
    out, moments = tmp_path / "cut", random.Random(os.getpid())
    command = [sys.executable, "-m", "splatcert.cli", "bench", str(config), "-o", str(out)]
    for _ in range(2):
        child = subprocess.Popen(
            [*command, "--threads", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        done = len(list(out.glob("jobs/*.json")))
        until(lambda done=done: len(list(out.glob("jobs/*.json"))) > done, every=0.02)
        time.sleep(moments.uniform(0, 3))
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert bench(config, out) == 0
    assert tables(out) == tables(whole)


@pytest.fixture
def two_nodes():
    """A Ray cluster of two nodes, and the second of them.

    Ray gives a node half a minute to start, which a busy machine may exceed, so it may try again.
    """
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install splatcert[ray]")
    from ray.cluster_utils import Cluster

    for attempts_left in reversed(range(5)):
        cluster = Cluster()
        try:
            cluster.add_node(num_cpus=1)
            second = cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes(timeout=PATIENCE)
            ray.init(address=cluster.address, log_to_driver=False)
            break
        except Exception:
            cluster.shutdown()
            if not attempts_left:
                raise
        finally:
            ray.shutdown()  # the bench connects by itself
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_a_ray_cluster_of_two_nodes_gives_the_same_tables(
    config, whole, tmp_path, two_nodes, killed
):
    """Also when one of them goes down in the middle."""
    import ray

    (cluster, second), out = two_nodes, tmp_path / "out"

    def kill_in_the_middle() -> None:
        until(lambda: len(list(out.glob("jobs/*.json"))) >= 8)
        cluster.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill_in_the_middle)
    if killed:
        killer.start()
    assert bench(config, out, "--ray", cluster.address) == 0
    if killed:
        killer.join()
        until(lambda: sum(node["Alive"] for node in ray.nodes()) == 1, every=0.2)
    assert tables(out) == tables(whole)


def test_another_back_end_gives_the_same_tables_from_the_same_models(tmp_path):
    """Everything but training runs again on the GPU; its numbers differ by rounding.

    What is learned from few views amplifies rounding: one number in a hundred may differ by more.
    Without the guided scale: in pictures this small, one photograph more that sees a point counts.
    """
    device, path, out = ready("gpu"), tmp_path / "small.toml", tmp_path / "out"
    scenes = [f'[[scene]]\nname = "made-{k}"\nfamily = "{k}"\nmade = {k}\n' for k in (2, 3)]
    study = '[study]\nmethods = ["gsu"]\nridges = []\nguided = false\n'
    settings = f"[members]\ncount = 0\n{study}[field]\nmax_steps = 2\n"
    path.write_text('profile = "smoke"\n' + settings + "".join(scenes))
    assert bench(path, out, "--backend", "cpu") == 0
    model = out / "scenes/made-2/fastgs/run/splats.ply"
    first, trained = json.loads((out / "results.json").read_text()), model.stat().st_mtime_ns
    assert bench(path, out, "--backend", device) == 0
    again = json.loads((out / "results.json").read_text())
    assert model.stat().st_mtime_ns == trained
    assert {study["settings"]["renderer"] for study in again["studies"]} == {"splatcert-gpu"}
    ours, theirs = (list(numbers(found["tables"])) for found in (first, again))
    close = [
        b == pytest.approx(a, rel=1e-3, abs=1e-3, nan_ok=True)
        for a, b in zip(ours, theirs, strict=True)
    ]
    assert len(ours) > 100 and close.count(False) <= len(ours) // 100
    assert theirs == pytest.approx(ours, rel=1e-3, abs=0.1, nan_ok=True)


def numbers(found: object) -> Iterator[float]:
    """Every number of a JSON value, in order."""
    if isinstance(found, (dict, list)):
        for one in found.values() if isinstance(found, dict) else found:
            yield from numbers(one)
    elif isinstance(found, (int, float)) and not isinstance(found, bool):
        yield found


def test_a_scene_that_fails_is_told_and_the_others_go_on(config, tmp_path, capsys):
    (tmp_path / "bad" / "images").mkdir(parents=True)
    (tmp_path / "bad" / "transforms.json").write_text("{}")
    path = tmp_path / "bad.toml"
    path.write_text(
        'profile = "smoke"\n[train]\niterations = 20\n[members]\ncount = 0\n'
        '[[scene]]\nname = "good"\nfamily = "a"\nmade = 1\n'
        '[[scene]]\nname = "bad"\nfamily = "b"\npath = "bad"\n'
    )
    assert bench(path, tmp_path / "out") == 2
    said = capsys.readouterr()
    assert "bad/train:" in said.err and "frames" in said.err and "Traceback" not in said.err
    assert (tmp_path / "out/scenes/good/fastgs/run/splats.ply").is_file()
    assert "bad/train" in (tmp_path / "out/jobs/bad.train.error.txt").name.replace(".", "/", 1)


def test_a_misspelt_method_is_told_before_any_work(tmp_path, capsys):
    path = tmp_path / "methods.toml"
    path.write_text('profile = "smoke"\n[study]\nmethods = ["gsu", "gavis"]\n')
    assert bench(path, tmp_path / "out") == 2
    assert "no baseline 'gavis'" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_captures_that_are_not_there_are_named_before_any_work(tmp_path, capsys):
    path = tmp_path / "missing.toml"
    path.write_text('profile = "cpu"\n[[scene]]\nname = "a"\nfamily = "f"\npath = "nowhere"\n')
    assert bench(path, tmp_path / "out") == 2
    assert "no capture at" in capsys.readouterr().err and not (tmp_path / "out").exists()
