# SPDX-License-Identifier: Apache-2.0
"""A hook of the documentation's builder: puts an executed notebook into the page that wants it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

WANTED = re.compile(r"<!-- notebook: (\S+) -->")


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Replace each mark in a page by the cells of its notebook."""
    folder = Path(config["docs_dir"])
    return WANTED.sub(lambda match: cells_of(folder / match[1]), markdown)


def cells_of(path: Path) -> str:
    """Words, code and what the code showed, one after the other."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub("^#", "##", source))
        else:
            parts += [f"```python\n{source}\n```", *map(output_of, cell["outputs"])]
    return "\n\n".join(parts)


def output_of(output: dict[str, Any]) -> str:
    """One output, as rich as a page can show it."""
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"\s*\n\s*", " ", "".join(data["text/html"]))
        return f'<div class="output">{html}</div>'
    if "image/png" in data:
        address = f"data:image/png;base64,{data['image/png'].strip()}"
        return f'<div class="output"><img src="{address}" alt="Figure"></div>'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```"
