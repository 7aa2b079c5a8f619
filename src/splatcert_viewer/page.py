# SPDX-License-Identifier: Apache-2.0
"""The page of one client: display mode, levels and cameras.

Nothing here waits: callbacks request pictures, and the render loop paints them.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import viser
from viser._messages import RunJavascriptMessage

from splatcert_viewer.cameras.films import Films
from splatcert_viewer.cameras.flight import Flight, move, viewpoint_from
from splatcert_viewer.cameras.landmarks import CapturePanel
from splatcert_viewer.cameras.recorder import PathPanel
from splatcert_viewer.frame import MODES, DisplayMode, Mode, draw
from splatcert_viewer.html import caption, colour_bar, guarantee_words
from splatcert_viewer.link import PageState, read_link
from splatcert_viewer.schedule import Paint, RenderLoop
from splatcert_viewer.shown import ViewerState

MOVING_QUALITY, STILL_QUALITY = 75, 92
"""JPEG quality while the camera moves, and at rest."""
AT_REST = 0.4
"""Seconds without a change after which the address follows; browsers limit how often it may."""
ATTEMPTS = 8
"""Reports of another camera after which a link's camera is given up."""
ADDRESS = "history.replaceState(null, '', '/' + location.pathname.split('/')[1] + '/' + {})"
"""Sets the address to the token and this link, without loading anything."""


class ClientPage:
    """Controls and pictures of one client."""

    def __init__(
        self,
        state: ViewerState,
        client: viser.ClientHandle,
        loop: RenderLoop,
        films: Films,
        link: str = "",
    ) -> None:
        self._state, self._client, self._loop = state, client, loop
        self._viewpoint = viewpoint_from(client.camera)
        self._gone = False
        self._pending: asyncio.TimerHandle | None = None
        wanted, ignored = read_link(link, state.levels)
        self._goal, self._attempts = wanted.viewpoint, ATTEMPTS
        self._mode: Mode = wanted.mode
        self._certificate = wanted.certificate
        self._build_display()
        self._build_levels()
        self._flight = Flight(client)
        self._capture = CapturePanel(state, client, self._ask, self._flight)
        self._path = PathPanel(state, client, self._ask, self._flight, films)
        self._capture.moved(self._viewpoint.position)
        client.camera.on_update(self._moved)
        if wanted.viewpoint is not None:
            move(client, wanted.viewpoint)
            self._viewpoint = viewpoint_from(client.camera)
        if ignored:
            client.add_notification("Link", f"Not usable here, ignored: {', '.join(ignored)}.")
        self._ask_frame()

    def leave(self) -> None:
        """The client has gone."""
        self._gone = True
        if self._pending is not None:
            self._pending.cancel()
        self._flight.stop()
        self._path.leave()
        self._loop.forget(
            *((self._client.client_id, name) for name in ("frame", "card", "colours", "film"))
        )

    def _build_display(self) -> None:
        gui = self._client.gui
        self._modes = gui.add_button_group("Show", MODES)
        self._caption = gui.add_html(caption(self._mode))
        gui.add_html(colour_bar(self._state.pixel_scale, "Half-width of a pixel"))
        self._gauge = gui.add_html("")
        self._modes.on_click(self._switch)

    def _build_levels(self) -> None:
        gui, levels = self._client.gui, self._state.levels
        alpha, beta = float(self._certificate.alpha), float(self._certificate.beta)
        with gui.add_folder("Guarantee"):
            self._alpha = gui.add_slider(
                "alpha",
                min=float(levels.alphas[0]),
                max=float(levels.alphas[-1]),
                step=0.01,
                initial_value=alpha,
                hint="Largest probability that a new view falls short of its pixel coverage.",
            )
            self._beta = gui.add_slider(
                "beta",
                min=float(levels.betas[0]),
                max=float(levels.betas[-1]),
                step=0.01,
                initial_value=beta,
                marks=tuple(map(float, levels.betas)),
                hint="Largest share of a view's pixels that may lie outside their boxes. Snaps to "
                "the levels whose scores are stored.",
            )
            self._words = gui.add_html(guarantee_words(self._certificate))
        self._alpha.on_update(self._choose_levels)
        self._beta.on_update(self._choose_levels)

    def _has_arrived(self, camera: viser.CameraHandle) -> bool:
        """Whether the camera is the link's or a later one.

        A browser may report its initial camera after it was sent the link's. That one is then sent
        again, and the address keeps the link, so that loading the page again restores the same.
        """
        if self._goal is None:
            return True
        self._attempts -= 1
        if self._attempts and not self._goal.is_at(viewpoint_from(camera)):
            move(self._client, self._goal)
            return False
        self._goal = None
        return True

    async def _moved(self, camera: viser.CameraHandle) -> None:
        if not self._has_arrived(camera):
            return
        self._viewpoint = viewpoint_from(camera)
        self._capture.moved(camera.position)
        self._ask_frame()
        self._update_address()

    async def _switch(self, _: Any) -> None:
        self._mode = next(mode for mode in MODES if mode == self._modes.value)
        self._caption.content = caption(self._mode)
        self._ask_frame()
        self._update_address()

    async def _choose_levels(self, _: Any) -> None:
        certificate = self._state.levels.at(self._alpha.value, self._beta.value)
        if self._beta.value != float(certificate.beta):
            self._beta.value = float(certificate.beta)
        if certificate.record.guarantee == self._certificate.record.guarantee:
            return
        self._certificate = certificate
        self._words.content = guarantee_words(certificate)
        self._ask_frame()
        self._capture.levels_changed(certificate)
        self._update_address()

    def _update_address(self) -> None:
        """Put the state into the address once nothing has changed for a while."""

        def tell() -> None:
            link = PageState(self._certificate, self._mode, self._viewpoint).link()
            script = RunJavascriptMessage(ADDRESS.format(json.dumps(link)))
            self._client.gui._websock_interface.queue_message(script)

        if self._pending is not None:
            self._pending.cancel()
        self._pending = asyncio.get_running_loop().call_later(AT_REST, tell)

    def _ask(self, name: str, paint: Paint, *, adapts: bool = False) -> None:
        def unless_gone(share: float) -> None:
            if not self._gone:
                paint(share)

        self._loop.ask((self._client.client_id, name), unless_gone, adapts=adapts)

    def _ask_frame(self) -> None:
        viewpoint, state = self._viewpoint, self._state
        certificate = self._certificate
        display = DisplayMode(self._mode, state.pixel_scale)

        def paint(share: float) -> None:
            frame = draw(certificate, viewpoint, display, share)
            quality = STILL_QUALITY if share == 1 else MOVING_QUALITY
            scene = self._client.scene
            scene.set_background_image(frame.pixels, format="jpeg", jpeg_quality=quality)
            self._gauge.content = state.gauge.html(frame, certificate.threshold)

        self._ask("frame", paint, adapts=True)
