# SPDX-License-Identifier: Apache-2.0
"""Ways to damage a file. Each takes bytes and a seeded generator and returns other bytes."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from random import Random
from typing import Any

Mutation = Callable[[bytes, Random], bytes]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
STRANGE_NUMBERS = (
    b"-1", b"0", b"1e999", b"nan", b"-inf", b"99999999999999999999", b"1.5.2", b"", b"1e-400",
    b"0x10", b"2147483648", b"18446744073709551616",
)  # fmt: skip
STRANGE_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, float("nan"), float("inf"), "", "\ud800", "../../etc/passwd",
    "a\0b", "x" * 5000, [], [[]], {}, {"": None}, [1, "2", None], 2**63,
)  # fmt: skip
DEEP = 20_000


def truncate(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def flip_bits(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 12)):
        changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def flip_early_bits(data: bytes, random: Random) -> bytes:
    """Damage to the first bytes, where headers and counts are."""
    head = min(len(data), 96)
    return flip_bits(data[:head], random) + data[head:]


def enlarge_integer(data: bytes, random: Random) -> bytes:
    """Eight bytes somewhere near the start that say a very large number."""
    at = random.choice([0, 4, 8, 12, 16, 24, 32, 64])
    number = random.choice([2**64 - 1, 2**63, 2**40, 2**32 + 1])
    return data[:at] + struct.pack("<Q", number) + data[at + 8 :]


def remove_piece(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + data[at + random.randint(1, 64) :]


def repeat_piece(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    end = at + random.randint(1, 256)
    return data[:end] + data[at:end] + data[end:]


def insert_noise(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + random.randbytes(random.randint(1, 64)) + data[at:]


def strange_number(data: bytes, random: Random) -> bytes:
    """One number of a text replaced; in a binary file, of its text header."""
    found = list(NUMBER.finditer(data[:4096]))
    if not found:
        return flip_bits(data, random)
    chosen = random.choice(found)
    return data[: chosen.start()] + random.choice(STRANGE_NUMBERS) + data[chosen.end() :]


def remove_line(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    del lines[random.randrange(min(len(lines), 40))]
    return b"\n".join(lines)


def repeat_line(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    at = random.randrange(min(len(lines), 40))
    return b"\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def utf16(data: bytes, _: Random) -> bytes:
    return data.decode("latin-1").encode("utf-16")


def bad_unicode(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + b"\xff\xfe\xc3\x28\xed\xa0\x80" + data[at:]


def nothing(_: bytes, __: Random) -> bytes:
    return b""


def deep_nesting(_: bytes, __: Random) -> bytes:
    return b"[" * DEEP + b"]" * DEEP


def deep_object(_: bytes, __: Random) -> bytes:
    return b'{"frames":' * DEEP + b"0" + b"}" * DEEP


def _places(value: Any, path: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        place
        for key, item in inner
        for place in [
            (*path, key),
            *(_places(item, (*path, key)) if isinstance(item, (dict, list)) else []),
        ]
    ]


def _edit(data: bytes, random: Random, change: Callable[[Any, Any], None]) -> bytes:
    content = json.loads(data)
    *path, last = random.choice(_places(content))
    holder = content
    for key in path:
        holder = holder[key]
    change(holder, last)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def json_value(data: bytes, random: Random) -> bytes:
    """One value, at any depth, becomes something else."""
    return _edit(data, random, lambda at, key: at.__setitem__(key, random.choice(STRANGE_VALUES)))


def json_missing(data: bytes, random: Random) -> bytes:
    return _edit(data, random, lambda at, key: at.__delitem__(key))


def json_repeated_key(data: bytes, random: Random) -> bytes:
    """The same key twice: parsers keep the last one."""
    key = random.choice(re.findall(rb'"(\w+)":', data))
    at = data.index(b"{") + 1
    return data[:at] + b'"' + key + b'": 7, ' + data[at:]


def json_unknown_key(data: bytes, random: Random) -> bytes:
    at = random.choice([m.end() for m in re.finditer(rb"\{", data)])
    return data[:at] + b'"surprise": [1e400, null], ' + data[at:]


BINARY: dict[str, Mutation] = {
    "cut": truncate,
    "bits": flip_bits,
    "early-bits": flip_early_bits,
    "large": enlarge_integer,
    "piece-gone": remove_piece,
    "piece-twice": repeat_piece,
    "noise": insert_noise,
    "empty": nothing,
}
TEXT: dict[str, Mutation] = {
    "cut": truncate,
    "number": strange_number,
    "line-gone": remove_line,
    "line-twice": repeat_line,
    "bits": flip_bits,
    "utf16": utf16,
    "unicode": bad_unicode,
    "empty": nothing,
}
JSON: dict[str, Mutation] = {
    "cut": truncate,
    "value": json_value,
    "gone": json_missing,
    "key-twice": json_repeated_key,
    "key-new": json_unknown_key,
    "number": strange_number,
    "utf16": utf16,
    "unicode": bad_unicode,
    "deep": deep_nesting,
    "deep-object": deep_object,
    "empty": nothing,
}
