# SPDX-License-Identifier: Apache-2.0
"""The ledger of photographs that have calibrated certificates."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from splatcert.certificate.content.promise import VIEW
from splatcert.certificate.content.record import ModelRecord, PhotoHistory, RendererRecord
from splatcert.certificate.history import (
    FILE,
    HistoryUnavailable,
    enter_calibration,
    history_file,
    scales_identity,
)

LEVELS = Fraction(1, 10), Fraction(1, 10)
MODEL = ModelRecord(splats="5a", gaussians=3, sh_degree=0, antialiased=False)
RENDERER = RendererRecord(
    backend="cpu", name="native", version="1", constants={}, background=(0.0, 0.0, 0.0)
)


def enter(frozen: str, photos: str, levels=LEVELS) -> PhotoHistory | None:
    files = [letter * 64 for letter in photos]
    return enter_calibration(scales_identity(MODEL, RENDERER, frozen, VIEW), levels, files)


def known(certificates: int, photos: int) -> PhotoHistory:
    return PhotoHistory(certificates=certificates, photos=photos)


def test_earlier_calibrations_count_by_photograph():
    assert enter("one", "abc") == known(0, 0)
    assert enter("two", "bcd") == known(1, 2)
    assert enter("three", "xyz") == known(0, 0)
    assert enter("four", "cdx") == known(3, 3)


def test_an_identical_calibration_has_the_history_it_had_first():
    for _ in range(2):
        assert enter("one", "abc") == known(0, 0)
        assert enter("two", "abc") == known(1, 3)
    assert len(history_file().read_text().split()) > 0
    assert enter("one", "abc", (Fraction(1, 5), Fraction(1, 10))) == known(2, 3)


def test_pictures_without_files_leave_no_trace(state: Path):
    assert enter_calibration("one", LEVELS, [None, None]) is None
    assert list(state.iterdir()) == []


def test_many_at_once_lose_nothing():
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: enter(f"run {k}", "ab"), range(40)))
    assert enter("last", "ab") == known(40, 2)


def test_damaged_lines_are_skipped(state: Path):
    enter("one", "abc")
    with (state / FILE).open("ab") as file:
        file.write(b'\xff\x00{"identity": 1\n[]\n{"photos": 3, "identity": "x"}\n' + b"[" * 9000)
    assert enter("two", "abc") == known(1, 3)
    assert enter("three", "abc") == known(2, 3)


def test_no_path_and_no_name_is_stored(state: Path):
    enter("one", "abc")
    (line,) = (state / FILE).read_text().split("\n")[1:-1]
    assert set(json.loads(line)) == {"when", "identity", "photos"}


@pytest.mark.parametrize("how", ["a file in the way", "a link"])
def test_a_ledger_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch, how: str):
    folder = tmp_path / "state"
    if how == "a link":
        folder.mkdir()
        (folder / FILE).symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")
    monkeypatch.setenv("SPLATCERT_STATE", str(folder))
    with pytest.warns(HistoryUnavailable, match="SPLATCERT_STATE"):
        assert enter("one", "abc") is None
    assert not (tmp_path / "elsewhere").exists()


def test_the_ledger_is_in_the_users_state_folder(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("SPLATCERT_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "splatcert" / FILE
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_file() == tmp_path / ".local/state/splatcert" / FILE
