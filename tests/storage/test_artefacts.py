# SPDX-License-Identifier: Apache-2.0
"""Files of ours appear whole, with the permissions the user's umask gives, or not at all."""

from __future__ import annotations

import os
import tempfile

import pytest

from splatcert.storage.whole import (
    ArtefactError,
    locked,
    output_folder,
    owned_folder,
    replacing,
    require_regular_file,
    write_text_whole,
)


def test_a_file_written_by_a_library_that_hides_it_has_the_usual_permissions(tmp_path):
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"
    plain.write_text("")
    with replacing(hidden) as aside:
        handle, name = tempfile.mkstemp(dir=tmp_path)  # mode 0600, renamed over
        os.close(handle)
        os.replace(name, aside)
    assert hidden.stat().st_mode == plain.stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.json"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as aside:
        aside.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_missing_is_said(tmp_path):
    with pytest.raises(ArtefactError, match="cannot write"):
        write_text_whole(tmp_path / "absent" / "a.json", "text")


def test_a_second_owner_is_told(tmp_path):
    with (
        owned_folder(tmp_path, "certifying"),
        pytest.raises(ArtefactError, match="another process is certifying"),
        owned_folder(tmp_path, "certifying"),
    ):
        pass


def test_a_lock_is_refused_while_another_holds_it_and_free_afterwards(tmp_path):
    lock = tmp_path / "jobs" / ".a.lock"
    with locked(lock), pytest.raises(BlockingIOError), locked(lock, wait=False):
        pass
    with locked(lock, wait=False):
        assert lock.is_file()


def test_an_error_inside_an_owned_folder_is_not_taken_for_one_of_the_folder(tmp_path):
    with pytest.raises(BlockingIOError, match="mine"), owned_folder(tmp_path, "certifying"):
        raise BlockingIOError("mine")


def test_an_output_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtefactError, match="cannot create the output folder"):
        output_folder(tmp_path / "file" / "out")


def test_a_pipe_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a device or a pipe"):
        require_regular_file(tmp_path / "pipe")
    assert require_regular_file(tmp_path) == tmp_path  # opening it says that it is a folder
