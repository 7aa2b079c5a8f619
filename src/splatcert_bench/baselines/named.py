# SPDX-License-Identifier: Apache-2.0
"""Baselines by name: the built-in ones, and any class with a `map` method."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from splatcert.errors import InputError
from splatcert.scales.maps import OwnMap
from splatcert_bench.baselines.baseline import Baseline, Fitted
from splatcert_bench.baselines.constant import Constant
from splatcert_bench.baselines.ensemble import Ensemble
from splatcert_bench.baselines.gavis import KAPPAS, Visibility
from splatcert_bench.baselines.gsu import ResidualMap, WideHoles

Maker = Callable[[Fitted], Baseline]
MAKERS: dict[str, Maker] = {
    "constant": Constant,
    "gsu": ResidualMap,
    "holes": WideHoles,
    **{f"gavis-{kappa}": partial(Visibility, kappa=kappa) for kappa in KAPPAS},
    "ensemble": Ensemble,
    "ensemble-full": partial(Ensemble, full=True),
}


class BaselineError(InputError):
    """A baseline that cannot be found or used."""


def as_scale(name: str, baseline: Baseline) -> OwnMap:
    """A baseline as a scale, which `certify` seals and verifies like any other."""
    return OwnMap(name, baseline.map)


def maker_of(name: str, beside: Path | None = None) -> Maker:
    """The class of a built-in name, or of `module:Class` on the Python path.

    The folder `beside`, if given, is searched first.
    """
    if name in MAKERS:
        return MAKERS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise BaselineError(
            f"there is no baseline {name!r}; built in are {', '.join(MAKERS)}.\n"
            "  Name one of your own as module:Class."
        )
    if beside is not None and str(beside) not in sys.path:
        sys.path.insert(0, str(beside))
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # the user's own module may fail in any way
        raise BaselineError(
            f"the baseline {name!r} cannot be imported: {error}.\n"
            "  Put its module next to the bench's TOML file, or add its folder to PYTHONPATH."
        ) from error
    if not callable(getattr(found, "map", None)):
        raise BaselineError(
            f"the baseline {name!r} has no method map(camera).\n"
            "  It must be a class that takes a Fitted and returns a positive [H, W] map."
        )
    return found
