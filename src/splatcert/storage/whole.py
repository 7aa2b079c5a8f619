# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, hashed, one owner at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from splatcert.errors import InputError
from splatcert.storage.locks import RENAMES_OPEN_FILES, SAFE, lock


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


LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.part")
"""Temporary names of `replacing`; one that nobody has locked was left by a killed process."""
_swept: set[tuple[int, Path]] = set()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; renamed to `path` if all went well.

    The name is random and the file is new: a link that a stranger left in the folder cannot
    send what is written elsewhere.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        _sweep(path.parent)
        with _opened(aside, os.O_EXCL) as file:
            lock(file)  # in use: no other process sweeps it away
            mode = stat.S_IMODE(os.fstat(file).st_mode)  # by the umask; some libraries write 0600
            yield aside
            aside.chmod(mode)
            if RENAMES_OPEN_FILES:
                os.replace(aside, path)
        if not RENAMES_OPEN_FILES:
            os.replace(aside, path)
    except OSError as error:
        raise ArtefactError(
            f"cannot write {path}: {error.strerror or error}.\n"
            "  What was there before is intact. Free some space, or choose another folder."
        ) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder, once per process and folder."""
    if (os.getpid(), folder) in _swept:
        return
    _swept.add((os.getpid(), folder))
    with os.scandir(folder) as entries:
        left = [Path(entry) for entry in entries if LEFTOVER.fullmatch(entry.name)]
    for path in left:
        with suppress(OSError), _opened(path) as file:
            lock(file, wait=False)
            path.unlink()


@contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[int]:
    """A regular file, created if needed, never truncated and never through a link."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | SAFE | flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
        yield file
    finally:
        os.close(file)


def append_line(path: Path, line: str) -> None:
    """Add a line to a text file, on a line of its own even after an unfinished one."""
    with _opened(path, os.O_APPEND) as file:
        os.write(file, f"\n{line}\n".encode())


def write_text_whole(path: Path, text: str) -> None:
    """Write a text file under a temporary name and rename it."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file; if another process holds it, wait, or raise BlockingIOError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path) as file:
        lock(file, wait=wait)
        yield


@contextmanager
def owned_folder(folder: Path, activity: str) -> Iterator[Path]:
    """Create a folder and keep other processes out of it during `activity`."""
    refuse_link(folder)
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder / ".lock", wait=False))
        except BlockingIOError as error:
            raise ArtefactError(
                f"another process is {activity} in {folder}.\n"
                "  Wait for it, or choose another folder."
            ) from error
        except OSError as error:
            refuse_link(folder / ".lock")
            raise ArtefactError(
                f"cannot use {folder} for {activity}: {error.strerror}.\n  Choose another folder."
            ) from error
        yield folder


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link where we write: it may lead out of the folder that was asked for."""
    if path.is_symlink():
        raise ArtefactError(
            f"{path} is a symbolic link, and splatcert does not write through links.\n"
            "  Remove it, or pass the folder that it points to."
        )


def output_folder(path: Path, *, inside: Path | None = None) -> Path:
    """The folder, created if needed; refused if it cannot hold files or is a symbolic link.

    `inside` is the user's own folder that it belongs to: no step from there may be a link.
    """
    steps = path.relative_to(inside).parts if inside else ()
    for depth in range(len(steps)):
        refuse_link(path.parents[depth])
    refuse_link(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtefactError(
            f"cannot create the output folder {path}: {error.strerror}.\n  Choose another folder."
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise ArtefactError(f"the output folder {path} is not writable.\n  Choose another folder.")
    return path
