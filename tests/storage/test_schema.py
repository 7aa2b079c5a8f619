# SPDX-License-Identifier: Apache-2.0
"""Dataclasses survive JSON bit for bit; a wrong file or entry is refused by name."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatcert.storage.schema import (
    JsonError,
    PlainError,
    from_plain,
    load_json,
    read_json,
    to_plain,
)


@dataclass(frozen=True)
class Part:
    share: Fraction
    values: tuple[float, ...]


@dataclass(frozen=True)
class Whole:
    name: str
    count: int
    ready: bool
    kind: Literal["one", "two"]
    part: Part
    corner: tuple[float, float]
    parts: dict[str, Part]
    maybe: str | None = None
    anything: Any = None


def whole(**changed: Any) -> Whole:
    entries: dict[str, Any] = {
        "name": "a",
        "count": 3,
        "ready": True,
        "kind": "one",
        "part": Part(Fraction(1, 10), (0.1, math.inf)),
        "corner": (1.0, -0.0),
        "parts": {"x": Part(Fraction(1, 3), ())},
    }
    return Whole(**{**entries, **changed})


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(to_plain(value), allow_nan=False))


def test_a_dataclass_comes_back_equal():
    assert from_plain(Whole, through_json(whole())) == whole()
    assert to_plain(whole())["part"] == {"share": "1/10", "values": [0.1, "inf"]}


@given(st.floats())
def test_every_float_keeps_its_bits(value):
    back = from_plain(float, through_json(value))
    assert back == value or (math.isnan(back) and math.isnan(value))


@given(st.fractions(min_value=0))
def test_every_fraction_is_exact(value):
    assert from_plain(Fraction, through_json(value)) == value


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        (("count",), 3.0, "count must be a whole number, got 3.0"),
        (("count",), True, "count must be a whole number"),
        (("ready",), 1, "ready must be true or false"),
        (("kind",), "three", "kind must be one of one, two"),
        (("part", "share"), "0.1", r"part.share must be a fraction such as \"1/10\", got '0.1'"),
        (("part", "share"), "1/0", "part.share must be a fraction"),
        (("part", "values"), [1, "x"], r"part.values\[1\] must be a number, got 'x'"),
        (("corner",), [1.0], "corner must be a list of 2"),
        (("parts", "x"), None, "parts.x must be an object, got None"),
        (("name",), None, "name must be text"),
        (("other",), 1, "other is not an entry of this format"),
    ],
)
def test_a_wrong_entry_is_named_by_its_place(place, value, named):
    plain = through_json(whole())
    holder = plain
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with pytest.raises(PlainError, match=named):
        from_plain(Whole, plain)


def test_a_missing_entry_is_named():
    plain = through_json(whole())
    del plain["part"]["share"]
    with pytest.raises(PlainError, match=r"part\.share is missing"):
        from_plain(Whole, plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("\x00\xff", "is not valid JSON"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("[1e999]", "1e999 is not a JSON number"),
        ("[" + "1, " * 50 + "1]", "has more than 100 bytes, too many for a test file"),
    ],
)
def test_a_file_that_is_not_json_is_refused(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(JsonError, match=message) as caught:
        read_json(path, "test file", 100 if "more than" in message else 1 << 20)
    assert str(path) in str(caught.value)


def test_what_cannot_be_opened_is_refused_in_the_callers_words(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("none", "No such file"), ("pipe", "a pipe"), (".", "directory")):
        with pytest.raises(PlainError, match=f"cannot read the test file (.|\n)*{reason}"):
            read_json(tmp_path / name, "test file", raises=PlainError)


def test_foreign_files_may_have_a_byte_order_mark_and_nan(tmp_path):
    (tmp_path / "a.json").write_text('{"a": NaN}', encoding="utf-8-sig")
    assert math.isnan(load_json(tmp_path / "a.json", "test file").meta["a"])
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(JsonError, match="must hold a JSON object, got list"):
        load_json(tmp_path / "a.json", "test file")
