# SPDX-License-Identifier: Apache-2.0
"""Objects that display themselves in a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NOTEBOOK = "splatcert.frames.notebook"
"""Draws them; named, not imported, because it needs everything that they do not."""


class Shown:
    """A class whose objects a notebook shows as a picture or a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return import_module(NOTEBOOK).html_of(self)


class Plotted(Shown):
    """A class whose objects can also be plotted."""

    __slots__ = ()

    def plot(self) -> Any:
        """A matplotlib figure; needs the extra `figures`."""
        return import_module(NOTEBOOK).figure_of(self)
