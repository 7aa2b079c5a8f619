# SPDX-License-Identifier: Apache-2.0
"""Locks on open files, by whatever the operating system offers."""

from __future__ import annotations

import errno
import os
import sys
import time

SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
"""Flags to open a stranger's file with, as far as the system has them: no links, no waiting."""
RENAMES_OPEN_FILES = sys.platform != "win32"
"""Whether a file may be renamed while it is open."""

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 1 << 40
    """The byte that is locked: one that nobody reads or writes."""
    _BETWEEN_TRIES = 0.05

    def lock(file: int, *, wait: bool = True) -> None:
        """Lock an open file; if another process holds it, wait, or raise BlockingIOError."""
        while True:
            os.lseek(file, _BEYOND, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EDEADLK):
                    raise
                if not wait:
                    raise BlockingIOError(errno.EWOULDBLOCK, "locked by another process") from None
            finally:
                os.lseek(file, 0, os.SEEK_SET)
            time.sleep(_BETWEEN_TRIES)
else:
    import fcntl

    def lock(file: int, *, wait: bool = True) -> None:
        """Lock an open file; if another process holds it, wait, or raise BlockingIOError."""
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
