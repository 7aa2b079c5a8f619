# SPDX-License-Identifier: Apache-2.0
"""From stored studies to results, with the measured costs added."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from splatcert import __version__
from splatcert.storage.schema import read_json
from splatcert_bench.run.entries import RESERVED
from splatcert_bench.run.fingerprint import Stamp, read_stamp, read_stamp_file
from splatcert_bench.run.layout import Bench, Model
from splatcert_bench.run.machine import machine
from splatcert_bench.site.results import write_results
from splatcert_bench.statistics.choices import Protocol
from splatcert_bench.studies.batch import ENSEMBLE_MEAN, MODEL
from splatcert_bench.studies.collection import read_studies


def evaluate(bench: Bench, skipped: Collection[str] = ()) -> None:
    """Write every table and figure that the studies allow, without those of skipped jobs."""
    settings = bench.config.evaluate
    models = {
        model.study_key(centre): model
        for model in bench.models()
        if f"{model.label}/study" not in skipped
        for centre in (MODEL, ENSEMBLE_MEAN)
    }
    guided = {key for key, model in models.items() if f"{model.label}/guided" not in skipped}
    protocol = Protocol(
        splits=settings.splits,
        native_splits=settings.native_splits,
        seed=settings.seed,
        resamples=settings.bootstrap,
    )
    stored = read_studies(bench.out / "studies", protocol, models, guided)
    costly = {study.key: costs(models[study.key], skipped) for study in stored.studies}
    studies = [replace(s, facts={**s.facts, **costly[s.key]}) for s in stored.studies]
    write_results(
        bench.out,
        studies,
        stored.ratios,
        stored.pictures,
        {"profile": bench.config.profile, "splatcert": __version__},
        machine() | work_done(bench.out / "jobs"),
        protocol,
        unfinished(bench, skipped),
    )


def unfinished(bench: Bench, skipped: Collection[str]) -> dict[str, str]:
    """What a later instalment adds, by scene or pool."""
    found: dict[str, str] = {}
    kinds = {
        "study": "has not been studied",
        "guided": "has no guided scale",
        "times": "is untimed",
    }
    for model in bench.models():
        lacking = [words for kind, words in kinds.items() if f"{model.label}/{kind}" in skipped]
        if lacking:
            found[model.label] = f"{lacking[0] if len(lacking) > 2 else ' and '.join(lacking)}"
    for kind, words in (("learn", "predictors"), ("guide", "guides")):
        for pool in bench.config.pools():
            if f"{kind}/{pool}" in skipped:
                found[f"{kind}/{pool}"] = f"its {words} have not been learned yet"
    return found


def work_done(stamps: Path) -> dict[str, str]:
    """Hours, load and memory of all jobs and of each kind, from their stamps."""
    read = {path.stem: read_stamp_file(path) for path in sorted(stamps.glob("*.json"))}
    known = [stamp for stamp in read.values() if stamp]
    loads = [stamp.load for stamp in known if stamp.load is not None]
    peaks = [stamp.peak_mib for stamp in known if stamp.peak_mib is not None]
    found = {"jobs": f"{len(known)} in {sum(stamp.seconds for stamp in known) / 3600:.1f} hours"}
    if loads:
        found["load"] = f"{sum(loads) / len(loads):.1f} on average, {max(loads):.1f} at most"
    if peaks:
        found["largest job"] = f"{max(peaks)} MiB"
    kinds: dict[str, list[Stamp]] = {}
    for name, stamp in read.items():
        if stamp is not None and stamp.processor_seconds is not None:
            kinds.setdefault(_kind(name), []).append(stamp)
    return found | {f"jobs, {kind}": _spent(stamps) for kind, stamps in sorted(kinds.items())}


def _kind(job: str) -> str:
    """The kind of a job by the name of its stamp: `truck+vanilla.certify@0.01` is certify."""
    first, last = job.partition(".")[0], job.partition("@")[0].rpartition(".")[2]
    return first if first in RESERVED else re.sub(r"_\d+$", "", last)


def _spent(stamps: Sequence[Stamp]) -> str:
    """Processor time, memory and load of jobs of one kind."""
    times = sorted(stamp.processor_seconds or 0 for stamp in stamps)
    ends = dict.fromkeys(f"{seconds:.0f}" for seconds in (times[0], times[-1]))
    words = [f"{len(stamps)}, {'–'.join(ends)} s of processor time"]
    peaks = [stamp.peak_mib for stamp in stamps if stamp.peak_mib is not None]
    loads = [stamp.load for stamp in stamps if stamp.load is not None]
    words += [f"{max(peaks)} MiB"] if peaks else []
    return ", ".join([*words, f"load {sum(loads) / len(loads):.1f}"] if loads else words)


def costs(model: Model, skipped: Collection[str] = ()) -> dict[str, float]:
    """Latency, and seconds of training and of the steps after it."""
    bench, facts = model.bench, {}
    for kind, path in (("times", model.times), ("guided", model.guided_times)):
        if f"{model.label}/{kind}" not in skipped and path.is_file():
            facts |= read_json(path, "table of times")
    facts["seconds.train"] = training_seconds(model.run)
    for ensemble in bench.ensembles(model.scene) if model.is_main else ():
        facts[f"seconds.{ensemble.kind}"] = sum(map(training_seconds, ensemble.runs))
    stamp = read_stamp(bench.out / "jobs", f"{model.label}/certify")
    if stamp is not None:
        facts["seconds.post"] = stamp.seconds
    return facts


def training_seconds(run: Path) -> float:
    """Wall time of a run; of one that was resumed, the timed part extrapolated."""
    record: Any = read_json(run / "train.json", "training record")
    timed, steps = record["result"]["steps_timed"], record["request"]["config"]["iterations"]
    return float(record["result"]["seconds"]) * steps / max(1, timed)
