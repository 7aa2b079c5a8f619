# SPDX-License-Identifier: Apache-2.0
"""Which frames are finished, so that an interrupted rendering can resume."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splatcert.storage.whole import append_line, refuse_link, write_text_whole

LEDGER = ".frames.jsonl"
Row = dict[str, Any]


class FrameLedger:
    """One line per finished frame: a hash of its inputs, its files and its row of the table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[str, tuple[str, Row]] = {}
        refuse_link(path := folder / LEDGER)
        lines = (
            path.read_text(encoding="utf-8", errors="replace").splitlines()
            if path.is_file()
            else []
        )
        for line in lines:
            try:
                entry = json.loads(line)
                self._done[entry["row"]["name"]] = (entry["key"], entry["row"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that an interrupted process did not finish

    def finished(self, name: str, key: str) -> Row | None:
        """The row of a frame with the same inputs, if its files still exist."""
        stored, row = self._done.get(name, ("", {}))
        if stored != key or not all((self._folder / file).is_file() for file in files_of(row)):
            return None
        return row

    def add(self, key: str, row: Row) -> None:
        """Record a frame whose files have been written."""
        self._done[row["name"]] = (key, row)
        append_line(self._folder / LEDGER, json.dumps({"key": key, "row": row}))


def files_of(row: Row) -> list[str]:
    """Files of a frame, relative to the output folder."""
    return list(row.get("files", {}).values())


def key_of(*parts: object) -> str:
    """One hash of everything that determines a frame's pixels and files."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def write_tables(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Write `frames.json` with everything and `frames.csv` for spreadsheets."""
    whole, sheet = folder / "frames.json", folder / "frames.csv"
    write_text_whole(whole, json.dumps(list(rows), indent=1) + "\n")
    text = io.StringIO()
    names = [name for name in rows[0] if name not in ("files", "reasons", "descriptor")]
    names += ["reasons"] if "reasons" in rows[0] else []
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        reasons = {"reasons": "; ".join(row["reasons"])} if "reasons" in row else {}
        writer.writerow({**row, **reasons})
    write_text_whole(sheet, text.getvalue())
    return [whole, sheet]
