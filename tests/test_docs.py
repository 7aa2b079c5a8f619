# SPDX-License-Identifier: Apache-2.0
"""Documents agree with the files they talk about, and mention no machine."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import splatcert
from splatcert import __version__, conformal
from splatcert.raster import reference
from splatcert_bench.statistics import evidence
from splatcert_bench.statistics.compared_scales import CORRECTED, GUIDED
from splatcert_bench.tables.cells import label

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {"build", "site", "splatcert-demo", "__pycache__"}
GENERATED |= {".git", ".venv", ".hypothesis", ".pytest_cache", ".ruff_cache"}
LINK = re.compile(r"\[[^\]]*\]\((?!https?://|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
# Written in pieces, so that this file does not trip its own test.
ROOTS = ("work", "opt", "root", "home")
HOSTS = ("pypi" + ".org", "python" + "hosted", "index" + "-url", "find" + "-links")
MACHINE_PATH = re.compile(rf"(?<![\w.~*])/(?:{'|'.join(ROOTS)})/\w")
PACKAGE_HOST = re.compile("|".join(map(re.escape, HOSTS)))


def tracked_files() -> list[Path]:
    """Files of the repository, or of the tree where there is no repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0 and listing.stdout:
        return [ROOT / name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]
    everything = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in everything if not GENERATED & set(path.relative_to(ROOT).parts)]


def texts(*suffixes: str) -> list[tuple[Path, str]]:
    found = []
    for path in tracked_files():
        if suffixes and path.suffix not in suffixes:
            continue
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def test_links_between_documents_resolve():
    broken = [
        f"{path.relative_to(ROOT)}: {match[1]}"
        for path, text in texts(".md")
        for match in LINK.finditer(text)
        if not (path.parent / match[1]).exists()
    ]
    assert not broken


def test_files_named_in_the_documents_exist():
    """Backquoted paths such as `raster/reference.py` are files of ours."""
    named = re.compile(r"`([a-z_]+/[a-z_/]*(?:\.(?:py|cpp|hpp|md)|(?<=/)))`")
    missing = []
    for path, text in texts(".md"):
        for match in named.finditer(text):
            packages = (ROOT / "src/splatcert", ROOT / "src/splatcert_bench")
            places = (ROOT, *packages, path.parent)
            if not any((place / match[1]).exists() for place in places):
                missing.append(f"{path.relative_to(ROOT)}: {match[1]}")
    assert not missing


@pytest.mark.parametrize("pattern", [MACHINE_PATH, PACKAGE_HOST], ids=["path", "host"])
def test_no_file_depends_on_one_machine(pattern):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


def test_the_conventions_page_has_the_constants_of_the_code():
    page = (ROOT / "docs/conventions.md").read_text(encoding="utf-8")
    assert reference.ALPHA_FLOOR == 1 / 255
    written = {
        f"z > {reference.NEAR_PLANE}",
        f"adds {reference.LOW_PASS} px²",
        f"min({reference.ALPHA_CAP:g},",
        "alpha < 1/255",
        f"to {reference.STOP_TRANSMITTANCE:.0e} or lower".replace("e-04", "e-4"),
        f"{reference.FOV_MARGIN} · tan(half field of view)",
        f"max({reference.COMPENSATION_FLOOR:.1e},".replace("e-05", "e-5"),
    }
    assert not {constant for constant in written if constant not in page}


def test_the_citation_is_of_this_version_and_prefers_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == __version__
    paper = citation["preferred-citation"]
    authors = [f"{one['given-names']} {one['family-names']}" for one in paper["authors"]]
    assert paper["title"].startswith("View-Structured Conformal Prediction")
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert authors and all(name in index for name in authors)


def test_the_viewer_is_as_fast_as_was_measured():
    measured = json.loads((ROOT / "benchmarks/results/viewer.json").read_text())["shown"]
    page = (ROOT / "docs/viewer.md").read_text(encoding="utf-8")
    named = {
        "half-width": "half-width",
        "RGB, with the gauge": "RGB with gauge",
        "plain picture, without any certificate": "RGB only",
    }
    for row, name in named.items():
        assert f"| {row} | {measured[name]['frames_per_second_median']:.1f} |" in page


def test_clients_of_the_viewer_leave_as_little_behind_as_was_measured():
    measured = json.loads((ROOT / "benchmarks/results/soak.json").read_text())["viewer_clients"]
    grown = measured["resident_kib"][-1] - measured["resident_kib_after_warm_up"]
    page = " ".join((ROOT / "docs/security.md").read_text(encoding="utf-8").split())
    words = f"grew by {grown / 1024:.1f} MiB, {100 * measured['growth']:.2f}%"
    assert measured["flat"] and f"{words}, over {measured['count']:,} clients" in page


def test_the_table_of_file_formats_is_what_was_measured():
    rows = json.loads((ROOT / "benchmarks/results/file_formats.json").read_text())["rows"]
    page = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    for row in rows:
        size, quality = f"{row['bytes'] / 1e6:.2f} MB", f"{row['psnr']:.2f} dB"
        cells = (f"`{row['file']}`", row["written_by"], size, quality, f"{row['half_width']:.4f}")
        assert f"| {' | '.join(cells)} |" in page


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    shown = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)", page, re.M)}
    public = {*splatcert.__all__, *conformal.__all__} - {"__version__", "conformal"}
    assert public and not public - shown


def test_the_gallery_shows_what_was_certified():
    measured = json.loads((ROOT / "benchmarks/results/gallery.json").read_text())
    page = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    assert f"0 to {measured['scale_top']} of 255" in page
    for row in measured["rows"]:
        cells = (row["capture"], row["calibration_views"], row["half_width_of_255"])
        assert f"| {' | '.join(map(str, cells))} | {row['psnr']:.2f} dB |" in page
        assert f"(images/gallery/{row['capture']}.webp)" in page
        assert (row["alpha"], row["beta"]) == ("1/10", "1/10")
    pictures = list((ROOT / "docs/images/gallery").iterdir())
    assert len(pictures) == len(measured["rows"]) + 1
    assert sum(picture.stat().st_size for picture in pictures) < 3_000_000


def test_certificates_carried_over_to_a_gpu_are_as_measured():
    measured = json.loads((ROOT / "benchmarks/results/gpu.json").read_text())
    page = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    ways = [measured[way] for way in ("cpu_to_gpu", "gpu_to_cpu")]
    again, bounded = ([way[how] for way in ways] for how in ("scored_again", "bounded"))
    rows = {
        "training photos that fitted the field": [str(way["training_photos"]) for way in ways],
        "largest change of a score": [f"{way['largest_change_of_a_score']:.1e}" for way in ways],
        "scored again: change of q": [f"{abs(one['change_of_q']):.1e}" for one in again],
        "scored again: pixels inside before, not after": [str(one["lost"]) for one in again],
        "scored again: pixels inside after, not before": [str(one["gained"]) for one in again],
        "bounded: ε, of 255": [f"{one['margin_of_255']:.2f}" for one in bounded],
        "bounded: boxes wider by": [f"{100 * one['wider']:.1f}%" for one in bounded],
        "bounded: pixels inside before, not after": [str(one["lost"]) for one in bounded],
        "bounded: pixels inside after, not before": [f"{one['gained']:,}" for one in bounded],
    }
    for name, cells in rows.items():
        assert f"| {name} | {' | '.join(cells)} |" in page
    assert all(one["boxes_contain_the_certified_ones"] for one in bounded)
    assert {one["pixels"] for one in (*again, *bounded)} == {7_311_360}


def test_the_guided_scale_at_640_pixels_is_as_measured():
    folder = ROOT / "benchmarks/results/evaluation"
    tables = json.loads((folder / "results.json").read_text(encoding="utf-8"))["tables"]
    found = {
        table["name"]: {row["label"]: [cell.get("ours") for cell in row["cells"]] for row in rows}
        for table in tables
        if (rows := table["rows"])
    }
    heads = next(t["columns"] for t in tables if t["name"] == "per-scene-main")
    shown = ["gsu", evidence.UNLEARNED, "full", GUIDED, CORRECTED]
    columns = [[head["name"] for head in heads].index(label(method)) for method in shown]
    page = (ROOT / "docs/guided.md").read_text(encoding="utf-8").replace("−", "-")
    for scene, pictures in found["pictures"].items():
        saved = found["per-scene-main"][scene]
        savings = [f"{saved[at][0]:.1f}" for at in columns]
        name = "**mean**" if scene == "Mean" else scene
        gains = f"{pictures[2][0]:+.2f} dB | {pictures[6][0]:+.3f}"
        assert f"| {name} | {' | '.join(savings)} | {gains} |" in page
    shifted = (ROOT / "docs/shift.md").read_text(encoding="utf-8")
    for scale, cells in found["shift"].items():
        assert f"| {scale} | {' | '.join(f'{cell[0]:.1f}' for cell in cells)} |" in shifted
