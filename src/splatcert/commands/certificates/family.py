# SPDX-License-Identifier: Apache-2.0
"""`splatcert certify` with several models or scales: one promise for all of them."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splatcert.console import say, say_all, show_table, stages
from splatcert.errors import OptionError

if TYPE_CHECKING:
    from splatcert.capture import Capture
    from splatcert.certificate.family import Family
    from splatcert.commands.certificates.certify import Certify
    from splatcert.commands.certificates.scales import Chosen
    from splatcert.commands.engines import Engine
    from splatcert.config import PathPromise


def model_names(models: Sequence[Path]) -> dict[str, Path]:
    """A name for each model: that of its file or folder, longer where two agree."""
    for name in (_own_name, lambda path: absolute(path).name, _with_parent):
        named = {name(path): path for path in models}
        if len(named) == len(models):
            return named
    raise OptionError(
        "two of the models have the same name.\n  Rename one: members are named after models."
    )


def absolute(path: Path) -> Path:
    """The path from the root; links are not followed, for they may form a loop."""
    return Path(os.path.abspath(path))


def _own_name(path: Path) -> str:
    place = absolute(path)
    return place.name if place.is_dir() else place.stem


def _with_parent(path: Path) -> str:
    return f"{absolute(path).parent.name}-{_own_name(path)}"


def certify_several(
    asked: Certify,
    captures: Mapping[str, Capture],
    places: Mapping[str, Path],
    scales: Sequence[Chosen],
    promise: PathPromise | None,
    engine: Engine,
) -> None:
    """Certify all candidates together, write the family's folder, and state the guarantee."""
    from splatcert.certificate.store import is_certificate, remember_places
    from splatcert.commands.certificates.certify import opened_words
    from splatcert.families.candidates import candidates_of, refuse_candidates
    from splatcert.families.certify import certify_candidates
    from splatcert.storage.whole import owned_folder

    if is_certificate(asked.output):
        raise OptionError(
            f"{asked.output} holds a certificate of a single model.\n"
            "  Choose another folder for the family: --output FAMILY."
        )
    config, backend = asked.config(), engine.backend
    candidates = candidates_of(captures, [scale for scale, _ in scales], config)
    refuse_candidates(candidates, promise, asked.levels(), backend)  # before a word or a folder
    first = next(iter(captures))
    if not asked.json:
        say_all(opened_words(captures[first], places[first]))
        for name in list(captures)[1:]:
            say("Model", f"{places[name]}, {len(captures[name].splats):,} Gaussians")
        say("Back end", engine.words)
        for _, instead in scales:
            say_all(instead)
    with owned_folder(asked.output, "certifying"), stages() as on:
        family = certify_candidates(
            candidates, promise, config, backend, folder=asked.output, on=on
        )
        family.save(asked.output)
        for name, one in candidates.items():
            model = next(n for n, capture in captures.items() if capture is one.capture)
            remember_places(asked.output / name, asked.data, places[model])
    if asked.json:
        print(json.dumps(family_facts(family, asked.output), indent=2))
        return
    show_family(family, asked.output)
    place = shlex.quote(str(asked.output))
    name = next(iter(family))
    say("Next", f"splatcert report {place} --member {name}    splatcert verify {place}")


def show_family(family: Family, folder: Path) -> None:
    """The guarantee of a family, and a table of its members."""
    from splatcert.report.words.promise import (
        MEMBER_COLUMNS,
        applies_words,
        guarantee_words,
        member_rows,
    )
    from splatcert.report.words.summary import earlier_use, prediction_words

    lines = {
        "Family": str(folder),
        "Guarantee": guarantee_words(family.first),
        "Applies to": applies_words(family.first),
        "Photos used": earlier_use(family.first),
        "Prediction": prediction_words(family.values()),
    }
    say_all({label: text for label, text in lines.items() if text})
    show_table(MEMBER_COLUMNS, member_rows(family.record), numbers=MEMBER_COLUMNS[2:])


def family_facts(family: Family, folder: Path) -> dict[str, Any]:
    """The same for scripts."""
    from splatcert.storage.schema import to_plain

    record = family.first.record
    members = [
        {**to_plain(one), "price": one.price, "path": str(folder / one.name)}
        for one in family.record.members
    ]
    return {
        "kind": "family",
        "path": str(folder),
        "guarantee": family.guarantee,
        "alpha": to_plain(family.first.alpha),
        "beta": to_plain(family.first.beta),
        "views": record.guarantee.views,
        "threshold": to_plain(family.record.threshold),
        "members": members,
    }
