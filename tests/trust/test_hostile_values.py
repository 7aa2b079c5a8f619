# SPDX-License-Identifier: Apache-2.0
"""Files that say two things at once, values beyond all bounds, and streams that are closed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from resealed import entry
from valid_files import write_valid_files

from splatcert.camera import CameraError
from splatcert.cli import main
from splatcert.errors import InputError
from splatcert.raster.render import render
from splatcert.splats.files import load_splats, save_ply
from splatcert.splats.gaussians import SplatsError
from splatcert.splats.untrusted import ForeignFileError, load_config
from splatcert.storage.arrays import read_archive
from splatcert.storage.schema import JsonError, read_json
from splatcert.storage.whole import ArtefactError
from splatcert_bench.synthetic.scenes import made_cameras, made_splats


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_valid_files(tmp_path_factory.mktemp("values") / "valid")


@pytest.fixture
def cert(made, tmp_path) -> Path:
    shutil.copytree(made / "cert", tmp_path / "cert")
    shutil.copy(made / "model.ply", tmp_path)
    return tmp_path / "cert"


def refused(arguments: list[str], capsys) -> str:
    """What a command says when it refuses; never an internal error."""
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") <= 5 and "internal error" not in said and "Traceback" not in said
    return said


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "c": 0, "a": 1}}]'])
def test_json_that_names_an_entry_twice_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(JsonError, match="two entries named 'a'"):
        read_json(tmp_path / "a.json", "file")


def test_a_certificate_with_two_thresholds_is_refused_though_its_seal_holds(cert, capsys):
    """The last one counts in Python, so the seal is unbroken; a reader may show the first."""
    path = cert / "certificate.json"
    text = path.read_text()
    threshold = json.dumps(json.loads(text)["guarantee"]["threshold"])
    path.write_text(
        text.replace(f'"threshold": {threshold}', f'"threshold": 0.001, "threshold": {threshold}')
    )
    assert path.read_text() != text
    assert main(["verify", str(cert)]) == 2
    assert "two entries named 'threshold'" in " ".join(capsys.readouterr().out.split())
    assert "two entries named" in refused(["inspect", str(cert)], capsys)


@pytest.mark.parametrize("names", [("a.npy", "a.npy"), ("a.npy", "a")])
def test_an_archive_with_two_members_of_one_name_is_refused(tmp_path, names):
    path = tmp_path / "views.npz"
    np.save(tmp_path / "one.npy", np.zeros(3))
    with zipfile.ZipFile(path, "w") as archive, catch_warnings():
        simplefilter("ignore")  # zipfile warns its writers
        for name in names:
            archive.writestr(name, (tmp_path / "one.npy").read_bytes())
    with pytest.raises(ArtefactError, match="the same name"):
        read_archive(path, "views")


@pytest.mark.parametrize("value", [-1e308, 1e308, 1e16])
@pytest.mark.parametrize("name", ["cx", "cy", "fx"])
def test_intrinsics_beyond_all_bounds_are_refused(name, value):
    camera = made_cameras(2, 8, 8)[0]
    with pytest.raises(CameraError):
        replace(camera, **{name: value})


@pytest.mark.parametrize("role", ["training", "calibration"])
def test_a_resealed_camera_far_off_ends_in_a_message(cert, capsys, tmp_path, role):
    entry(f"{role}.0.camera.cx", -1e308)(cert)
    for command in ("verify", "inspect", "report", "render", "suggest"):
        more = ["-o", str(tmp_path / command)] if command in ("render", "suggest") else []
        main([command, str(cert), *more])
        assert "internal error" not in capsys.readouterr().err


def test_a_list_of_frames_that_is_not_text_starts_anew(made, tmp_path):
    out = tmp_path / "out"
    words = ["render", str(made / "model.ply"), "--cameras", str(made / "cameras.json")]
    out.mkdir()
    (out / ".frames.jsonl").write_bytes(b"\xff\xfe\x80\n" * 10)
    assert main([*words, "-o", str(out)]) == 0
    assert list(out.glob("*.png"))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("value", [-3e38, 3e38, 1e16])
def test_colours_beyond_all_bounds_are_refused(tmp_path, value, backend):
    splats = made_splats(20, sh_degree=1)
    sh = splats.sh.clone()
    sh[4:6, 0] = value
    spoilt = replace(splats, sh=sh)
    with pytest.raises(SplatsError, match=r"sh: 2 of 20 .* first at index 4"):
        spoilt.check_finite()
    sh[4:6, 0] = float(np.sign(value)) * 1e15
    picture = render(replace(splats, sh=sh), made_cameras(2, 8, 8)[0], backend=backend)
    assert picture.rgb.isfinite().all()


def test_a_model_with_such_colours_is_refused_by_render(made, tmp_path, capsys):
    splats = made_splats(20, sh_degree=1)
    save_ply(replace(splats, sh=splats.sh.clone().fill_(-3e38)), tmp_path / "model.ply")
    words = ["render", str(tmp_path / "model.ply"), "--cameras", str(made / "cameras.json")]
    assert "colours beyond 1e+15" in refused([*words, "-o", str(tmp_path / "out")], capsys)


TAGS = (
    "!!bool x", "!!int ''", "!!int x", "!!float x", "!!timestamp x", "!!timestamp 2001-99-99",
    "!!binary é", "!!omap x", "!!pairs x", "!!set x", "!!seq x", "!!map x", "!!null [x]",
    "!!bool [x]", "!!timestamp [x]",
)  # fmt: skip


@pytest.mark.parametrize("tag", TAGS)
def test_a_wrong_tag_in_yaml_is_refused_or_read(tmp_path, tag):
    (tmp_path / "config.yml").write_text(f"a: {tag}\n")
    try:
        load_config(tmp_path / "config.yml")
    except ForeignFileError as error:
        assert "not readable as YAML" in str(error)


COMMAND = [sys.executable, "-m", "splatcert.cli"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_closed_streams_do_not_change_what_happens(cert, closed):
    def status(*arguments: str) -> int:
        line = 'exec "$@" ' + closed
        return subprocess.run(
            ["sh", "-c", line, "sh", *COMMAND, *arguments], check=False, capture_output=True
        ).returncode

    assert status("verify", str(cert)) == 0
    assert status("verify", str(cert.parent / "nothing")) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_message(cert):
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*COMMAND, "verify", str(cert)], check=False, stdout=full, stderr=subprocess.PIPE
        )
    assert ended.returncode == 2
    assert b"internal error" not in ended.stderr and b"No space left" in ended.stderr


def test_a_refusal_nobody_reads_keeps_its_exit_code(cert):
    here, there = os.pipe()
    os.close(here)
    ended = subprocess.run(
        [*COMMAND, "verify", str(cert / "x")], check=False, stdout=subprocess.PIPE, stderr=there
    )
    os.close(there)
    assert ended.returncode == 2


def test_a_sog_model_with_two_members_of_one_name_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.sog", "w") as archive, catch_warnings():
        simplefilter("ignore")
        for text in ('{"means": 1, "scales": 1, "quats": 1, "sh0": 1}', "{}"):
            archive.writestr("meta.json", text)
    with pytest.raises(InputError, match="the same name"):
        load_splats(tmp_path / "model.sog")
