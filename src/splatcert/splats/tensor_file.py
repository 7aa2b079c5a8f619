# SPDX-License-Identifier: Apache-2.0
"""Tensors as a safetensors file that appears whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from splatcert.artefacts import replacing


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: dict[str, str]) -> None:
    """Write tensors and some texts aside, and rename."""
    with replacing(path) as aside:
        try:
            save_file({name: one.contiguous() for name, one in tensors.items()}, aside, facts)
        except SafetensorError as error:  # a full disk has no type of its own there
            raise OSError(str(error)) from error
