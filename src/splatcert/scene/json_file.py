# SPDX-License-Identifier: Apache-2.0
"""JSON by other hands: values are checked as they are read, and errors say where."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatcert.artefacts import ordinary
from splatcert.errors import InputError

MAX_JSON = 1 << 28

Meta = Mapping[str, Any]


class TransformsError(InputError):
    """A transforms file that cannot be read."""


@dataclass(frozen=True)
class Source:
    """One JSON file, for reading values out of it with messages that say where."""

    path: Path
    meta: Meta

    def wrong(self, why: str, frame: str = "") -> TransformsError:
        """An error that names this file and the frame."""
        where = f"{self.path}, frame {frame!r}" if frame else f"{self.path}"
        return TransformsError(f"{why}.\n  In {where}.\n  Correct the file, or export it again.")

    def number(self, meta: Meta, key: str, frame: str = "") -> float | None:
        """A finite number, or None where the key is absent."""
        value = meta.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(f"{key!r} must be a number, got {value!r:.60}", frame)
        try:
            number = float(value)
        except OverflowError:  # JSON's whole numbers have no largest one
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong(f"{key!r} must be finite, got {value!r:.60}", frame)
        return number

    def matrix(self, value: object, what: str, frame: str = "") -> NDArray[np.float64]:
        """A finite 4 x 4 matrix; the last row may be missing."""
        try:
            matrix = np.array(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            matrix = np.empty(0)
        if matrix.shape == (3, 4):
            matrix = np.vstack([matrix, [0, 0, 0, 1]])
        if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
            raise self.wrong(f"{what} must be a finite 4 x 4 matrix, got {value!r:.80}", frame)
        return matrix


def load_json(path: Path) -> Source:
    """Parse a JSON object of a size that is still a description and not an attack."""
    size = ordinary(path).stat().st_size
    if size > MAX_JSON:
        raise TransformsError(
            f"{path} has {size} bytes; a description of photos has at most {MAX_JSON}.\n"
            "  Check that this is the right file."
        )
    try:
        meta = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise TransformsError(
            f"{path} is not valid JSON: {error}.\n  The file is cut short or damaged: "
            "copy or export it again."
        ) from None
    if not isinstance(meta, dict):
        raise TransformsError(f"{path} must hold a JSON object, got {type(meta).__name__}.")
    return Source(path, meta)
