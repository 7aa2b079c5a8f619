# SPDX-License-Identifier: Apache-2.0
"""Certificates of older schemas, as they would be written today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from splatcert.certificate.content.promise import VIEW
from splatcert.difficulty.rule import FactorParameters
from splatcert.storage.schema import from_plain, to_plain


def _from_schema_2(content: dict[str, Any]) -> dict[str, Any]:
    """Schema 2 had only the paper's scale, and stored its parameters as the scale."""
    old = from_plain(FactorParameters, content.get("scale"), "scale")
    batch_only = old.unit == "batch" and 0 < old.lambda_a < 1
    scale = {
        "name": "paper",
        "needs_photos": False,
        "shape": to_plain(old.lambda_b),
        "batch_only": batch_only,
        "parameters": content["scale"],
    }
    return _from_schema_3({**content, "scale": scale})


def _from_schema_3(content: dict[str, Any]) -> dict[str, Any]:
    """Schema 3 had none of these entries; each stands for what it then meant."""
    renamed = {RENAMED.get(name, name): value for name, value in content.items()}
    return _with(renamed, SINCE_SCHEMA_3)


def _with(content: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """The content with these entries; an object among them adds to the one already there."""
    merged = {**added, **content}
    for name, value in added.items():
        if not isinstance(value, dict):
            merged[name] = value
        elif isinstance(merged[name], dict):
            merged[name] = _with(merged[name], value)
    return merged


RENAMED = {"exchangeability": "evenness"}
"""Entries whose name said more than they hold."""
SINCE_SCHEMA_3: dict[str, Any] = {
    "promise": to_plain(VIEW),
    "history": None,
    "center": "render",
    "strangeness": None,
    "scale": {"holes": "paper", "bounds": None},
    "scene": {"loaded": {"sparse": "first", "skip_missing": False}},
}
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    2: _from_schema_2,
    3: _from_schema_3,
}
"""Upgrades from older schemas to the current one; the seal is that of the file as stored."""
