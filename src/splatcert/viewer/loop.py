# SPDX-License-Identifier: Apache-2.0
"""One thread that paints what the schedule says; whoever asks never waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

from splatcert.viewer.schedule import BUDGET, Paint, Schedule, Turn

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
