# SPDX-License-Identifier: Apache-2.0
"""Which picture is painted next and at what resolution, and the thread that paints it.

Only the newest request per canvas counts. While requests keep coming, a picture has as many
pixels as the time budget allows; when they stop, it is painted again at full resolution.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Protocol

Paint = Callable[[float], None]
"""Paints a picture at this share of the full width and height."""
Complain = Callable[[Exception], None]
"""Reports a picture that could not be painted."""
SHARES = (0.25, 0.375, 0.5, 0.75, 1.0)
BUDGET = 1 / 20
"""Seconds a picture may take while the camera moves."""
ROOM = 0.8
"""A finer picture is tried if it is expected to take less than this share of the budget."""
SETTLED = 0.15
"""Seconds without a request after which a camera counts as at rest."""


class Ask(Protocol):
    """Asks the render loop to paint something for this client."""

    def __call__(self, name: str, paint: Paint, *, adapts: bool = False) -> None:
        """Request it; it is painted soon."""
        ...


@dataclass
class Canvas:
    """The state of one picture of one client."""

    paint: Paint
    asked: float
    """Time of the newest request."""
    adapts: bool = True
    """Whether it may be painted at low resolution first."""
    waiting: bool = True
    """Whether the newest request has not been painted at all."""
    coarse: bool = False
    """Whether it has been painted, but not at full resolution."""
    share: float = 1.0
    """Share of the full width and height while moving."""
    painted: float = 0.0
    """Time of its last turn."""


@dataclass(frozen=True)
class Turn:
    """One picture to paint now."""

    key: Hashable
    paint: Paint
    share: float


@dataclass
class Schedule:
    """Canvases by key; the one that has waited longest comes first."""

    budget: float = BUDGET
    canvases: dict[Hashable, Canvas] = field(default_factory=dict)

    def ask(self, key: Hashable, paint: Paint, now: float, *, adapts: bool = True) -> None:
        """Add a request; it replaces an older one of the same canvas."""
        known = self.canvases.get(key)
        if known is None:
            self.canvases[key] = Canvas(paint, now, adapts)
            return
        known.paint, known.asked, known.waiting = paint, now, True

    def forget(self, key: Hashable) -> None:
        """Drop a canvas that no client shows any more."""
        self.canvases.pop(key, None)

    def next(self, now: float) -> Turn | float | None:
        """What to paint now, or the seconds until there may be something; None if nothing waits."""
        due = {
            key: canvas
            for key, canvas in self.canvases.items()
            if canvas.waiting or (canvas.coarse and now - canvas.asked >= SETTLED)
        }
        if not due:
            rests = [c.asked + SETTLED - now for c in self.canvases.values() if c.coarse]
            return min(rests, default=None)
        key, canvas = min(due.items(), key=lambda item: item[1].painted)
        share = canvas.share if canvas.waiting else 1.0
        canvas.waiting, canvas.coarse, canvas.painted = False, share < 1, now
        return Turn(key, canvas.paint, share)

    def took(self, turn: Turn, seconds: float) -> None:
        """Choose the resolution of the next moving picture from the time this one took.

        A full picture of a camera at rest is left out, because it may take longer.
        """
        canvas = self.canvases.get(turn.key)
        if canvas is not None and canvas.adapts and turn.share == canvas.share:
            canvas.share = next_share(turn.share, seconds, self.budget)


def next_share(share: float, seconds: float, budget: float) -> float:
    """One step coarser if a picture took too long, one step finer if the budget allows it."""
    place = SHARES.index(share)
    if seconds > budget:
        return SHARES[max(place - 1, 0)]
    finer = SHARES[min(place + 1, len(SHARES) - 1)]
    return finer if seconds * (finer / share) ** 2 < ROOM * budget else share


class RenderLoop:
    """Paints the newest request of every canvas in turn, in its own thread.

    One thread is enough: the renderer itself uses all cores, one picture at a time.
    """

    def __init__(self, complain: Complain, *, budget: float = BUDGET) -> None:
        self._schedule = Schedule(budget)
        self._complain = complain
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="render loop", daemon=True)

    def start(self) -> None:
        """Start painting."""
        self._thread.start()

    def stop(self, timeout: float = 0.5) -> None:
        """Stop painting; waits up to `timeout` seconds for an unfinished picture."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def ask(self, key: Hashable, paint: Paint, *, adapts: bool = True) -> None:
        """Request a picture, coarse at first if it adapts; returns at once."""
        with self._changed:
            self._schedule.ask(key, paint, time.monotonic(), adapts=adapts)
            self._changed.notify()

    def forget(self, *keys: Hashable) -> None:
        """Drop canvases that no client shows any more."""
        with self._changed:
            for key in keys:
                self._schedule.forget(key)

    def _work(self) -> None:
        while (turn := self._wait()) is not None:
            started = time.monotonic()
            try:
                turn.paint(turn.share)
            except Exception as error:
                # A failed picture of one client must not stop the others.
                self._complain(error)
            with self._changed:
                self._schedule.took(turn, time.monotonic() - started)

    def _wait(self) -> Turn | None:
        """The next turn; None once the loop is stopped."""
        with self._changed:
            while not self._stopped:
                found = self._schedule.next(time.monotonic())
                if isinstance(found, Turn):
                    return found
                self._changed.wait(found)
        return None
