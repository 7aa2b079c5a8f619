# SPDX-License-Identifier: Apache-2.0
"""Malformed compressed models, families and guides made by hand.

Bombs, loops, and names that lead elsewhere.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from handmade import Spoil, edited, link, nested, pipe, replaced, sparse, written
from PIL import Image

from splatcert.certificate.hashes import seal_of
from splatcert.certificate.store import FAMILY

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234567\n"


def spz(count: int, size: int) -> Spoil:
    """A gzip stream with an SPZ header and zeros."""
    head = struct.pack("<4sIIBBBB", b"NGSP", 3, count, 0, 12, 0, 0)
    return written(gzip.compress(head + bytes(size), 1))


def deflated(name: str, size: int) -> Spoil:
    """A zip archive with one member of zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(name, bytes(size))
    return written(stream.getvalue())


def webp_bomb(file: str) -> Spoil:
    """A picture of one colour, large when unpacked."""

    def spoil(it: Path) -> None:
        Image.new("RGBA", (8000, 8000)).save(it / file, "WEBP", lossless=True, method=0)

    return spoil


def glb(content: object) -> Spoil:
    """A .glb file of JSON alone."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A)
    return written(head + text)


def doubling(depth: int) -> dict:
    """Nodes that each name the next one twice."""
    nodes = [{"children": [k + 1, k + 1]} for k in range(depth)]
    return {"nodes": [*nodes, {}], "scenes": [{"nodes": [0]}]}


def members(change: Callable[[dict[str, str]], object]) -> Spoil:
    """Other members in a family's list, with a seal that is right."""

    def edit(content: dict) -> None:
        change(content["members"])
        content["seal"] = seal_of(content)

    return edited(edit, FAMILY)


def member_link(target: str) -> Spoil:
    """A member's folder replaced by a link."""

    def spoil(it: Path) -> None:
        shutil.rmtree(it / "constant")
        (it / "constant").symlink_to(target)

    return spoil


FORMATS: dict[str, dict[str, Spoil]] = {
    "model.spz": {
        "bomb": spz(1, 1 << 27),
        "count-huge": spz(2**32 - 1, 1 << 20),
        "other-gzip": written(gzip.compress(b"hello")),
        "pointer": written(POINTER),
        "a-device": link("", "/dev/zero"),
        "two-gigabytes": sparse(2 << 30),
    },
    "model4.spz": {
        "count-huge": replaced(struct.pack("<II", 4, 60), struct.pack("<II", 4, 2**32 - 1)),
        "streams-many": written(struct.pack("<4sIIBBBBI12x", b"NGSP", 4, 60, 0, 12, 0, 255, 32)),
    },
    "model.splat": {
        "random": written(Random(3).randbytes(3200)),
        "zeros": written(bytes(3200)),
        "two-gigabytes": sparse(2 << 30),
    },
    "model.sog": {
        "bomb": deflated("meta.json", 1 << 28),
        "long-name": deflated("a" * 60_000 + "/meta.json", 10),
        "code": deflated("archive/data.pkl", 10),
    },
    "sog": {
        "texture-outside": edited(
            lambda meta: meta["quats"].update(files=["../../../etc/passwd"]), "meta.json"
        ),
        "texture-device": link("quats.webp", "/dev/zero"),
        "texture-bomb": webp_bomb("quats.webp"),
        "count-huge": edited(lambda meta: meta["means"].update(shape=[2**31 - 1, 3]), "meta.json"),
        "deep": edited(lambda meta: meta["means"].update(mins=nested(500)), "meta.json"),
    },
    "model.glb": {
        "json-deep": glb(b"[" * 100_000),
        "nodes-loop": glb({"nodes": [{"children": [0, 0]}], "scenes": [{"nodes": [0]}]}),
        "nodes-doubling": glb(doubling(60)),
        "a-mesh": glb({"nodes": [{"mesh": 0}], "meshes": [{"primitives": [{}]}]}),
    },
    "family": {
        "member-outside": members(lambda known: known.update({"../cert": "0" * 64})),
        "members-many": members(lambda known: known.update({f"m{k}": "" for k in range(5000)})),
        "member-gone": members(lambda known: known.pop("constant")),
        "members-list": edited(lambda c: c.update(members=["paper", "constant"]), FAMILY),
        "schema-new": edited(lambda c: c.update(schema=99), FAMILY),
        "a-device": link(FAMILY, "/dev/zero"),
        "a-pipe": pipe(FAMILY),
        "two-gigabytes": sparse(2 << 30, FAMILY),
        "member-link-outside": member_link("/etc"),
        "member-link-loop": member_link("constant"),
    },
    "guide.json": {
        "a-device": link("", "/dev/zero"),
        "a-pipe": pipe(),
        "weights-nan": edited(lambda c: c.update(weights=[float("nan")] * len(c["weights"]))),
        "weights-huge": edited(lambda c: c.update(weights=[1e308] * len(c["weights"]))),
        "weights-short": edited(lambda c: c.update(weights=[1.0])),
        "floor": edited(lambda c: c.update(floor=7)),
        "gate": edited(lambda c: c.update(gate=[1.0])),
        "gate-nan": edited(lambda c: c.update(gate=[float("nan")] * 3)),
        "beta": edited(lambda c: c.update(beta="1/0")),
        "features": edited(lambda c: c.update(features=["a"])),
        "card-list": edited(lambda c: c.update(card={"scenes": 5})),
        "version": edited(lambda c: c.update(version=1)),
        "two-gigabytes": sparse(2 << 30),
    },
    "packed.ply": {
        "no-chunks": replaced(b"element chunk 1", b"element chunk 0"),
        "chunks-many": replaced(b"element chunk 1", b"element chunk 1099511627776"),
    },
}
