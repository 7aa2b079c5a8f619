# SPDX-License-Identifier: Apache-2.0
"""NumPy archives of ours: no Python object inside, written whole, equal contents equal bytes."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.artefacts import ArtefactError, replacing

# What NumPy and zipfile raise on files that are damaged or something else altogether.
_UNREADABLE = (OSError, ValueError, TypeError, EOFError, MemoryError, RuntimeError)
_UNREADABLE += (OverflowError, AttributeError, SyntaxError)
_UNREADABLE += (zipfile.BadZipFile, zlib.error, struct.error, KeyError, IndexError)

MAX_BYTES = 1 << 26
"""Largest archive that is unpacked unless said otherwise; a thousand views take a megabyte."""

Arrays = Mapping[str, NDArray[Any]]


def write_archive(path: Path, arrays: Arrays, *, compressed: bool = False) -> None:
    """Write arrays aside and rename."""
    save: Any = np.savez_compressed if compressed else np.savez
    with replacing(path) as aside, aside.open("wb") as file:
        save(file, **arrays)


def read_archive(path: Path, what: str, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """Every array of an archive; `what` is what it should be, in the words of an error."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                size = sum(member.file_size for member in packed.infolist())
            if size > max_bytes:
                raise ValueError(f"it unpacks to {size} bytes, the limit is {max_bytes}")
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except FileNotFoundError:
        raise ArtefactError(f"there is no archive of {what} at {path}") from None
    except _UNREADABLE as error:
        raise ArtefactError(f"{path} cannot be read as an archive of {what}: {error}.") from error


def unusable(path: Path, what: str, error: Exception) -> ArtefactError:
    """The error of an archive that can be read and is not what it should be."""
    reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    return ArtefactError(
        f"{path} is no archive of {what} that can be used: {reason}.\n  Compute it again."
    )
