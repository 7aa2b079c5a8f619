# SPDX-License-Identifier: Apache-2.0
"""Rank poses by what a photograph there would add: wide boxes on surfaces rarely photographed.

The gain of a pose is the half-width it would show, weighted by how new its view of a surface is:

    gain_v = mean_p sum_i w_vpi h_vp n_vi      n_vi = min(1, best angle of i towards v / 30 deg)

Poses are chosen one by one, each as if the earlier ones had been photographed, so a second
pose of the same kind gains little. A far background is seen under the same angle from everywhere
and gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.certificate.certificate import Certificate
from splatcert.conformal.boxes import Boxes, Flag
from splatcert.errors import InputError
from splatcert.field.sightings import SEEN, Sightings
from splatcert.progress import Progress, quiet
from splatcert.raster.render import open_view
from splatcert.raster.view import View
from splatcert.suggest.poses import DepthView, Pose, is_way_free, reachable_poses, spread_views

Floats = NDArray[np.float32]
SMALL, FAIR = 200, 400
"""Long sides in pixels for the first pass over all poses, and for the training cameras; the
leading poses are then scored at full size."""
FINALISTS = 2
"""Poses scored at full size per requested suggestion."""
NOVEL = math.radians(30)
"""Angle to the nearest photo from which on a surface counts fully."""
MASS = 0.8
"""Share of a view's half-width whose Gaussians are followed."""
COLUMNS = ("start from", "move", "half-width", "nearest view", "photos that see it")


class SuggestError(InputError):
    """A capture for which nothing can be suggested."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Suggestion:
    """A photograph worth taking, and what it would add."""

    name: str
    camera: Camera
    start: str
    """Training view to start from."""
    move: str
    """How to move from there, in words."""
    half_width: float
    """Predicted mean half-width on the colour range 0 to 1."""
    usual: float
    """Median half-width of the calibration views."""
    gain: float
    """Half-width on surfaces that no photo shows from nearby, given all earlier suggestions."""
    angle: float
    """Degrees to the nearest photo, exceeded by surfaces that carry half of the half-width."""
    unseen: float
    """Share of the half-width on surfaces that no photo shows."""
    views_seen: int
    """Median number of photos that show its surfaces."""
    support: Flag

    def cells(self) -> tuple[str, ...]:
        """One row of the table with `COLUMNS`."""
        nearest = "none" if self.unseen >= 0.5 else f"{self.angle:.0f}°"
        width, seen = f"{self.half_width:.3f}", f"{self.views_seen}"
        return self.start, self.move, width, nearest, seen

    def why(self) -> str:
        """What a photograph from here would add, in words."""
        same = math.isclose(self.half_width, self.usual, rel_tol=5e-3)
        median = "as in every view" if same else f"median {self.usual:.3f}"
        return f"half-width {self.half_width:.3f} ({median}); {self._novelty()}"

    def in_short(self) -> str:
        """The same for a line in a picture, with the gain."""
        return f"gain {self.gain:.3f}; {self.why()}"

    def _novelty(self) -> str:
        if self.unseen >= 0.5:
            return "most of it on surfaces that no photo shows"
        seen = f"nearest view {self.angle:.0f}° away, {self.views_seen} photos see it"
        if self.unseen >= 0.1:
            seen += f"; {self.unseen:.0%} of it on surfaces that no photo shows"
        return seen


def suggest(certificate: Certificate, count: int = 12, *, on: Progress = quiet) -> list[Suggestion]:
    """The poses most worth a photograph, best first; fewer where few gain anything."""
    if not math.isfinite(certificate.threshold):
        raise SuggestError(
            "the certificate has too few calibration views for finite boxes, so poses cannot be "
            "ranked.\n  Hold out more photos, or certify at a larger alpha."
        )
    observed, record = certificate.fitted, certificate.record
    backend, splats = record.renderer.backend, observed.splats
    cameras = {view.name: view.camera for view in record.training}
    sightings = Sightings.of(
        splats,
        [small(camera, FAIR) for camera in cameras.values()],
        backend=backend,
        report=lambda done: on("rendering training cameras", done, len(cameras)),
    )
    depth_views = {
        name: DepthView.of(open_view(splats, small(cameras[name]), backend))
        for name in spread_views(cameras)
    }
    depths = {name: view.depth for name, view in depth_views.items() if view.depth > 0}
    poses = reachable_poses(cameras, splats, depths)
    usual, scores = list(depth_views.values()), []
    for done, pose in enumerate(poses):
        on("scoring reachable poses", done, len(poses))
        if not is_way_free(splats, pose, cameras[pose.start], backend):
            continue
        camera = small(pose.camera)
        view = open_view(splats, camera, backend)
        if DepthView.of(view).is_clear(usual):
            scores.append(PoseScore.of(certificate, sightings, pose, view))
    chosen = take(scores, sightings, FINALISTS * count)
    finalists = []
    for done, (score, _) in enumerate(chosen):
        on("scoring the best poses in full", done, len(chosen))
        view = open_view(splats, score.pose.camera, backend)
        finalists.append(PoseScore.of(certificate, sightings, score.pose, view))
    median = float(np.median([view.factor for view in record.calibration]))
    counts = sightings.counts()
    found = take(finalists, sightings, count)
    if not found:
        raise SuggestError(
            f"none of the {len(poses)} poses within reach of the {len(cameras)} training cameras "
            "would show anything new.\n  The capture is dense: photograph from farther away."
        )
    return [
        score.suggestion(f"suggestion_{place:02d}", gain, certificate.threshold * median, counts)
        for place, (score, gain) in enumerate(found, 1)
    ]


@dataclass(frozen=True, eq=False)
class PoseScore:
    """What one pose would show: which Gaussians carry its half-width, and how new they are."""

    pose: Pose
    boxes: Boxes
    rows: NDArray[np.int64]
    """Gaussians that carry most of the half-width."""
    mass: Floats
    """Their shares of the mean half-width."""
    best: Floats
    """Angle between the pose and the nearest photo of each, radians."""
    seen: NDArray[np.bool_]
    """Whether a photo from this pose would show each, by the rule of `Sightings`."""

    @classmethod
    def of(
        cls, certificate: Certificate, sightings: Sightings, pose: Pose, view: View
    ) -> PoseScore:
        """Predict the half-width and distribute it over the Gaussians that carry it."""
        camera = view.camera
        boxes = certificate.predict(camera)
        planes = boxes.half_width.new_ones(camera.height, camera.width, 2)
        planes[..., 0] = boxes.half_width
        width, exposure = view.scatter(planes).cpu().numpy().T
        rows = heaviest(width, MASS)
        mass = width[rows] / (camera.width * camera.height)
        best = sightings.best_angles(rows, camera)
        # A quarter of a pixel at full size is less than that in a smaller picture.
        share = camera.width * camera.height / (pose.camera.width * pose.camera.height)
        return cls(pose, boxes, rows, mass, best, exposure[rows] >= SEEN * share)

    def gain(self, best: Floats) -> float:
        """Mean half-width, weighted by how far each Gaussian is from its nearest photo."""
        return float((self.mass * np.minimum(best / NOVEL, 1)).sum())

    def suggestion(
        self, name: str, gain: float, usual: float, counts: NDArray[np.int32]
    ) -> Suggestion:
        """This pose as a suggestion."""
        order = self.best.argsort()
        total = self.mass.sum()
        middle = order[np.searchsorted(self.mass[order].cumsum(), total / 2)]
        seen = counts[self.rows]
        by_count = seen.argsort()
        half = by_count[np.searchsorted(self.mass[by_count].cumsum(), total / 2)]
        return Suggestion(
            name=name,
            camera=self.pose.camera,
            start=self.pose.start,
            move=self.pose.move,
            half_width=float(self.boxes.half_width.double().mean()),
            usual=usual,
            gain=gain,
            angle=math.degrees(float(self.best[middle])),
            unseen=float(self.mass[seen == 0].sum() / total),
            views_seen=int(seen[half]),
            support=self.boxes.flag or Flag(True),
        )


def take(
    scores: Sequence[PoseScore], sightings: Sightings, count: int
) -> list[tuple[PoseScore, float]]:
    """The best poses in order, each with its gain once the earlier ones are photographed."""
    best = [score.best for score in scores]
    left, taken = set(range(len(scores))), []
    while left and len(taken) < count:
        gains = {k: scores[k].gain(best[k]) for k in left}
        winner = max(sorted(left), key=lambda k: gains[k])
        if gains[winner] <= 0:
            break
        taken.append((scores[winner], gains[winner]))
        left.remove(winner)
        shown = np.zeros(len(sightings.means), dtype=bool)
        shown[scores[winner].rows[scores[winner].seen]] = True
        for k in left:
            again = shown[scores[k].rows]
            angles = sightings.angles(
                scores[k].rows[again], scores[k].pose.camera, scores[winner].pose.camera
            )
            updated = best[k].copy()
            updated[again] = np.minimum(updated[again], angles)
            best[k] = updated
    return taken


def heaviest(values: Floats, share: float) -> NDArray[np.int64]:
    """Indices of the fewest entries that make up this share of the sum, rising."""
    some = np.flatnonzero(values > 0)
    order = some[values[some].argsort()[::-1]]
    total = values[order].cumsum(dtype=np.float64)
    enough = int(np.searchsorted(total, share * total[-1])) + 1 if len(total) else 0
    return np.sort(order[:enough])


def small(camera: Camera, side: int = SMALL) -> Camera:
    """The camera at a size that is quick to render."""
    times = side / max(camera.width, camera.height)
    if times >= 1:
        return camera
    return camera.resized(max(1, round(camera.width * times)), max(1, round(camera.height * times)))
