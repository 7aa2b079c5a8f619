# SPDX-License-Identifier: Apache-2.0
"""Every table and figure of made studies, and a page that cannot part from its numbers."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_studies import FAMILIES, MadeScene

from splatcert.cli import main
from splatcert.storage.whole import ArtefactError
from splatcert_bench.site.charts import CHARTS
from splatcert_bench.site.page import SECTIONS, results_page
from splatcert_bench.site.panels import PANELS
from splatcert_bench.site.results import read_json, read_times, write_results
from splatcert_bench.statistics.choices import Protocol
from splatcert_bench.studies.collection import BenchStudies
from splatcert_bench.studies.study_file import save_guided, save_study
from splatcert_bench.tables.registry import TABLES, TIMES
from splatcert_bench.tables.table import table_from_plain

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"evaluation": "results.md", "path_traced": "results-path-traced.md"}
"""Published pages by the folder of their numbers; captures of our own making have theirs."""
PROTOCOL = Protocol(splits=40, native_splits=20, resamples=500)
MACHINE = {"processor": "made up", "cores": 2}
VIEWS = {"train": 30, "bonsai": 31}


@pytest.fixture(scope="module")
def made():
    scenes = [MadeScene(scene, VIEWS.get(scene, 24)) for scene in FAMILIES]
    scenes += [MadeScene(scene, 14, backbone="vanilla") for scene in ("truck", "bicycle")]
    scenes += [MadeScene("truck", 14, backbone="seed-1")]
    return scenes + [MadeScene(scene, 14, centre="ensemble-mean") for scene in FAMILIES]


@pytest.fixture(scope="module")
def material(made):
    """Studies, ratios and pictures as a bench would hand them over."""
    studies = [scene.study() for scene in made]
    kept = [scene for scene in made[: len(FAMILIES)] if scene.scene in ("truck", "train", "bonsai")]
    ratios = {scene.ratios().study: scene.ratios() for scene in kept}
    shown = [made[list(FAMILIES).index(scene)] for scene in ("playroom", "truck", "garden")]
    pictures = []
    for scene in shown:
        order = np.argsort(scene.study().maps["gsu-pv"].scores[:, 1, 2])
        pictures += [scene.picture(int(order[at])) for at in (0, len(order) // 2, -1)]
    return studies, ratios, pictures


@pytest.fixture(scope="module")
def folder(material, tmp_path_factory):
    """A bench's folder: what it stores, and what was made of it."""
    studies, ratios, pictures = material
    out = tmp_path_factory.mktemp("bench")
    (out / "studies").mkdir()
    for study in studies:
        facts = {n: v for n, v in study.facts.items() if not n.startswith(("latency", "seconds"))}
        kept = dataclasses.replace(study, facts=facts)
        save_study(kept, out / "studies" / f"{study.key}.npz")
        save_guided(study.guided, out / "studies" / f"{study.key}.guided.npz")
    for key, counts in ratios.items():
        counts.save(out / "studies" / f"{key}.ratios.npz")
    for at, picture in enumerate(pictures):
        picture.save(out / "studies" / f"{picture.study}.{at}.picture.npz")
    write_results(out, studies, ratios, pictures, {"profile": "made"}, MACHINE, PROTOCOL)
    return out


def contents(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def tables(folder):
    found = read_json(folder / "results.json", "results")["tables"]
    return {plain["name"]: table_from_plain(plain) for plain in found}


def test_everything_is_made_and_drawn(folder):
    results, times = read_json(folder / "results.json", "results"), read_times(folder)
    assert set(results["missing"]) == {"panel-a-all"}
    assert [t["name"] for t in results["tables"]] == [n for n in TABLES if n != "panel-a-all"]
    assert [t["name"] for t in times["tables"]] == list(TIMES)
    drawn = {path.stem for path in (folder / "figures").iterdir()}
    assert drawn == {*CHARTS, *PANELS}
    assert all(
        (folder / "tables" / f"{name}.tex").is_file() for name in {*TABLES} - {"panel-a-all"}
    )


def test_every_table_and_figure_has_its_place_on_the_page():
    placed = [name for _, names in SECTIONS for name in names]
    assert sorted(placed) == sorted([*TABLES, *TIMES, *CHARTS, *PANELS])


def test_page_and_numbers_agree(folder):
    results, times = read_json(folder / "results.json", "results"), read_times(folder)
    assert (folder / "results.md").read_text() == results_page(results, times)
    validity = next(table for table in results["tables"] if table["name"] == "validity")
    validity["rows"][1]["cells"][1]["ours"][0] += 1
    assert (folder / "results.md").read_text() != results_page(results, times)


@pytest.mark.parametrize("name", PAGES)
def test_the_published_page_is_the_one_of_the_published_numbers(name):
    """Fails when a page in `docs` and its JSON under `benchmarks/results` disagree."""
    kept, page = ROOT / "benchmarks" / "results" / name, ROOT / "docs" / PAGES[name]
    assert kept.is_dir() == page.is_file()
    if page.is_file():
        results, times = read_json(kept / "results.json", "results"), read_times(kept)
        assert page.read_text() == results_page(results, times, figures=page.stem)


def test_photographs_and_path_traced_captures_are_never_pooled():
    folder = ROOT / "benchmarks" / "results"
    for name in PAGES:
        if (folder / name).is_dir():
            studies = read_json(folder / name / "results.json", "results")["studies"]
            assert {one["family"] == "path-traced" for one in studies} == {name == "path_traced"}


def test_panel_holds_the_mean_of_the_scenes(folder):
    panel, scenes = tables(folder)["panel-a"], tables(folder)["per-scene-main"]
    means = {row.label: row.cells[1].ours.value for row in panel.rows}
    for at, column in enumerate(scenes.columns[:5]):
        values = [row.cells[at].ours.value for row in scenes.rows if not row.summary]
        assert means[column.name] == pytest.approx(np.mean(values))
        assert (
            next(r for r in scenes.rows if r.label == "Mean").cells[at].ours.value
            == means[column.name]
        )


def test_a_factor_changes_width_and_no_ranking(folder):
    rows = {row.label: row.cells for row in tables(folder)["ranking"].rows}
    shape, full = rows["Within-view shape b̃ only"], rows["Ours, a × b̃"]
    assert [c.ours for c in shape[:2]] == [c.ours for c in full[:2]]
    assert full[2].ours.value > shape[2].ours.value + 5


def test_beside_a_subset_of_scenes_stands_the_papers_mean_over_it(folder):
    rows = {row.label: row.cells for row in tables(folder)["transfer"].rows}
    strict = rows["Strict holdout, Mip-NeRF 360"]  # bicycle, bonsai and garden
    assert strict[1].paper.value == pytest.approx((20.0 + 35.1 + 19.9) / 3)
    assert rows["As many sources as strict, with the family"][1].paper is None
    means = {row.label: row.cells for row in tables(folder)["per-scene"].rows}
    assert means["Mean, Mip-NeRF 360"][3].paper == strict[1].paper


def test_pools_are_compared_on_the_same_targets(folder, material):
    rows = {row.label: row.cells for row in tables(folder)["transfer"].rows}
    main = BenchStudies(tuple(material[0]), protocol=PROTOCOL).main
    own = main.where(lambda study: study.family == "Mip-NeRF 360")
    strict = rows["Strict holdout, Mip-NeRF 360"]
    assert strict[2].ours.value == pytest.approx(own.savings("full").mean())
    gap = strict[1].ours.value - strict[2].ours.value
    assert strict[3].ours.value == pytest.approx(gap)
    assert rows["All other scenes"][2].ours.value is None


def test_full_members_are_compared_on_their_scenes_without_an_interval(folder):
    panel = {row.label: row.cells for row in tables(folder)["panel-full"].rows}
    models, saving, _ = panel["Ensemble of full members"]
    assert models.ours.value == "10 / 10" and saving.ours.low is None
    assert saving.paper.value == pytest.approx((10.7 + 25.4 + 28.2) / 3)
    assert panel["Ours, a × b̃"][1].paper.value == pytest.approx((17.4 + 22.4 + 21.8) / 3)
    assert panel["Ensemble standard deviation"][1].paper is None  # members are smaller here


def test_the_nested_number_comes_first(folder):
    page = (folder / "results.md").read_text()
    nested = page.index("With the ridge of the field and the form of the view factor chosen")
    assert nested < page.index("At a target of 90%, pixel-pooled calibration covers")
    choices = tables(folder)["choices"]
    assert [row.label for row in choices.rows] == [r.label for r in tables(folder)["manifest"].rows]


def test_pooling_misses_the_view_event_and_view_cp_does_not(folder):
    for row in tables(folder)["validity"].rows:
        pixel, view, _, by_views = (cell.ours.value for cell in row.cells[2:6])
        assert pixel == pytest.approx(90, abs=1)
        assert view < 70
        assert by_views > 88


def test_what_learns_nothing_and_what_asks_photographs_have_their_rows(folder):
    """Beside ours in every table of savings or coverage."""
    found = tables(folder)
    for name in ("panel-a", "panel-full", "paired", "paired-nested", "ablation", "ranking",
                 "validity", "shift", "flags", "tenths"):  # fmt: skip
        named = " ".join(row.label for row in found[name].rows)
        for scale in ("Field b̄ × b̃, no learning", "Guided scale", "Guided scale, corrected centre"):
            assert scale in named, f"{name} has no row of {scale}"
    for name in ("per-scene-main", "per-scene", "transfer", "backbone", "variants"):
        named = [column.name for column in found[name].columns]
        for scale in ("Field b̄ × b̃, no learning", "Guided scale", "Guided scale, corrected centre"):
            assert scale in named, f"{name} has no column of {scale}"


def test_results_keep_the_values_of_every_view(folder, material):
    kept = read_json(folder / "results.json", "results")["studies"]
    study = material[0][0]
    plain = next(entry for entry in kept if entry["key"] == study.key)
    assert plain["views"] == list(study.names)
    assert plain["hashes"] == study.hashes
    assert plain["values"]["score constant"] == study.maps["gsu-pv"].scores[:, 1, 0].tolist()
    assert not any(name.startswith(("latency", "seconds")) for name in plain["facts"])


def test_again_from_stored_studies_gives_the_same_bytes(folder, capsys):
    before = contents(folder)
    assert main(["results", str(folder)]) == 0
    assert contents(folder) == before
    assert "Missing" in capsys.readouterr().out


def test_studies_of_scenes_no_longer_listed_take_no_part(folder, capsys):
    stray = folder / "studies" / "gone-fastgs-model.npz"
    before = contents(folder)
    stray.write_bytes(b"not even a study")
    try:
        assert main(["results", str(folder)]) == 0
    finally:
        stray.unlink()
    assert contents(folder) == before


def test_page_from_the_numbers_alone(folder, tmp_path, capsys):
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("results.json", "times.json"):
        (kept / name).write_bytes((folder / name).read_bytes())
    assert main(["results", str(kept), "--page", str(tmp_path / "page.md"), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["kind"] == "results" and known["pages"] == [str(tmp_path / "page.md")]
    assert known["figures"] == len(CHARTS) + len(PANELS) and known["missing"]
    assert (tmp_path / "page.md").read_text().count("](page/") == len(CHARTS) + len(
        PANELS
    ) + 1  # the summary repeats one
    assert {path.stem for path in (tmp_path / "page").iterdir()} == set(CHARTS)


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert main(["results", str(tmp_path)]) == 2
    assert "there are no results at" in capsys.readouterr().err
    (tmp_path / "results.json").write_text(json.dumps({"format": "another", "version": 1}))
    with pytest.raises(ArtefactError, match="another"):
        read_json(tmp_path / "results.json", "results")


def test_a_bench_of_little_says_what_is_missing(tmp_path):
    """One scene, no ensemble, no pictures: what can be made is made."""
    study = MadeScene("truck").study()
    own = {"pool": study.predictions["pool"]}
    poor = dataclasses.replace(study, facts={}, predictions=own, guided={})
    write_results(tmp_path, [poor], {}, [], {}, {}, PROTOCOL)
    results = read_json(tmp_path / "results.json", "results")
    made = {table["name"] for table in results["tables"]}
    assert {"manifest", "sensitivity", "audit", "panel-a"} <= made
    assert "ratios" in results["missing"]["validity"]
    assert "pictures" in results["missing"]["intervals"]
    assert "Not available" in (tmp_path / "results.md").read_text()


def test_tables_need_no_torch():
    code = "import sys, splatcert_bench.site.results; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
