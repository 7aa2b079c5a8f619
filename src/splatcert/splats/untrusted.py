# SPDX-License-Identifier: Apache-2.0
"""Read the side files of other trainers without running anything they contain.

Inria evaluates `cfg_args`, nerfstudio builds Python objects from `config.yml`, and
a checkpoint is a pickle. A model from the internet must not be able to do any of that.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
import yaml
from torch import Tensor

from splatcert.splats.gaussians import SplatsError
from splatcert.storage.whole import require_regular_file

MAX_TEXT_BYTES = 64 << 20
"""Largest JSON file beside a model."""
MAX_CONFIG_BYTES = 1 << 16
"""Largest settings file: trainers write a few kilobytes, and YAML of 1 MiB takes a minute."""
MAX_CONFIG_ENTRIES = 1 << 20
MAX_CONFIG_NUMBER = 1 << 63
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
ZIP_MAGIC = b"PK\x03\x04"
SAFE_TORCH = (2, 10)
"""First torch whose weights-only loader neither runs code (CVE-2025-32434) nor corrupts memory
(CVE-2026-24747)."""


class ForeignFileError(SplatsError):
    """A trainer's file that cannot be read safely, or not at all."""


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Tensors and plain containers of a torch file; any other object is refused.

    Archives are memory-mapped, so the optimiser state that trainers also store is not read.
    """
    _require_safe_torch(path)
    try:
        with require_regular_file(path).open("rb") as file:
            mapped = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
        with _numpy_scalars_allowed(), catch_warnings():
            simplefilter("ignore")  # about tensor types that are refused anyway
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:  # whatever makes the parser fail, the file is at fault
        raise _refusal(path, str(error) or type(error).__name__) from None
    if not isinstance(content, dict):
        raise ForeignFileError(
            f"{path}: the checkpoint contains a {type(content).__name__}, not named entries.\n"
            "  Pass a gsplat or nerfstudio checkpoint, or a PLY file."
        )
    return content


def _require_safe_torch(path: Path) -> None:
    """Refuse checkpoints under an old torch, which an installation may have despite our floor."""
    numbers = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if numbers is None or tuple(map(int, numbers.groups())) < SAFE_TORCH:
        raise ForeignFileError(
            f"{path}: refused, because torch {torch.__version__} has known holes through which a "
            "checkpoint can run code.\n"
            "  Install torch 2.10 or newer, or export the model as PLY and load that."
        )


def _refusal(path: Path, reason: str) -> ForeignFileError:
    named = re.search(r"GLOBAL ([\w.]+)", reason)
    if named:
        return ForeignFileError(
            f"{path}: refused, because loading it would call {named[1]}, which is code.\n"
            "  Export the model as PLY in the tool that wrote it, and load that."
        )
    return ForeignFileError(
        f"{path}: not a readable torch checkpoint ({reason.splitlines()[0][:120]}).\n"
        "  The file may be truncated; copy it again."
    )


def _numpy_scalars_allowed() -> AbstractContextManager[object]:
    """Learning-rate schedules of nerfstudio leave NumPy numbers behind; those are data."""
    allow = getattr(torch.serialization, "safe_globals", None)
    if allow is None:
        return nullcontext()
    scalar = type(np.float64(0)).__reduce__(np.float64(0))[0]
    kinds = [type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8", "?")]
    names = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
    return allow([*((scalar, name) for name in names), np.dtype, *kinds])


def check_stored(path: Path, name: str, tensor: Tensor, *, whole: bool = False) -> None:
    """Refuse a tensor that is not plain numbers, all of which the file really holds.

    Whole numbers are refused too, unless `whole` is set.

    Strides of zero make a tensor of any size from one number, and a copy of it takes all
    the memory that its shape claims.
    """
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    number = tensor.is_floating_point() or (whole and tensor.dtype in WHOLE)
    if not (plain and number):
        kind = f"{tensor.dtype}, {tensor.layout}, on {tensor.device}".replace("torch.", "")
        raise ForeignFileError(
            f"{path}: {name} is {kind}, not plain floating-point numbers.\n"
            "  Export the model as PLY in the tool that wrote it, and load that."
        )
    claimed = tensor.numel() * tensor.element_size()
    stored = tensor.untyped_storage().nbytes()
    if claimed > stored:
        raise ForeignFileError(
            f"{path}: {name} claims {list(tensor.shape)} values, {claimed} bytes, of which the "
            f"file holds {stored}.\n  The file is damaged or forged; copy it again."
        )


class _PlainLoader(yaml.SafeLoader):
    """Mappings, lists and scalars; tags that ask for Python objects are dropped."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """No merge keys: merging merged mappings doubles in size at every step."""


def _plain(loader: _PlainLoader, _suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)  # pyright: ignore[reportArgumentType]


_PlainLoader.add_multi_constructor("", _plain)


def load_config(path: Path) -> dict[str, Any]:
    """A YAML configuration as plain values, whatever classes it names."""
    text = _read_text(path, MAX_CONFIG_BYTES)
    try:
        # A subclass of SafeLoader: it cannot import or call anything.
        content = yaml.load(text, _PlainLoader)
        if _entries(content, {}) > MAX_CONFIG_ENTRIES:
            raise ValueError(f"references unfold it to more than {MAX_CONFIG_ENTRIES} entries")
    except Exception as error:  # tags such as !!bool and !!timestamp raise errors of any type
        reason = str(error) if isinstance(error, (yaml.YAMLError, ValueError)) else "a wrong tag"
        raise ForeignFileError(
            f"{path}: not readable as YAML ({reason.split(chr(10))[0][:160]}).\n"
            "  Restore the file, or remove it to continue without it."
        ) from None
    if not isinstance(content, dict):
        raise ForeignFileError(f"{path}: expected named settings, got {type(content).__name__}")
    return content


def _entries(value: Any, known: dict[int, float]) -> float:
    """Number of values a full traversal would visit, shared ones once per reference."""
    if isinstance(value, int) and abs(value) > MAX_CONFIG_NUMBER:
        raise ValueError("it has a number of more than 19 digits")
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # visited again while it is counted: it contains itself
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_entries(item, known) for item in inner)
    return known[id(value)]


def load_namespace(path: Path) -> dict[str, Any]:
    """Literal settings of a text `Namespace(name=value, ...)`; other expressions are left out."""
    text = _read_text(path, MAX_CONFIG_BYTES)
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "Namespace"
        and not call.args
    ):
        raise ForeignFileError(
            f"{path}: expected the text Namespace(name=value, ...) that Inria's trainer writes, "
            f"found {text[:60]!r}.\n  Remove the file to continue without it."
        )
    settings: dict[str, Any] = {}
    for keyword in call.keywords:
        try:
            settings[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return settings


def _read_text(path: Path, limit: int) -> str:
    try:
        size = require_regular_file(path).stat().st_size
        if size > limit:
            raise ForeignFileError(
                f"{path}: {size} bytes, more than the limit of {limit} for such a file"
            )
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ForeignFileError(f"{path}: cannot be read: {error.strerror}") from None


def setting(config: Mapping[str, Any], *keys: str) -> Any:
    """A nested entry, or None if any step is missing."""
    value: Any = config
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
