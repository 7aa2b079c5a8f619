# SPDX-License-Identifier: Apache-2.0
"""Malformed inputs end in success or one clear message, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import CASES, COMMANDS, Case
from trial import Ending, run_cases
from valid_files import write_results, write_valid_files

Endings = dict[str, list[Ending]]

SAID = {
    "model.ply:count-huge": "the header promises 1099511627776 rows of vertex",
    "model.ply:nan-mean": "means: 1 of 60 Gaussians are not finite, first at index 3.",
    "model.ply:zero-rotation": "quats: 3 of 60 Gaussians have a rotation of length zero",
    "gsplat.pt:endless": "of which the file holds",
    "gsplat.pt:code": "which is code",
    "gsplat.pt:sparse": "not plain floating-point numbers",
    "gsplat:laughs": "references unfold it",
    "gsplat:sixty": "a number of more than 19 digits",
    "model.spz:bomb": "it unpacks to more than the",
    "model.spz:count-huge": "promises 4294967295 Gaussians",
    "model.spz:pointer": "git lfs pull",
    "model.splat:random": "not a .splat file",
    "model.sog:bomb": "meta.json unpacks to more than",
    "sog:texture-outside": "which is not a plain file name",
    "sog:texture-bomb": "8000 x 8000 pixels from",
    "model.glb:nodes-doubling": "nodes inside themselves",
    "nerfstudio:no-scale": "does not define a frame",
    "colmap_bin:no-images": "has no images.bin",
    "colmap_bin:photos-folder-is-root": "outside the dataset",
    "option:train-sparse": "has no COLMAP model 7",
    "option:train-holdout-names": "2 of 2 held-out names are not in the dataset: ../x, /etc/passwd",
    "colmap_bin:name-outside": "lies outside the dataset",
    "colmap_bin:photo-link-outside": "(a link to ",
    "colmap_bin:photo-link-loop": "cannot be the name of a file",
    "colmap_bin:photo-bomb": "the limit is 134217728 (splatcert.camera.MAX_PIXELS)",
    "colmap_txt:negative-focal": "focal lengths positive",
    "colmap_txt:huge-shift": "coordinates may have at most 1e+15",
    "transforms:absolute": "lies outside the dataset",
    "transforms:huge-number": "'fl_x' must be finite",
    "cameras.json:enormous": "the limit is 134217728 pixels (splatcert.camera.MAX_PIXELS)",
    "cameras.json:outside": "outside the output folder",
    "half_run:statistics-short": "its statistics do not match its Gaussians",
    "half_run:rows-missing": "cannot be resumed from",
    "run:request-list": "is not the record of a training run",
    "family:member-outside": "members must be 2 to 100 names of folders",
    "family:member-link-outside": "member constant is not the one",
    "guide.json:weights-huge": "weights must be finite and at most 100",
    "guide.json:version": "has version 1, this program reads 3",
    "views.npz:unpacking": "the limit is",
    "cert:alpha-digits": "must be a fraction",
    "views.npz:bomb": "format.npy claims 68719476736 bytes and has",
    "views.npz:header-open": "cannot be read as an archive of views",
    "cameras.json:a-pipe": "it is a device or a pipe, not a file",
    "resealed:names-other": "is not about the views and the level of certificate.json",
    "resealed:threshold-huge": "the threshold must be 0 to 1e+30",
    "bench.toml:device": "it is a device or a pipe, not a file",
    "bench.toml:name-slash": "a scene's name becomes a folder, and '../../one' cannot be",
    "bench.toml:pool-outside": "a pool's name becomes a folder",
    "bench.toml:pool-unknown": "names 'nobody', which is not a scene of this bench",
    "bench.toml:name-twice": "two entries [[scene]] are called 'two'",
    "bench.toml:members-huge": "members.count must be 0 to 100, got 999999999",
    "bench.toml:paths-nowhere": "lists captures or models that do not exist (and 6 more)",
    "bench.toml:two-gigabytes": "has more than 1048576 bytes",
    "results:table-outside": "'../../escaped' is not a valid name of a table or figure",
    "results:times-outside": "'../../escaped' is not a valid name of a table or figure",
    "results:picture-outside": "'../../x' is not a valid name of a table or figure",
    "bench_out:study-lambda": "a shrinkage must be one of 0, 1/4, 1/2, 3/4, 1",
    "option:rule-import": "is not a comparison",
    "option:cameras-misspelt": "Did you mean orbit?",
    "option:train-seed": "seed must be 0 to 4294967295, got -1.",
}
"""What some refusals say, one for each thing that is checked before it is believed."""


@pytest.fixture(scope="session")
def valid_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_valid_files(tmp_path_factory.mktemp("corpus") / "valid")
    write_results(root)
    return root


@pytest.fixture(scope="session")
def endings(valid_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Endings:
    return run_cases(CASES, valid_files, tmp_path_factory.mktemp("cases"))


def test_the_corpus_is_large_and_every_kind_of_input_is_in_it():
    assert len(CASES) >= 150 and len({case.name for case in CASES}) == len(CASES)
    assert {case.kind for case in CASES} == set(COMMANDS)


def test_what_is_not_damaged_is_accepted(valid_files: Path, tmp_path: Path):
    """Otherwise a refusal would prove nothing."""
    whole = [Case(kind, kind, lambda it: None) for kind in COMMANDS]
    found = run_cases(whole, valid_files, tmp_path)
    refused = {
        (kind, one.command): (one.status, one.said)
        for kind, endings in found.items()
        for one in endings
        if one.status != "0" or one.fault()
    }
    # A run that is not finished cannot be certified, only gone on with; and the corpus has no
    # photographs that are new to a capture, which tests/registration has.
    others = {place: told for place, told in refused.items() if place[0] != "half_run"}
    assert all(line.startswith("register") for _, line in others)
    assert all("are copies" in told for _, told in others.values())


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_a_malformed_input_hurts_nobody(name: str, endings: Endings):
    faults = {one.command: (one.fault(), one.said) for one in endings[name] if one.fault()}
    assert not faults


@pytest.mark.parametrize("name", SAID)
def test_a_refusal_says_what_is_wrong(name: str, endings: Endings):
    said = [one.said for one in endings[name]]
    assert any(SAID[name] in text for text in said), said
