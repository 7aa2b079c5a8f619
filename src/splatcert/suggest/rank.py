# SPDX-License-Identifier: Apache-2.0
"""Which of many poses to photograph: the widest error bars on what was least seen.

A pose is worth the half-width it would show, counted where no photo has looked from nearby:

    gain_v = mean_p sum_i w_vpi h_vp n_vi      n_vi = min(1, best angle of i towards v / 30 deg)

Poses are taken one by one, each as if it had been photographed: it then is one of the places
a Gaussian was seen from, so a second pose of the same kind gains little. A far background is
seen under the same angle from everywhere and gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatcert.camera import Camera
from splatcert.certificate.boxes import CertifiedBoxes
from splatcert.certificate.certificate import Certificate
from splatcert.certificate.diagnostics import SupportFlag
from splatcert.errors import InputError
from splatcert.field.sightings import SEEN, Sightings
from splatcert.raster.render import open_view
from splatcert.raster.view import View
from splatcert.suggest.poses import Pose, Sight, is_way_free, reachable_poses, spread_views

Floats = NDArray[np.float32]
Report = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and of how much."""

SMALL, FAIR = 200, 400
"""Long sides at which all poses, and all training cameras, are looked through; poses that
lead are looked at in full."""
FINALISTS = 2
"""Poses looked at in full, for each that is asked for."""
NOVEL = math.radians(30)
"""What was seen from no nearer than this counts fully."""
MASS = 0.8
"""Share of a view's half-width whose Gaussians are followed."""


class SuggestError(InputError):
    """A capture in which nothing can be suggested."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Suggestion:
    """A photograph worth taking, and why."""

    name: str
    camera: Camera
    start: str
    """Training view to start from."""
    move: str
    """What to do there, in words."""
    half_width: float
    """Predicted mean half-width, RGB from 0 to 1."""
    usual: float
    """Median half-width of the calibration views."""
    gain: float
    """Half-width that lies on what no photo shows from nearby, given all earlier suggestions."""
    angle: float
    """Degrees: half of its half-width lies on what no photo shows from nearer than this."""
    unseen: float
    """Share of its half-width on what no photo shows at all."""
    views_seen: int
    """Median number of photos that show what it is about."""
    support: SupportFlag

    def why(self) -> str:
        """What would be gained, in words."""
        width = f"half-width {self.half_width:.3f}"
        width += (
            ", as in every view"
            if math.isclose(self.half_width, self.usual, rel_tol=5e-3)
            else f" against a median of {self.usual:.3f}"
        )
        if self.unseen >= 0.5:
            return f"{width}, most of it on surfaces that no photo shows"
        seen = (
            f"half of it on surfaces that were seen from {self.angle:.0f} degrees off at best, "
            f"by {self.views_seen} photos"
        )
        if self.unseen >= 0.1:
            seen += f"; {self.unseen:.0%} on surfaces that no photo shows"
        return f"{width}, {seen}"

    def in_short(self) -> str:
        """The same for a line in a picture."""
        seen = f"seen from {self.angle:.0f} degrees off at best, by {self.views_seen} photos"
        if self.unseen >= 0.5:
            seen = "mostly seen by no photo"
        width = f"half-width {self.half_width:.3f} (median {self.usual:.3f})"
        return f"gain {self.gain:.3f} of {width}; {seen}"


def suggest(
    certificate: Certificate, count: int = 12, *, report: Report | None = None
) -> list[Suggestion]:
    """The poses that are most worth a photograph, best first; fewer where few gain anything."""
    if not math.isfinite(certificate.threshold):
        raise SuggestError(
            "the certificate has too few calibration views for a finite width, so no pose is "
            "wider than another.\n  Hold out more photos, or certify at a larger alpha."
        )
    observed, record = certificate.observed, certificate.record
    backend, splats = record.renderer.backend, observed.splats
    tell = report or (lambda doing, done, total: None)
    cameras = {view.name: view.camera.camera() for view in record.training}
    sightings = Sightings.of(
        splats,
        [small(camera, FAIR) for camera in cameras.values()],
        backend=backend,
        report=lambda done: tell("looking through the training cameras", done, len(cameras)),
    )
    sights = {
        name: Sight.of(open_view(splats, small(cameras[name]), backend))
        for name in spread_views(cameras)
    }
    depths = {name: sight.depth for name, sight in sights.items() if sight.depth > 0}
    poses = reachable_poses(cameras, splats, depths)
    usual, glances = list(sights.values()), []
    for done, pose in enumerate(poses):
        tell("looking at reachable poses", done, len(poses))
        if not is_way_free(splats, pose, cameras[pose.start], backend):
            continue
        camera = small(pose.camera)
        view = open_view(splats, camera, backend)
        if Sight.of(view).is_clear(usual):
            glances.append(Glance.of(certificate, sightings, pose, view))
    chosen = take(glances, sightings, FINALISTS * count)
    finalists = []
    for done, (glance, _) in enumerate(chosen):
        tell("measuring the best poses", done, len(chosen))
        view = open_view(splats, glance.pose.camera, backend)
        finalists.append(Glance.of(certificate, sightings, glance.pose, view))
    median = float(np.median([view.factor for view in record.calibration]))
    counts = sightings.counts()
    found = take(finalists, sightings, count)
    if not found:
        raise SuggestError(
            f"none of {len(poses)} poses within reach of the {len(cameras)} training cameras "
            "shows anything new.\n  The capture is dense; photograph from further away instead."
        )
    return [
        glance.suggestion(f"suggestion_{place:02d}", gain, certificate.threshold * median, counts)
        for place, (glance, gain) in enumerate(found, 1)
    ]


@dataclass(frozen=True, eq=False)
class Glance:
    """What one pose would show: where its half-width lies, and how new that is."""

    pose: Pose
    boxes: CertifiedBoxes
    rows: NDArray[np.int64]
    """Gaussians that carry most of the half-width."""
    mass: Floats
    """Their shares of the mean half-width."""
    best: Floats
    """Best angle each was seen from, radians."""
    seen: NDArray[np.bool_]
    """Whether a photo from here would show it, by the rule of `Sightings`."""

    @classmethod
    def of(cls, certificate: Certificate, sightings: Sightings, pose: Pose, view: View) -> Glance:
        """Predict, and carry the half-width back to the Gaussians."""
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
        """Mean half-width on what was seen from `best` at best, counted by how new it is."""
        return float((self.mass * np.minimum(best / NOVEL, 1)).sum())

    def suggestion(
        self, name: str, gain: float, usual: float, counts: NDArray[np.int32]
    ) -> Suggestion:
        """This pose, with what is said of it."""
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
            support=self.boxes.support,
        )


def take(glances: Sequence[Glance], sightings: Sightings, count: int) -> list[tuple[Glance, float]]:
    """The best poses in order, each with its gain once the earlier ones are photographed."""
    best = [glance.best for glance in glances]
    left, taken = set(range(len(glances))), []
    while left and len(taken) < count:
        gains = {k: glances[k].gain(best[k]) for k in left}
        winner = max(sorted(left), key=lambda k: gains[k])
        if gains[winner] <= 0:
            break
        taken.append((glances[winner], gains[winner]))
        left.remove(winner)
        shown = np.zeros(len(sightings.means), dtype=bool)
        shown[glances[winner].rows[glances[winner].seen]] = True
        for k in left:
            again = shown[glances[k].rows]
            angles = sightings.angles(
                glances[k].rows[again], glances[k].pose.camera, glances[winner].pose.camera
            )
            updated = best[k].copy()
            updated[again] = np.minimum(updated[again], angles)
            best[k] = updated
    return taken


def heaviest(values: Floats, share: float) -> NDArray[np.int64]:
    """Fewest entries that hold this share of the sum, in order of the array."""
    some = np.flatnonzero(values > 0)
    order = some[values[some].argsort()[::-1]]
    total = values[order].cumsum(dtype=np.float64)
    enough = int(np.searchsorted(total, share * total[-1])) + 1 if len(total) else 0
    return np.sort(order[:enough])


def small(camera: Camera, side: int = SMALL) -> Camera:
    """The camera on a grid that is quick to render."""
    times = side / max(camera.width, camera.height)
    if times >= 1:
        return camera
    return camera.resized(max(1, round(camera.width * times)), max(1, round(camera.height * times)))
