# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, hashed, one owner at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from splatcert.errors import InputError


class ArtefactError(InputError):
    """A file or folder of ours that cannot be written or read."""


def require_regular_file(path: Path) -> Path:
    """The path itself; a device or a pipe is refused, because reading one may never end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
    return path


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; renamed to `path` if all went well."""
    aside = path.with_name(f".{path.name}.part")
    try:
        aside.touch()
        mode = aside.stat().st_mode  # as the user's umask sets it; some libraries write 0600
        yield aside
        aside.chmod(mode)
        os.replace(aside, path)
    except OSError as error:
        raise ArtefactError(
            f"cannot write {path}: {error.strerror or error}.\n"
            "  What was there before is intact. Free some space, or choose another folder."
        ) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def write_text_whole(path: Path, text: str) -> None:
    """Write a text file under a temporary name and rename it."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file; if another process holds it, wait, or raise BlockingIOError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextmanager
def owned_folder(folder: Path, activity: str) -> Iterator[Path]:
    """Create a folder and keep other processes out of it during `activity`."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder / ".lock", wait=False))
        except BlockingIOError as error:
            raise ArtefactError(
                f"another process is {activity} in {folder}.\n"
                "  Wait for it, or choose another folder with --output."
            ) from error
        except OSError as error:
            raise ArtefactError(
                f"cannot use {folder} for {activity}: {error.strerror}.\n"
                "  Choose another folder with --output."
            ) from error
        yield folder


def output_folder(path: Path) -> Path:
    """The folder, created if needed; refused if it cannot hold files."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtefactError(
            f"cannot create the output folder {path}: {error.strerror}.\n"
            "  Choose another with --output."
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise ArtefactError(
            f"the output folder {path} is not writable.\n  Choose another with --output."
        )
    return path
