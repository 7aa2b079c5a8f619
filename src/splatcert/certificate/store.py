# SPDX-License-Identifier: Apache-2.0
"""A certificate on disk, and the checks before it is believed.

    CERT/certificate.json      what is promised, and on what it rests
    CERT/field.safetensors     residual field and support
    CERT/views.npz             per-view numbers

`certificate.json` names the hashes of the other two and is put in place last, so a folder
holds a whole certificate, or none that is believed.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.hashes import canonical, joint_hash, renderer_of, seal_of, splats_hash
from splatcert.certificate.record import (
    FORMAT,
    SCHEMA,
    ModelRecord,
    Record,
    RendererRecord,
    TrainingRecord,
)
from splatcert.config import FieldConfig
from splatcert.difficulty.descriptor import check_schema
from splatcert.difficulty.views_file import SceneViews
from splatcert.field.fit import FieldFit
from splatcert.field.store import load_field, save_field
from splatcert.splats.gaussians import Splats
from splatcert.storage.schema import PlainError, from_plain, to_plain
from splatcert.storage.whole import ArtefactError, file_hash, write_text_whole

MAIN, FIELD, VIEWS = "certificate.json", "field.safetensors", "views.npz"
ASIDE = ".new"
"""Folder in which a certificate is written before any older one is replaced."""
KEPT = ".field.safetensors"
"""A field that was fitted for a certificate which is not finished yet."""
MAX_BYTES = 1 << 28


def save_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write all files aside, then rename them one by one, `certificate.json` last.

    Up to the first rename an older certificate is whole. One that is stopped between two
    renames leaves parts of both, which the hashes in `certificate.json` tell.
    """
    aside = folder / ASIDE
    try:
        aside.mkdir(parents=True, exist_ok=True)
        _write(certificate, aside)
        for name in (FIELD, VIEWS, MAIN):
            _put(aside / name, folder / name)
        (folder / KEPT).unlink(missing_ok=True)
    except OSError as error:
        raise ArtefactError(
            f"cannot write a certificate to {folder}: {error.strerror}.\n"
            "  Free some space, or choose another folder with --output."
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _write(certificate: Certificate, folder: Path) -> None:
    record = certificate.record
    inputs = field_inputs(record.model, record.training, record.renderer, record.config.field)
    save_field(folder / FIELD, certificate.fit, inputs=inputs)
    certificate.views.save(folder / VIEWS)
    files = {name: file_hash(folder / name) for name in (FIELD, VIEWS)}
    content = to_plain(replace(record, files=files, seal=""))
    content["seal"] = seal_of(content)
    write_text_whole(folder / MAIN, json.dumps(content, indent=1) + "\n")


def _put(aside: Path, path: Path) -> None:
    os.replace(aside, path)


def field_inputs(
    model: ModelRecord,
    training: Sequence[TrainingRecord],
    renderer: RendererRecord,
    config: FieldConfig,
) -> dict[str, str]:
    """Hashes of all that a fitted field depends on; its file names them."""
    return {
        "splats": model.splats,
        "images": joint_hash({view.name: view.image for view in training}),
        "poses": joint_hash({view.name: view.pose for view in training}),
        "renderer": joint_hash([canonical(to_plain(renderer))]),
        "settings": joint_hash([canonical(to_plain(config))]),
    }


def load_certificate(path: str | Path, splats: Splats | None = None) -> Certificate:
    """A certificate from its folder, refused if it was edited or is not of these splats.

    Without splats it can be read, but predicts nothing.
    """
    folder = folder_of(Path(path))
    content, record = read_content(folder)
    if seal_of(content) != record.seal:
        raise CertificateError(
            f"{folder / MAIN} has been edited: its seal does not fit its content.\n"
            f"  splatcert verify {folder} says what no longer holds. Certify again, or restore it."
        )
    _check_renderer(record, folder)
    if splats is not None:
        _check_splats(record, splats, folder)
    fit, views = read_parts(folder, record)
    _check_views(record, views, folder)
    return Certificate(record, fit, views, splats)


def folder_of(path: Path) -> Path:
    """The folder of a certificate, given by itself or by a file inside."""
    folder = path.parent if path.name == MAIN else path
    if not (folder / MAIN).is_file():
        raise CertificateError(
            f"{path} is no certificate: it has no {MAIN}.\n"
            "  Give the folder that splatcert certify wrote. A run that was stopped leaves none:\n"
            "  start it again with the same command."
        )
    return folder


def read_content(folder: Path) -> tuple[dict[str, Any], Record]:
    """`certificate.json` as plain values and as a record, every entry checked by its type."""
    path = folder_of(folder) / MAIN
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        content = json.loads(
            path.read_text(encoding="utf-8"), parse_constant=_finite, parse_float=_finite
        )
        if not isinstance(content, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"{path} cannot be read: {error}.\n  It is damaged: restore it, or certify again."
        ) from None
    if (content.get("format"), content.get("schema")) != (FORMAT, SCHEMA):
        raise CertificateError(
            f"{path} has format {content.get('format')!r}, schema {content.get('schema')!r}; "
            f"this program reads {FORMAT!r}, schema {SCHEMA}.\n"
            "  Use the version of splatcert that wrote it, or certify again."
        )
    try:
        return content, from_plain(Record, content)
    except PlainError as error:
        raise CertificateError(
            f"{path} is no valid certificate: {error}.\n"
            "  It was edited or damaged: restore it, or certify again."
        ) from None


def _finite(text: str) -> float:
    """A number of JSON, which knows no infinity and no NaN; Python would read them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number of JSON")
    return value


def read_parts(folder: Path, record: Record) -> tuple[FieldFit, SceneViews]:
    """Field and per-view numbers, whose bytes must be those the certificate names."""
    for name in (FIELD, VIEWS):
        path = folder / name
        if not path.is_file() or file_hash(path) != record.files.get(name):
            state = "is not the file the certificate names" if path.is_file() else "is missing"
            raise CertificateError(f"{path} {state}.\n  Restore it, or certify again.")
    views = SceneViews.load(folder / VIEWS)
    check_schema(views.schema, str(folder / VIEWS))
    check_schema(record.scale.features, str(folder / MAIN))
    inputs = field_inputs(record.model, record.training, record.renderer, record.config.field)
    return load_field(folder / FIELD, gaussians=record.model.gaussians, inputs=inputs), views


def _check_views(record: Record, views: SceneViews, folder: Path) -> None:
    """Views and level that scores are looked up by; `verify` says what differs."""
    held_out = [view.name for view in (*record.calibration, *record.unlabelled)]
    training = [view.name for view in record.training]
    if (
        len({*held_out, *training}) < len(held_out) + len(training)
        or training != list(views.training.names)
        or sorted(held_out) != sorted(views.held_out.names)
        or record.guarantee.beta not in views.betas
    ):
        raise CertificateError(
            f"{folder / VIEWS} is not about the views and the level of {MAIN}.\n"
            f"  splatcert verify {folder} says what no longer holds. Certify again, or restore it."
        )


def _check_renderer(record: Record, folder: Path) -> None:
    stored = record.renderer
    here = renderer_of(stored.backend)
    there = {"name": stored.name, "version": stored.version, "constants": stored.constants}
    if here == there:
        return
    differing = [
        f"{key} {there[key]} (here {here[key]})" for key in there if here[key] != there[key]
    ]
    raise CertificateError(
        f"{folder} was made with another renderer: {'; '.join(differing)}.\n"
        "  Its boxes are about that renderer's pixels. Use that version, or certify again."
    )


def _check_splats(record: Record, splats: Splats, folder: Path) -> None:
    stored = record.model
    if splats_hash(splats) == stored.splats:
        return
    mode = {True: "antialiased", False: "classic"}
    there = (
        f"{stored.gaussians:,} Gaussians of degree {stored.sh_degree}, {mode[stored.antialiased]}"
    )
    here = f"{len(splats):,} of degree {splats.sh_degree}, {mode[splats.antialiased]}"
    raise CertificateError(
        f"{folder} was made for another model.\n"
        f"  It names {there}, hash {stored.splats[:12]};\n"
        f"  this model has {here}, hash {splats_hash(splats)[:12]}.\n"
        "  Load the model that was certified, in the capture's frame, or certify this one."
    )
