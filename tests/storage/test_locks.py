# SPDX-License-Identifier: Apache-2.0
"""Locks on every system: as it is here, and with what Windows has in its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = """
import os, sys
from splatcert.storage.whole import locked, replacing
from pathlib import Path
folder = Path(sys.argv[1])
with locked(folder / "held"):
    other = os.open(folder / "held", os.O_RDWR)
    from splatcert.storage.locks import lock
    try:
        lock(other, wait=False)
    except BlockingIOError:
        print("held")
with locked(folder / "held"):
    print("free again")
with replacing(folder / "file") as aside:
    aside.write_text("whole")
print((folder / "file").read_text())
"""
AS_ON_WINDOWS = """
import fcntl, errno, sys, types
import numpy, tempfile, subprocess, ctypes, pathlib, signal, shutil  # they ask for the platform
posix = fcntl
stand_in = types.ModuleType("msvcrt")
stand_in.LK_NBLCK = 2
def locking(file, mode, count):
    try:
        posix.flock(file, posix.LOCK_EX | posix.LOCK_NB)
    except BlockingIOError:
        raise OSError(errno.EACCES, "in use") from None
stand_in.locking = locking
sys.modules["msvcrt"], sys.modules["fcntl"], sys.modules["resource"] = stand_in, None, None
sys.platform = "win32"
"""


@pytest.mark.parametrize("before", ["", AS_ON_WINDOWS], ids=["here", "as on Windows"])
def test_one_holder_at_a_time(before: str, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", before + HERE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["held", "free again", "whole"]
