# SPDX-License-Identifier: Apache-2.0
"""Files that would run code in the tool they come from must not run it here."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from splat_layouts import gsplat_state, random_splats
from splatcert.errors import InputError
from splatcert.splats.files import load_splats
from splatcert.splats.nerfstudio import read_dataparser_transform
from splatcert.splats.untrusted import (
    ForeignFileError,
    load_checkpoint,
    load_config,
    load_namespace,
)


class Payload:
    """Unpickling this creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("archive", [True, False])
def test_a_pickle_payload_is_refused_and_does_not_run(tmp_path, archive):
    witness = tmp_path / "ran"
    content = {"splats": gsplat_state(random_splats(3)), "step": Payload(witness)}
    path = tmp_path / "ckpt_1_rank0.pt"
    torch.save(content, path, _use_new_zipfile_serialization=archive)
    with pytest.raises(InputError) as caught:
        load_splats(path, frame="model")
    assert not witness.exists()
    message = str(caught.value)
    assert "would call posix.system" in message or "would call nt.system" in message
    assert len(message.splitlines()) <= 5
    torch.load(path, weights_only=False)  # the payload is real
    assert witness.exists()


def test_a_bare_pickle_is_refused(tmp_path):
    witness = tmp_path / "ran"
    (tmp_path / "step-000000001.ckpt").write_bytes(pickle.dumps(Payload(witness)))
    with pytest.raises(InputError):
        load_splats(tmp_path / "step-000000001.ckpt")
    assert not witness.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 99, b"junk" * 9])
def test_broken_checkpoints_are_refused(tmp_path, content):
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(ForeignFileError, match=r"model\.pt"):
        load_checkpoint(tmp_path / "model.pt")


def test_a_cut_checkpoint_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"splats": gsplat_state(random_splats(500))}, path)
    content = path.read_bytes()
    for size in (100, len(content) // 2, len(content) - 10):
        path.write_bytes(content[:size])
        with pytest.raises(ForeignFileError, match="checkpoint"):
            load_checkpoint(path)


def test_other_archives_and_contents_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.pt", "w") as archive:
        archive.writestr("a.txt", "hello")
    torch.save((1, torch.zeros(2)), tmp_path / "chkpnt30000.pth")
    with pytest.raises(ForeignFileError, match="not a readable torch checkpoint"):
        load_checkpoint(tmp_path / "photos.pt")
    with pytest.raises(ForeignFileError, match="contains a tuple"):
        load_checkpoint(tmp_path / "chkpnt30000.pth")


def test_numpy_numbers_of_schedulers_are_data(tmp_path):
    numbers = [np.float64(0.5), np.float32(2), np.int64(7), np.bool_(True)]
    torch.save({"rates": numbers}, tmp_path / "a.pt")
    assert load_checkpoint(tmp_path / "a.pt")["rates"] == [0.5, 2, 7, True]


def test_yaml_that_asks_for_objects_yields_plain_values(tmp_path):
    witness = tmp_path / "ran"
    (tmp_path / "config.yml").write_text(
        "!!python/object:nerfstudio.engine.trainer.TrainerConfig\n"
        "_target: !!python/name:nerfstudio.engine.trainer.Trainer ''\n"
        f"evil: !!python/object/apply:os.system ['touch {witness}']\n"
        f"new: !!python/object/new:os.system ['touch {witness}']\n"
        "module: !!python/module:os ''\n"
        "data: !!python/object/apply:pathlib.PosixPath [/, data, truck]\n"
        "shape: !!python/tuple [16, 16, 8]\n"
        "own: !thing {a: 1}\n"
        "pipeline: !!python/object:a.B\n  model: !!python/object:a.C\n    sh_degree: 3\n"
    )
    config = load_config(tmp_path / "config.yml")
    assert not witness.exists()
    assert config["data"] == ["/", "data", "truck"]
    assert config["shape"] == [16, 16, 8]
    assert config["own"] == {"a": 1}
    assert config["pipeline"]["model"]["sh_degree"] == 3
    assert config["evil"] == [f"touch {witness}"]


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "a: *unknown", "[" * 3000, "? [a]\n: b"])
def test_bad_yaml_is_refused(tmp_path, text):
    (tmp_path / "config.yml").write_text(text)
    with pytest.raises(ForeignFileError, match=r"config\.yml"):
        load_config(tmp_path / "config.yml")


def test_nested_aliases_cost_nothing_and_are_refused(tmp_path):
    """Whoever printed one of them would print for ever."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (tmp_path / "config.yml").write_text("\n".join(lines))
    with pytest.raises(ForeignFileError, match="references unfold it"):
        load_config(tmp_path / "config.yml")


def test_namespace_text_is_parsed_and_never_evaluated(tmp_path):
    witness = tmp_path / "ran"
    (tmp_path / "cfg_args").write_text(
        f"Namespace(sh_degree=3, images=__import__('os').system('touch {witness}'), "
        "source_path='/data/truck', resolution=-1, eval=True, scale=2**99**99)"
    )
    settings = load_namespace(tmp_path / "cfg_args")
    assert not witness.exists()
    assert settings == {
        "sh_degree": 3,
        "source_path": "/data/truck",
        "resolution": -1,
        "eval": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "Namespace(1, 2)",
        "Other(a=1)",
        "Namespace(a=1",
        "",
        "(" * 5000,
        "Namespace(a=" + "-" * 50_000 + "1)",
        "Namespace(a=1)\0",
    ],
)
def test_other_expressions_are_refused(tmp_path, text):
    (tmp_path / "cfg_args").write_text(text)
    with pytest.raises(ForeignFileError, match="Namespace"):
        load_namespace(tmp_path / "cfg_args")


def test_oversized_and_broken_side_files_are_refused(tmp_path):
    (tmp_path / "big.yml").write_text("a: b\n" * 300_000)
    with pytest.raises(ForeignFileError, match="more than"):
        load_config(tmp_path / "big.yml")
    (tmp_path / "bad.json").write_text('{"transform": ')
    with pytest.raises(ForeignFileError, match="JSON"):
        read_dataparser_transform(tmp_path / "bad.json")
    with pytest.raises(ForeignFileError, match="cannot read the transform file"):
        read_dataparser_transform(tmp_path / "none.json")
