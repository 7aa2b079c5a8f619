# SPDX-License-Identifier: Apache-2.0
"""The camera of one client: where it is, and how it is moved there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import viser

from splatcert_viewer.cameras.viewpoint import Viewpoint

STEPS, SECONDS = 18, 0.6
"""A flight to one view."""


def viewpoint_from(camera: viser.CameraHandle) -> Viewpoint:
    """The current viewpoint of a client."""
    return Viewpoint(camera.wxyz, camera.position, camera.fov, camera.aspect)


def move(client: viser.ClientHandle, there: Viewpoint) -> None:
    """Move the camera of a client; its window shows all of that viewpoint's picture."""
    seen = there.shown_in(client.camera.aspect)
    with client.atomic():
        client.camera.position = seen.position
        client.camera.wxyz = seen.wxyz
        client.camera.fov = seen.fov


class Flight:
    """Moves the camera of one client on the event loop; a new flight ends the one before."""

    def __init__(self, client: viser.ClientHandle) -> None:
        self._client = client
        self._task: asyncio.Task[None] | None = None

    def to(self, goal: Viewpoint) -> None:
        """Fly to one view; returns at once."""
        here = viewpoint_from(self._client.camera)
        self.along(here.flight(goal.shown_in(here.aspect), STEPS), SECONDS / STEPS)

    def along(self, viewpoints: Iterable[Viewpoint], seconds: float) -> None:
        """Show these views one after another, each for this time; returns at once."""
        self.stop()
        self._task = asyncio.get_running_loop().create_task(self._fly(viewpoints, seconds))

    def stop(self) -> None:
        """Stay where the camera is."""
        if self._task is not None:
            self._task.cancel()

    async def _fly(self, viewpoints: Iterable[Viewpoint], seconds: float) -> None:
        for there in viewpoints:
            move(self._client, there)
            await asyncio.sleep(seconds)
