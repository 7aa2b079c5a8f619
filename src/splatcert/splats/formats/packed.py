# SPDX-License-Identifier: Apache-2.0
"""What the readers of single files share: one result type, and their common arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from splatcert.splats.gaussians import Splats
from splatcert.splats.untrusted import ForeignFileError
from splatcert.storage.whole import require_regular_file

FileFormat = Literal["ply", "compressed-ply", "spz", "splat", "sog", "glb"]
Floats = NDArray[np.float64]

SH_C0 = 0.28209479177387814
"""The constant harmonic: colour = 0.5 + SH_C0 * coefficient."""
SLACK = 1 << 20
"""Bytes that a small file may unpack to, however well it is compressed."""
MIN_TEXT = 3
"""Characters from which on the beginning of a file is shown as text."""
OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


@dataclass(frozen=True, eq=False, kw_only=True)
class FileModel:
    """A model in one file: what its header says, and how to decode the rest."""

    format: FileFormat
    files: tuple[Path, ...]
    count: int
    sh_degree: int
    decode: Callable[[], Splats]
    antialiased: bool = False
    extra: tuple[str, ...] = ()
    """Further per-Gaussian columns, by name."""
    notes: tuple[str, ...] = ()

    def read(self, check: bool) -> Splats:
        """The Gaussians; `check` refuses values that no renderer can use."""
        with np.errstate(all="ignore"):  # what is not finite is named below
            splats = self.decode()
        if check:
            splats.check_finite()
        return splats


def refusal(path: Path, what: str, *todo: str) -> ForeignFileError:
    """An error of at most five lines: what is wrong with the file, then what to do."""
    return ForeignFileError("\n  ".join([f"{path}: {what}", *todo]))


def first_bytes(start: bytes) -> str:
    """How a file begins, for a message: text in quotes, anything else in hexadecimal."""
    text = start.decode("ascii", errors="replace").split("\n")[0].strip()
    if len(text) >= MIN_TEXT and text.isprintable() and text.isascii():
        return f'"{text}"'
    return f"the bytes {start[:8].hex(' ')}"


def damaged(path: Path, what: str) -> ForeignFileError:
    """The error of a file that contradicts itself or ends too early."""
    return refusal(path, what, "The file is truncated or damaged; copy or export it again.")


@dataclass(frozen=True)
class Blob:
    """A file, or the part of one that holds another file."""

    path: Path
    start: int
    size: int

    def read(self, start: int = 0, count: int | None = None) -> bytes:
        """Some of its bytes; fewer where it ends earlier."""
        left = max(0, self.size - start)
        try:
            with require_regular_file(self.path).open("rb") as file:
                file.seek(self.start + start)
                return file.read(left if count is None else min(count, left))
        except OSError as error:
            raise refusal(self.path, f"cannot be read: {error.strerror}") from None

    def part(self, start: int, size: int) -> Blob:
        """A range of bytes that lies inside."""
        if not 0 <= start <= start + size <= self.size:
            raise damaged(
                self.path, f"bytes {start} to {start + size} are needed, but {self.size} are there."
            )
        return Blob(self.path, self.start + start, size)


def whole_file(path: Path) -> Blob:
    """All of a regular file."""
    try:
        return Blob(path, 0, require_regular_file(path).stat().st_size)
    except OSError as error:
        raise refusal(path, f"cannot be read: {error.strerror}") from None


def logits(opacities: ArrayLike) -> Floats:
    """Inverse sigmoid; an opacity of exactly 0 or 1 becomes infinite, which renders exactly."""
    values = np.asarray(opacities, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values) - np.log1p(-values)


def lerp(low: ArrayLike, high: ArrayLike, share: ArrayLike) -> Floats:
    """A value this share of the way from low to high."""
    share = np.asarray(share, np.float64)
    return np.asarray(low) * (1 - share) + np.asarray(high) * share


def unit_quaternions(largest: NDArray[np.integer], others: Floats) -> Floats:
    """Unit quaternions from the index of their largest component and the other three, [N, 4]."""
    quats = np.empty((len(others), 4))
    rest = np.sqrt(np.maximum(0.0, 1.0 - (others**2).sum(axis=1)))
    place = largest.astype(np.intp)
    np.put_along_axis(quats, OTHERS[place], others, axis=1)
    np.put_along_axis(quats, place[:, None], rest[:, None], axis=1)
    return quats


def assemble(
    *,
    means: ArrayLike,
    quats: ArrayLike,
    log_scales: ArrayLike,
    logit_opacities: ArrayLike,
    constant: ArrayLike,
    rest: ArrayLike | None = None,
    antialiased: bool = False,
    extra: dict[str, NDArray[np.float32]] | None = None,
) -> Splats:
    """Splats from decoded arrays; of the harmonics, `constant` is [N, 3] and `rest` [N, K, 3]."""
    first = np.asarray(constant, np.float32)[:, None]
    sh = first if rest is None else np.concatenate([first, np.asarray(rest, np.float32)], axis=1)

    def tensor(values: ArrayLike) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, np.float32))

    return Splats(
        means=tensor(means),
        quats=tensor(quats),
        log_scales=tensor(log_scales),
        logit_opacities=tensor(logit_opacities),
        sh=tensor(sh),
        antialiased=antialiased,
        extra={name: torch.from_numpy(column) for name, column in (extra or {}).items()},
    )
