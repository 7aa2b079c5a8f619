# SPDX-License-Identifier: Apache-2.0
"""A certificate on disk, and the checks made before it is used.

    CERT/certificate.json      the guarantee, and what it depends on
    CERT/field.safetensors     residual field and support
    CERT/views.npz             per-view numbers

`certificate.json` names the hashes of the other two and is put in place last, so a folder
holds either a complete certificate or none that is accepted.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.content.record import (
    FORMAT,
    SCHEMA,
    ModelRecord,
    Record,
    RendererRecord,
    TrainingRecord,
)
from splatcert.certificate.content.upgrades import UPGRADES
from splatcert.certificate.field_file import FIELD, KEPT, FieldArrays
from splatcert.certificate.hashes import canonical, joint_hash, seal_of
from splatcert.config import FieldConfig
from splatcert.difficulty.descriptor import check_schema
from splatcert.difficulty.guided.rule import GuidedRule
from splatcert.difficulty.rule import FactorParameters
from splatcert.difficulty.views_file import SceneViews
from splatcert.storage.schema import PlainError, from_plain, read_json, to_plain
from splatcert.storage.whole import (
    ArtefactError,
    file_hash,
    output_folder,
    require_regular_file,
    write_text_whole,
)

MAIN, VIEWS, FAMILY = "certificate.json", "views.npz", "family.json"
SIGNATURE = "certificate.json.sig"
ASIDE = ".new"
"""Folder in which a certificate is written before any older one is replaced."""
MAX_BYTES = 1 << 28


def save_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write all files to a temporary folder, then rename them, `certificate.json` last.

    Until the first rename an older certificate stays complete. An interruption between two
    renames leaves parts of both, which the hashes in `certificate.json` reveal.
    """
    if not certificate.is_certified:
        raise CertificateError(
            f"alpha = {certificate.alpha}, beta = {certificate.beta} were chosen after "
            "calibration, so they are not stored.\n"
            "  Save the original certificate, and use at(alpha, beta) for other levels."
        )
    if certificate.other is not None:
        raise CertificateError(
            f"this certificate was carried over to the back end {certificate.other.backend}.\n"
            "  Copy the folder of the original one, or certify with that back end."
        )
    aside = folder / ASIDE
    try:
        output_folder(aside)
        _write(certificate, aside)
        for name in (FIELD, VIEWS, MAIN):
            _put(aside / name, folder / name)
        for name in (KEPT, SIGNATURE):  # a signature was that of an older certificate
            (folder / name).unlink(missing_ok=True)
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
    certificate.field.save(folder / FIELD, inputs=inputs)
    certificate.views.save(folder / VIEWS)
    files = {name: file_hash(folder / name) for name in (FIELD, VIEWS)}
    content = to_plain(replace(record, schema=SCHEMA, files=files, seal=""))
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
    """Hashes of everything a fitted field depends on, as stored in its file."""
    return {
        "splats": model.splats,
        "images": joint_hash({view.name: view.image for view in training}),
        "poses": joint_hash({view.name: view.pose for view in training}),
        "renderer": joint_hash([canonical(to_plain(renderer))]),
        "settings": joint_hash([canonical(to_plain(config))]),
    }


def read_certificate(path: str | Path) -> Certificate:
    """A certificate from its folder, without its model; an edited one is refused."""
    folder = folder_of(Path(path))
    content, record = read_content(folder)
    if seal_of(content) != record.seal:
        raise CertificateError(
            f"{folder / MAIN} has been edited: its seal does not match its content.\n"
            f"  Run splatcert verify {folder} for details. Certify again, or restore it."
        )
    field, views = read_parts(folder, record)
    _check_views(record, views, folder)
    return Certificate(record, field, views)


def folder_of(path: Path) -> Path:
    """The folder of a certificate, from its own path or that of a file inside."""
    folder = path.parent if path.name == MAIN else path
    if not (folder / MAIN).is_file():
        raise CertificateError(
            f"{path} is not a certificate: it contains no {MAIN}.\n"
            "  Pass the folder that splatcert certify wrote. An interrupted run leaves none:\n"
            "  run the same command again to resume it."
        )
    return folder


def read_content(folder: Path) -> tuple[dict[str, Any], Record]:
    """`certificate.json` as plain values and as a record, the type of every entry checked."""
    path = folder_of(folder) / MAIN
    content = read_json(path, "certificate", MAX_BYTES, raises=CertificateError)
    if not isinstance(content, dict):
        raise CertificateError(
            f"{path} cannot be read: not a JSON object.\n"
            "  It is damaged: restore it, or certify again."
        )
    found = content.get("format"), content.get("schema")
    if found[0] != FORMAT or found[1] not in (*UPGRADES, SCHEMA):
        known = ", ".join(map(str, (*UPGRADES, SCHEMA)))
        raise CertificateError(
            f"{path} has format {found[0]!r}, schema {found[1]!r}; "
            f"this program reads {FORMAT!r}, schemas {known}.\n"
            "  Use the version of splatcert that wrote it, or certify again."
        )
    try:
        upgraded = UPGRADES[found[1]](content) if found[1] in UPGRADES else content
        record = from_plain(Record, upgraded)
        if record.scale.name == "paper":
            from_plain(FactorParameters, record.scale.parameters, "scale")
        if record.scale.name == "guided":
            GuidedRule.of(record.scale.parameters)
        return content, record
    except PlainError as error:
        raise CertificateError(
            f"{path} is not a valid certificate: {error}.\n"
            "  It was edited or damaged: restore it, or certify again."
        ) from None


def read_parts(folder: Path, record: Record) -> tuple[FieldArrays, SceneViews]:
    """Field and per-view numbers; the files must have the hashes that the certificate names."""
    for name in (FIELD, VIEWS):
        path = folder / name
        if not path.is_file() or file_hash(path) != record.files.get(name):
            state = "is not the file the certificate names" if path.is_file() else "is missing"
            raise CertificateError(f"{path} {state}.\n  Restore it, or certify again.")
    views = SceneViews.load(folder / VIEWS)
    check_schema(views.schema, str(folder / VIEWS))
    if record.scale.name == "paper":
        check_schema(record.scale.parameters["features"], str(folder / MAIN))
    inputs = field_inputs(record.model, record.training, record.renderer, record.config.field)
    field = FieldArrays.load(folder / FIELD, gaussians=record.model.gaussians, inputs=inputs)
    return field, views


def _check_views(record: Record, views: SceneViews, folder: Path) -> None:
    """Check the views and the level by which scores are looked up; `verify` shows differences."""
    held_out = [view.name for view in (*record.calibration, *record.unlabelled)]
    training = [view.name for view in record.training]
    if (
        len({*held_out, *training}) < len(held_out) + len(training)
        or training != list(views.training.names)
        or sorted(held_out) != sorted(views.held_out.names)
        or record.guarantee.beta not in views.betas
        or not record.promise.is_about([view.name for view in record.calibration])
    ):
        raise CertificateError(
            f"{folder / VIEWS} is not about the views and the level of {MAIN}.\n"
            f"  Run splatcert verify {folder} for details. Certify again, or restore it."
        )


@dataclass(frozen=True, eq=False)
class Stored:
    """A certificate as stored on disk."""

    folder: Path
    content: dict[str, Any]
    record: Record

    @cached_property
    def views(self) -> SceneViews:
        """Per-view numbers, from a file whose hash is checked."""
        return read_parts(self.folder, self.record)[1]

    @property
    def factors(self) -> dict[str, float]:
        """Factors of the calibration views, by name."""
        return {view.name: view.factor for view in self.record.calibration}

    @property
    def scores(self) -> dict[str, float]:
        """Scores of the calibration views, by name."""
        return {view.name: view.score for view in self.record.calibration}


PLACES = "places.json"
"""File beside a certificate with the paths of capture and model. Only a hint: a model is
recognised by its content."""
LONGEST_PLACES = 1 << 16
"""Largest number of bytes read from it."""


def is_certificate(path: Path) -> bool:
    """Whether a path is a certificate's folder, or its main file."""
    return (path / MAIN).is_file() or (path.name == MAIN and path.is_file())


def remember_places(certificate: Path, data: Path, model: Path) -> None:
    """Store the paths of a certificate's inputs, relative to its folder.

    So a project can be moved as a whole, and no absolute path is passed on.
    """
    places = {"data": data, "model": model}
    relative = {name: os.path.relpath(path, certificate) for name, path in places.items()}
    write_text_whole(certificate / PLACES, json.dumps(relative, indent=1) + "\n")


def remembered(certificate: Path, what: str) -> Path | None:
    """The place of the `data` or `model` of a certificate, if it is known and still there.

    Only within the folder that the certificate lies in: a stranger's certificate must not make
    a command read other files of yours.
    """
    try:
        with require_regular_file(certificate / PLACES).open("rb") as file:
            place = json.loads(file.read(LONGEST_PLACES))[what]
        path = Path(os.path.normpath(certificate / place))
        around = certificate.resolve().parent
        if (around / FAMILY).is_file():  # a member lies one folder deeper
            around = around.parent
        near = path.resolve().is_relative_to(around)
        return path if near and path.exists() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
