# SPDX-License-Identifier: Apache-2.0
"""NumPy archives without Python objects: written whole, equal contents give equal bytes."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from splatcert.storage.whole import ArtefactError, replacing, require_regular_file

MAX_BYTES = 1 << 26
"""Largest archive that is unpacked by default; a thousand views take a megabyte."""
UNUSABLE = (
    *(KeyError, ValueError, TypeError, AttributeError, IndexError),
    *(OverflowError, ZeroDivisionError, RecursionError),
)
"""Exceptions raised by content of the wrong shape or type."""
LONGEST_REASON = 160
"""Longest excerpt of another library's message in one of ours, in characters."""
Arrays = Mapping[str, NDArray[Any]]


def write_archive(path: Path, arrays: Arrays, *, compressed: bool = False) -> None:
    """Write arrays under a temporary name and rename the file."""
    save: Any = np.savez_compressed if compressed else np.savez
    with replacing(path) as aside, aside.open("wb") as file:
        save(file, **arrays)


def read_archive(path: Path, what: str, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """Every array of an archive; `what` it should be goes into messages."""
    try:
        _check_claims(path, max_bytes)
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except FileNotFoundError:
        raise ArtefactError(
            f"there is no archive of {what} at {path}.\n  Check the path, or compute it again."
        ) from None
    except (
        Exception
    ) as error:  # of any type: NumPy evaluates a header as a Python literal, for instance
        reason = (str(error) or type(error).__name__).splitlines()[0][:LONGEST_REASON]
        raise ArtefactError(
            f"{path} cannot be read as an archive of {what}: {reason}.\n"
            "  It is damaged or not such an archive: restore it, or compute it again."
        ) from error


def _check_claims(path: Path, max_bytes: int) -> None:
    """Refuse an archive that unpacks to too much, or whose arrays claim more than is there."""
    with zipfile.ZipFile(require_regular_file(path)) as packed:
        members = packed.infolist()
        size = sum(member.file_size for member in members)
        if size > max_bytes:
            raise ValueError(f"it unpacks to {size} bytes, the limit is {max_bytes}")
        names = {member.filename.removesuffix(".npy") for member in members}
        if len(names) < len(members):
            raise ValueError("two of its members have the same name")
        for member in members:
            with packed.open(member) as file:
                if np.lib.format.read_magic(file) != (1, 0):
                    raise ValueError(f"{member.filename} is not an array that splatcert wrote")
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            claimed = math.prod(shape) * max(
                1, dtype.itemsize
            )  # empty strings take no bytes, however many
            if claimed > member.file_size:
                raise ValueError(
                    f"{member.filename} claims {claimed} bytes and has {member.file_size}"
                )


def unusable(path: Path, what: str, error: Exception) -> ArtefactError:
    """The error for an archive that can be read but is not what it should be."""
    reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    short = reason.splitlines()[0][:LONGEST_REASON] if reason else type(error).__name__
    short = short.removesuffix(".")
    return ArtefactError(
        f"{path} cannot be used as an archive of {what}: {short}.\n  Compute it again."
    )


def write_tensors(path: Path, arrays: Arrays, facts: dict[str, str]) -> None:
    """Write arrays and some text as safetensors under a temporary name, and rename the file."""
    with replacing(path) as aside:
        try:
            save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, aside, facts)
        except SafetensorError as error:  # a full disk has no error type of its own there
            raise OSError(str(error)) from error


def read_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Arrays and texts of a safetensors file; one that cannot be read is an `OSError`."""
    try:
        with safe_open(require_regular_file(path), framework="np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}
            return arrays, file.metadata() or {}
    except (SafetensorError, TypeError, AttributeError) as error:
        raise OSError(str(error)) from error
