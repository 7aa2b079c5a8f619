# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, hashed, one owner at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import (
    contextmanager,
    suppress,
)
from pathlib import Path

from splatcert.errors import InputError


class ArtefactError(InputError):
    """A file or folder of ours that cannot be written or read."""


def ordinary(path: Path) -> Path:
    """The path itself, unless it leads to a device or a pipe, which have no end."""
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
    """A temporary name beside `path` to write to; renamed to it if all went well."""
    aside = path.with_name(f".{path.name}.part")
    try:
        aside.touch()
        mode = aside.stat().st_mode  # what the user's umask gives; some libraries write 0600
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
    """Write a text file aside and rename it."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextmanager
def owned_folder(folder: Path, activity: str) -> Iterator[Path]:
    """Make a folder and keep other processes out of it while `activity` goes on."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise ArtefactError(
            f"cannot use {folder} for {activity}: {error.strerror}.\n"
            "  Choose another with --output."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArtefactError(
                f"another process is {activity} in {folder}.\n"
                "  Wait for it, or choose another folder with --output."
            ) from error
        yield folder


class OutputError(InputError):
    """The place asked for cannot be written."""


def output_folder(path: Path) -> Path:
    """The folder, made if it is not there; refused if it cannot hold files."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the output folder {path}: {error.strerror}.\n"
            "  Choose another with --output."
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise OutputError(
            f"the output folder {path} is not writable.\n  Choose another with --output."
        )
    return path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A temporary name to write to; renamed to `path` at the end, removed on failure."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        aside.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}.") from error
    finally:
        aside.unlink(missing_ok=True)
