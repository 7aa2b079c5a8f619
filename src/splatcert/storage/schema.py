# SPDX-License-Identifier: Apache-2.0
"""JSON read without trust: whole files, frozen dataclasses, and entries of foreign files.

A certificate is read by people and programs we do not know, and may have been edited by
either. So reading trusts nothing: a missing, additional or mistyped entry is named by its
place. Fractions are written "1/10", infinity "inf"; JSON has neither.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError
from splatcert.storage.json_text import finite_number, parse_json
from splatcert.storage.lfs import refuse_pointer
from splatcert.storage.whole import require_regular_file

Kind = TypeVar("Kind")
Meta = Mapping[str, Any]
MAX_JSON = 1 << 28
"""Largest JSON file that is read by default, in bytes."""
MAX_DIGITS = 100
"""Longest fraction in digits; beyond its own limit Python raises an error of its own."""


class JsonError(InputError):
    """A JSON file that cannot be read, or an entry of one that cannot be used."""


class PlainError(InputError):
    """A stored entry that is not what it should be; the message starts with its place."""


def read_json(
    path: Path,
    what: str,
    max_bytes: int = MAX_JSON,
    *,
    allow_nan: bool = False,
    raises: type[InputError] = JsonError,
) -> Any:
    """The content of a JSON file; `what` it should be goes into messages.

    NaN, Infinity and numbers beyond the largest float are not JSON, but Python reads and other
    programs write them: `allow_nan` is for foreign files, whose readers check every number.
    """
    parse, data = None if allow_nan else finite_number, b""
    try:
        with require_regular_file(path).open("rb") as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise raises(
                f"{path} has more than {max_bytes} bytes, too many for a {what}.\n"
                "  Check that this is the right file."
            )
        return parse_json(data.decode("utf-8-sig"), parse)
    except OSError as error:
        raise raises(
            f"cannot read the {what} {path}: {error.strerror or error}.\n  Check the path."
        ) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        refuse_pointer(path, data, raises)
        raise raises(
            f"{path} is not valid JSON: {error}.\n"
            "  The file is truncated or damaged: restore it, or create it again."
        ) from None


def to_plain(value: Any) -> Any:  # noqa: PLR0911 - one line per kind of value
    """A value as what JSON can hold; floats keep every bit."""
    if hasattr(value, "to_plain") and not isinstance(value, type):
        return value.to_plain()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_plain(getattr(value, name)) for name in entries_of(type(value))}
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    return value


def column(default: Any) -> Any:
    """A field of a dataclass that is not written to JSON: arrays beside it hold it."""
    return dataclasses.field(default=default, metadata={"column": True}, compare=False)


@cache
def entries_of(kind: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass that JSON holds."""
    return tuple(f.name for f in dataclasses.fields(kind) if not f.metadata.get("column"))


def from_plain(kind: type[Kind], value: Any, where: str = "") -> Kind:
    """A value of this type, or a `PlainError` that says which entry is wrong."""
    return _read(kind, value, where)


def _read(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, value, where)
    read = _GENERIC.get(typing.get_origin(kind))
    if read is not None:
        return read(typing.get_args(kind), value, where)
    return _SCALARS[kind](value, where)


def _read_dataclass(kind: Any, value: Any, where: str) -> Any:
    _require(isinstance(value, dict), value, where, "an object")
    known = _types_of(kind)
    if missing := sorted(known.keys() - value.keys()):
        raise PlainError(f"{_below(where, missing[0])} is missing")
    if unknown := sorted(value.keys() - known.keys()):
        raise PlainError(f"{_below(where, unknown[0])} is not an entry of this format")
    entries = {name: _read(t, value[name], _below(where, name)) for name, t in known.items()}
    try:
        return getattr(kind, "from_plain", kind)(**entries)
    except ValueError as error:
        raise PlainError(f"{where or 'the content'}: {error}") from None


@cache
def _types_of(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "plain_types"):
        return dict(kind.plain_types)
    hints = typing.get_type_hints(kind)
    return {name: hints[name] for name in entries_of(kind)}


def _read_optional(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None:
        _require(types.NoneType in arguments, value, where, "a value")
        return None
    (kind,) = (one for one in arguments if one is not types.NoneType)
    return _read(kind, value, where)


def _read_literal(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    return _require(value in arguments, value, where, f"one of {', '.join(arguments)}")


def _read_dict(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    _require(isinstance(value, dict), value, where, "an object")
    return {key: _read(arguments[1], item, _below(where, key)) for key, item in value.items()}


def _read_tuple(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    _require(isinstance(value, list), value, where, "a list")
    kinds = arguments
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        kinds = (arguments[0],) * len(value)
    _require(len(value) == len(kinds), value, where, f"a list of {len(kinds)}")
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(_read(kind, item, f"{where}[{index}]") for index, (kind, item) in pairs)


def _require(condition: bool, value: Any, where: str, wanted: str) -> Any:
    if not condition:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise PlainError(f"{where or 'the content'} must be {wanted}, got {shown}")
    return value


def _below(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _string(value: Any, where: str) -> str:
    is_text = isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
    return _require(is_text, value, where, "text")


def _flag(value: Any, where: str) -> bool:
    return _require(isinstance(value, bool), value, where, "true or false")


def _whole(value: Any, where: str) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return _require(is_whole, value, where, "a whole number")


def _number(value: Any, where: str) -> float:
    if value in ("inf", "nan", "-inf"):
        return float(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        return float(_require(is_number, value, where, "a number"))
    except OverflowError:
        raise PlainError(f"{where} is beyond the largest number") from None


def _fraction(value: Any, where: str) -> Fraction:
    wanted = 'a fraction such as "1/10"'
    above, slash, below = _require(isinstance(value, str), value, where, wanted).partition("/")
    digits = above + below
    exact = bool(slash and above and below) and digits.isascii() and digits.isdecimal()
    _require(exact and len(digits) < MAX_DIGITS and int(below) > 0, value, where, wanted)
    return Fraction(value)


_GENERIC: dict[Any, Callable[[tuple[Any, ...], Any, str], Any]] = {
    Literal: _read_literal,
    typing.Union: _read_optional,
    types.UnionType: _read_optional,
    tuple: _read_tuple,
    dict: _read_dict,
}
_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    str: _string,
    bool: _flag,
    int: _whole,
    float: _number,
    Fraction: _fraction,
    Any: lambda value, where: value,
}


@dataclass(frozen=True)
class JsonFile:
    """A JSON object of somebody else's, read entry by entry with messages that say where."""

    path: Path
    meta: Meta

    def wrong(self, why: str, frame: str = "") -> JsonError:
        """An error that names this file and the frame."""
        where = f"{self.path}, frame {frame!r}" if frame else f"{self.path}"
        return JsonError(f"{why}.\n  In {where}.\n  Correct the file, or export it again.")

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


def load_json(path: Path, what: str) -> JsonFile:
    """Read a file that must hold a JSON object."""
    meta = read_json(path, what, allow_nan=True)
    if not isinstance(meta, dict):
        raise JsonError(f"{path} must hold a JSON object, got {type(meta).__name__}.")
    return JsonFile(path, meta)
