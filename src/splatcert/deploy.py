# SPDX-License-Identifier: Apache-2.0
"""Use of a stored certificate: prediction with its model, verification with its capture.

Reading and offline verification do not import torch; only a model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from splatcert.certificate.certificate import Certificate, CertificateError
from splatcert.certificate.content.record import Record
from splatcert.certificate.family import is_family, member_folder
from splatcert.certificate.hashes import splats_hash
from splatcert.certificate.store import folder_of, read_certificate, read_content, remembered
from splatcert.config import Backend
from splatcert.progress import Progress, quiet
from splatcert.verification.checks import UNUSABLE, Check, Verification
from splatcert.verification.family_checks import verify_family_folder
from splatcert.verification.offline import verify_folder
from splatcert.verification.training_photos import check_left_out, check_training_photos

if TYPE_CHECKING:
    from splatcert.capture import Capture
    from splatcert.scales.scale import FrozenScale, Scale
    from splatcert.scene.load import Photographs
    from splatcert.scene.roles import TrainingView
    from splatcert.scene.scene import Scene
    from splatcert.splats.gaussians import Splats


def load_certificate(
    path: str | Path,
    splats: Splats | None = None,
    *,
    member: str | None = None,
    scale: Scale | None = None,
    scene: Scene | None = None,
    backend: Backend | None = None,
) -> Certificate:
    """Load a certificate from its folder; refuse one that was edited or made for other splats.

    Without splats, the certificate can be read but cannot predict. For a family, `member` selects
    the certificate (default: the first). If its scale is a map of your own, pass the map again as
    `scale`; it is checked on a calibration view. A guided scale requires the `scene` with the
    certified training photographs.

    With a `backend` other than the certified one, the guarantee is carried over: the calibration
    photographs of the `scene` are scored again, or, without a scene, both renderers are compared
    at the calibration cameras, and the boxes are widened accordingly.
    """
    certificate = read_certificate(member_folder(Path(path), member))
    if splats is None:
        return certificate
    photos = None if scene is None else scene.training
    if backend in (None, certificate.record.renderer.backend):
        return with_model(certificate, splats, scale=scale, photos=photos)
    return with_other_renderer(certificate, splats, backend, scale=scale, scene=scene)


def with_model(
    certificate: Certificate,
    splats: Splats,
    *,
    scale: Scale | None = None,
    photos: Sequence[TrainingView] | None = None,
) -> Certificate:
    """The certificate with its model, ready to predict; a different model is refused."""
    from dataclasses import replace

    from splatcert.refusals import refuse_other_renderer, refuse_other_scale, refuse_other_splats
    from splatcert.scales.named import stored_scale
    from splatcert.scales.thaw import thawed

    record = certificate.record
    refuse_other_renderer(record)
    refuse_other_splats(record, splats)
    chosen = scale or stored_scale(record.scale, record.center)
    frozen = thawed(certificate, splats, chosen, photos)
    if scale is not None:
        refuse_other_scale(record, frozen)
    return replace(certificate, scale=frozen)


def with_other_renderer(
    certificate: Certificate,
    splats: Splats,
    backend: Backend,
    *,
    scale: Scale | None = None,
    scene: Scene | None = None,
) -> Certificate:
    """The certificate carried over to another back end, ready to predict (decision 0024)."""
    from splatcert.refusals import refuse_other_splats, refuse_to_carry_over
    from splatcert.scales.named import stored_scale
    from splatcert.scales.other_renderer import bounded, scored_again
    from splatcert.scales.thaw import thawed

    record, photos = certificate.record, None if scene is None else scene.training
    refuse_to_carry_over(record, backend, photographs=scene is not None)
    refuse_other_splats(record, splats)
    chosen = scale or stored_scale(record.scale, record.center)
    here = thawed(certificate, splats, chosen, photos, backend)
    if scene is None or scale is not None:  # a map of the user's own is recognised by its bits
        ready = with_model(certificate, splats, scale=scale, photos=photos)
        there = cast("FrozenScale", ready.scale)
        return certificate.carried_over(bounded(certificate, there, here), here)
    names = [view.name for view in record.calibration]
    labelled = scene.held_out.reveal("calibration", names, by="load_certificate")
    return certificate.carried_over(scored_again(certificate, here, labelled), here)


def verify(
    path: str | Path,
    capture: Capture | Sequence[Capture] | None = None,
    *,
    scale: Scale | None = None,
    backend: Backend | None = None,
    on: Progress = quiet,
) -> Verification:
    """Check a certificate or a family by itself, or recompute it from its capture.

    The capture must have the certified resolution and the certified views held out:
    `splatcert.deploy.certified_capture` opens it that way. A family takes one capture per model.
    A `backend` other than the certified one must give the same numbers, within the same tolerances.
    Without a capture, torch is not imported.
    """
    if is_family(Path(path)):
        if capture is None:
            return verify_family_folder(Path(path))
        from splatcert.families.verify import verify_family

        models = capture if isinstance(capture, Sequence) else [capture]
        return verify_family(Path(path), models, backend, on)
    if isinstance(capture, Sequence):
        raise TypeError("a single certificate is verified with one capture")
    checks = verify_folder(folder := folder_of(Path(path))).checks
    if capture is None or not checks[0].passed:
        return Verification(checks)
    from splatcert.pipeline import certify
    from splatcert.scales.named import stored_scale
    from splatcert.scales.thaw import half_widths
    from splatcert.verification.recompute import compare

    record = read_content(folder)[1]
    checks = (*checks, check_training_photos(record, capture), *check_left_out(record, capture))
    try:
        stored = read_certificate(folder)
        chosen = scale or stored_scale(record.scale, record.center)
        recomputed = certify(
            capture,
            scale=chosen,
            promise=record.promise.asked(),
            config=record.config,
            backend=backend or record.renderer.backend,
            remember=False,
            on=on,
        )
    except UNUSABLE as error:
        refused = Check("from scratch", False, " ".join(str(error).split()))
        return Verification((*checks, refused))
    maps = half_widths(stored, recomputed, capture.splats, chosen, capture.scene.training)
    return Verification((*checks, *compare(stored, recomputed, maps)))


def open_certificate(
    path: Path,
    model: Path | None = None,
    data: Path | None = None,
    member: str | None = None,
    backend: Backend | None = None,
) -> Certificate:
    """A certificate that can predict: with the model given, or the one it was made from.

    A model in a trainer's own frame is brought into the capture's, which requires the capture.
    For another `backend`, a capture that is given is scored again.
    """
    folder = folder_of(member_folder(path, member))
    _, record = read_content(folder)
    place = model or remembered(folder, "model")
    if place is None:
        raise CertificateError(
            f"{folder} does not hold its model, and the model is not in the folder beside it.\n"
            f"  Pass the one that was certified ({record.model.gaussians:,} Gaussians): "
            "--model MODEL."
        )
    scored = data is not None and backend not in (None, record.renderer.backend)
    data = data or remembered(folder, "data")
    scene = None
    if (scored or record.scale.needs_photos) and data is not None:
        scene = load_certified_scene(record, data)
    splats = load_certified_splats(record, place, scene, data, backend)
    return load_certificate(folder, splats, scene=scene, backend=backend)


def load_certified_scene(record: Record, data: Path, images: str | None = None) -> Scene:
    """The capture at its certified size, split and masks; `images` may name a different folder."""
    return certified_photographs(record, data, images).scene(held_out_names(record))


def held_out_names(record: Record) -> tuple[str, ...]:
    """All held-out views of a certificate."""
    return tuple(view.name for view in (*record.calibration, *record.unlabelled))


def certified_photographs(
    record: Record, data: Path, images: str | None = None, sparse: int | None = None
) -> Photographs:
    """The capture read at its certified size, with its certified masks and COLMAP model."""
    from splatcert.scene.load import read_photographs

    loaded = record.scene.loaded
    options: dict[str, Any] = {"images": images}
    if loaded is not None:
        options |= {
            "images": images or loaded.images,
            "resolution": loaded.resolution,
            "background": loaded.background,
            "masks": False if loaded.masks == "off" else loaded.masks,
            "format": record.scene.format,
            "sparse": loaded.sparse if sparse is None else sparse,
            "skip_missing": loaded.skip_missing,
        }
    return read_photographs(data, **options)


def load_certified_splats(
    record: Record,
    model: Path,
    scene: Scene | None = None,
    data: Path | None = None,
    backend: Backend | None = None,
) -> Splats:
    """The model, brought into the capture's frame unless it is the certified one as stored."""
    from splatcert.raster.placement import load_for_scene
    from splatcert.splats.files import load_splats
    from splatcert.splats.transform import FrameError

    try:
        splats = load_splats(model)
        if (scene or data) is None or splats_hash(splats) == record.model.splats:
            return splats
    except FrameError:
        if scene is None and data is None:
            raise CertificateError(
                f"{model} is in its trainer's own frame, which is rebuilt from the capture.\n"
                "  Pass the capture too: --data DATA."
            ) from None
    if scene is None:
        scene = load_certified_scene(record, cast("Path", data))
    renderer = record.renderer
    placed = load_for_scene(
        model, scene, background=renderer.background, backend=backend or renderer.backend
    )
    return placed.splats


def certified_capture(
    record: Record,
    data: Path,
    model: Path,
    images: str | None = None,
    sparse: int | None = None,
    backend: Backend | None = None,
) -> Capture:
    """Capture and model of a certificate, opened as they were certified."""
    from splatcert.capture import Capture, account_of
    from splatcert.raster.placement import load_for_scene

    photographs = certified_photographs(record, data, images, sparse)
    scene, renderer = photographs.scene(held_out_names(record)), record.renderer
    placed = load_for_scene(
        model, scene, background=renderer.background, backend=backend or renderer.backend
    )
    return Capture(
        scene=scene,
        splats=placed.splats,
        unseen_by=record.scene.held_out_by,
        background=renderer.background,
        placement=placed,
        account=account_of(model),
        own_split=photographs.own_split,
    )
