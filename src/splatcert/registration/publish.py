# SPDX-License-Identifier: Apache-2.0
"""The new capture's content: every photo, the old reconstruction, the added photos, the record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from splatcert.registration.capture_photos import KnownSide, NewPhoto
from splatcert.registration.features import Picture
from splatcert.registration.localise import Located
from splatcert.registration.write import Draft
from splatcert.scene.added_photos import AddedPhoto, AddedPhotos
from splatcert.scene.photo_files import MASK_FOLDER
from splatcert.scene.readers.colmap import PHOTO_FOLDER, ColmapCamera, ColmapImage, read_colmap
from splatcert.scene.readers.colmap_append import append_model, camera_of, image_of, write_model

Accepted = tuple[NewPhoto, Picture, Located]


def publish(known: KnownSide, accepted: Sequence[Accepted], output: Path, work: Path) -> None:
    """Write the capture aside and move it into place."""
    draft, dataset = Draft(output, work), known.photographs.dataset
    for shot, path in zip(known.shots, known.paths, strict=True):
        place = f"{PHOTO_FOLDER}/{_with_suffix(shot.name, path)}"
        if dataset.format == "blender" and known.photographs.finder.header(path).has_alpha:
            draft.add_flattened(place, path)
        else:
            draft.add({place: path})
        if (mask := known.photographs.finder.mask(shot, dataset.source)) is not None:
            draft.add({f"{MASK_FOLDER}/{shot.name}.png": mask})
    for photo, _, _ in accepted:
        draft.add({f"{PHOTO_FOLDER}/{photo.name}": photo.path})
    _write_model(known, accepted, draft.model)
    frame = dataset.frame.original_to_scene.ravel().tolist()
    draft.publish(AddedPhotos(photos=tuple(map(_entry, accepted)), original_to_scene=tuple(frame)))


def _with_suffix(name: str, path: Path) -> str:
    """The name with the suffix that its file really has."""
    if Path(name).suffix.lower() == path.suffix.lower():
        return name
    if path.name.startswith(Path(name).name):  # the name has no suffix, as in Blender's files
        return name + path.suffix
    return Path(name).with_suffix(path.suffix).as_posix()


def _entry(accepted: Accepted) -> AddedPhoto:
    photo, _, located = accepted
    return AddedPhoto(
        name=photo.name,
        sha256=photo.sha256,
        camera="own" if photo.shared is None else "shared",
        inliers=located.inliers,
        error=located.error,
    )


def _write_model(known: KnownSide, accepted: Sequence[Accepted], target: Path) -> None:
    dataset = known.photographs.dataset
    if dataset.format == "colmap":
        model = read_colmap(dataset.source)
        cameras, images = _added(
            accepted, max(model.cameras) + 1, max(image.id for image in model.images) + 1
        )
        append_model(dataset.source, target, cameras, images)
        return
    lenses = dict(zip(known.keys, known.lenses, strict=True))
    first = len(known.shots) + 1
    cameras, images = _added(accepted, max(lenses) + 1, first)
    old_images = [
        image_of(shot.name, number, key, shot.world_to_camera)
        for number, (shot, key) in enumerate(zip(known.shots, known.keys, strict=True), 1)
    ]
    old_cameras = [camera_of(lens, key) for key, lens in lenses.items()]
    write_model(target, [*old_cameras, *cameras], [*old_images, *images], dataset.points)


def _added(
    accepted: Sequence[Accepted], camera_key: int, image_key: int
) -> tuple[list[ColmapCamera], list[ColmapImage]]:
    """Cameras that the model does not have yet, and all added photos."""
    cameras: dict[tuple, ColmapCamera] = {}
    images = []
    for number, (photo, picture, located) in enumerate(accepted, image_key):
        assert located.world_to_camera is not None
        if photo.shared is not None:
            key = photo.shared.key
        else:
            one = picture.camera
            same = (one.model, one.width, one.height, one.params)
            free = ColmapCamera(camera_key + len(cameras), *same)
            key = cameras.setdefault(same, free).id
        images.append(image_of(photo.name, number, key, located.world_to_camera))
    return list(cameras.values()), images
