# SPDX-License-Identifier: Apache-2.0
"""Which picture is painted next, and how finely.

Of every canvas only the newest request counts. While requests keep coming, a picture has as
many pixels as the time for it allows; when they rest, it is painted again in full.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

Paint = Callable[[float], None]
"""Paints a picture with this share of the full width and height."""
SHARES = (0.25, 0.375, 0.5, 0.75, 1.0)
BUDGET = 1 / 20
"""Seconds a picture may take while the camera moves."""
ROOM = 0.8
"""A finer picture is tried when it should need less than this part of the budget."""
SETTLED = 0.15
"""Seconds without a request after which a camera is at rest."""


@dataclass
class Canvas:
    """What one picture of one client is waiting for."""

    paint: Paint
    asked: float
    """When the newest request came."""
    adapts: bool = True
    """Whether it may be painted coarsely first."""
    waiting: bool = True
    """The newest request has not been painted at all."""
    coarse: bool = False
    """It has been painted, but not in full."""
    share: float = 1.0
    """Of the full width and height, while moving."""
    painted: float = 0.0
    """When its turn last came."""


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
        """A new request; an older one of the same canvas is forgotten."""
        known = self.canvases.get(key)
        if known is None:
            self.canvases[key] = Canvas(paint, now, adapts)
            return
        known.paint, known.asked, known.waiting = paint, now, True

    def forget(self, key: Hashable) -> None:
        """A canvas that nobody looks at any more."""
        self.canvases.pop(key, None)

    def next(self, now: float) -> Turn | float | None:
        """What to paint; or how long until there may be something; None if nothing waits."""
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
        """Choose how fine the next moving picture is, by what this one took.

        A full picture of a camera at rest may take its time; it says nothing about moving.
        """
        canvas = self.canvases.get(turn.key)
        if canvas is not None and canvas.adapts and turn.share == canvas.share:
            canvas.share = next_share(turn.share, seconds, self.budget)


def next_share(share: float, seconds: float, budget: float) -> float:
    """One step coarser if a picture took too long, one finer if there is room."""
    place = SHARES.index(share)
    if seconds > budget:
        return SHARES[max(place - 1, 0)]
    finer = SHARES[min(place + 1, len(SHARES) - 1)]
    return finer if seconds * (finer / share) ** 2 < ROOM * budget else share


Complain = Callable[[Exception], None]


class RenderLoop:
    """Paints the newest request of every canvas, in turn, in a thread of its own.

    One thread is enough: the renderer itself uses all cores, one picture at a time.
    """

    def __init__(self, complain: Complain, *, budget: float = BUDGET) -> None:
        self._schedule = Schedule(budget)
        self._complain = complain
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="render loop", daemon=True)

    def start(self) -> None:
        """Begin to paint."""
        self._thread.start()

    def stop(self, timeout: float = 0.5) -> None:
        """Paint nothing more; waits that long for a picture under way."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def ask(self, key: Hashable, paint: Paint, *, adapts: bool = True) -> None:
        """Ask for a picture, coarse at first if it adapts; returns at once."""
        with self._changed:
            self._schedule.ask(key, paint, time.monotonic(), adapts=adapts)
            self._changed.notify()

    def forget(self, *keys: Hashable) -> None:
        """Nobody looks at these canvases any more."""
        with self._changed:
            for key in keys:
                self._schedule.forget(key)

    def _work(self) -> None:
        while (turn := self._wait()) is not None:
            started = time.monotonic()
            try:
                turn.paint(turn.share)
            except Exception as error:
                # One picture that fails, of one client, must not end everybody's.
                self._complain(error)
            with self._changed:
                self._schedule.took(turn, time.monotonic() - started)

    def _wait(self) -> Turn | None:
        """The next turn; None when the loop is stopped."""
        with self._changed:
            while not self._stopped:
                found = self._schedule.next(time.monotonic())
                if isinstance(found, Turn):
                    return found
                self._changed.wait(found)
        return None
