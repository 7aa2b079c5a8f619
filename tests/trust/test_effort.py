# SPDX-License-Identifier: Apache-2.0
"""A file cannot keep a command busy: operations and sizes are counted, not seconds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from splatcert.camera import camera_hash
from splatcert.difficulty.views_file import ViewTable, ViewTableError
from splatcert.splats.untrusted import MAX_CONFIG_BYTES, ForeignFileError, load_config
from splatcert.verification.checks import CheckFailed
from splatcert.verification.offline import QUESTIONS
from splatcert_bench.synthetic.scenes import made_cameras


class Name(str):
    """Text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


@pytest.fixture(autouse=True)
def from_zero(monkeypatch):
    monkeypatch.setattr(Name, "compared", 0)


def made_names(count: int) -> tuple[Name, ...]:
    return tuple(Name(f"{k:06d}.png") for k in range(count))


def test_roles_are_checked_in_linear_time():
    """A certificate of 33 MB took 80 seconds, because every name was compared with every other."""
    camera = made_cameras(2, 8, 8)[0]
    pose, names = camera_hash(camera), made_names(2_000)
    views = [SimpleNamespace(name=name, camera=camera, pose=pose) for name in names]
    record = SimpleNamespace(training=views[:1000], calibration=views[1000:], unlabelled=[])
    tables = SimpleNamespace(
        training=SimpleNamespace(names=names[:1000]), held_out=SimpleNamespace(names=names[1000:])
    )
    stored: Any = SimpleNamespace(record=record, views=tables)
    assert "no view has two roles" in QUESTIONS["roles"](stored)
    assert Name.compared <= 10 * len(names)
    record.unlabelled = views[:1]
    with pytest.raises(CheckFailed, match=r"000000\.png have two roles"):
        QUESTIONS["roles"](stored)


def test_rows_are_found_in_linear_time():
    names, none = made_names(2_000), np.zeros(0)
    table = ViewTable(names, none, none, none, none, none)
    assert table.rows_of(reversed(names)) == list(range(1_999, -1, -1))
    assert Name.compared <= 10 * len(names)
    with pytest.raises(ViewTableError, match="x"):
        table.rows_of(["x"])


def test_settings_in_yaml_are_limited_in_size(tmp_path):
    """One MiB takes a minute to parse; trainers write a few kilobytes."""
    assert MAX_CONFIG_BYTES <= 1 << 16
    path = tmp_path / "config.yml"
    path.write_text("a: [" + "1, " * (MAX_CONFIG_BYTES // 3) + "1]\n")
    with pytest.raises(ForeignFileError, match="more than the limit"):
        load_config(path)
