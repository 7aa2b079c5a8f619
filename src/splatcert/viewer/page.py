# SPDX-License-Identifier: Apache-2.0
"""The page of one client: what is shown, and at which levels.

Nothing here waits: callbacks note what is wanted, and the render loop does it.
"""

from __future__ import annotations

from typing import Any

import viser

from splatcert.viewer.frame import MODES, Look, Mode, draw
from splatcert.viewer.html import caption, colour_bar, promise_words
from splatcert.viewer.landmarks import CapturePanel, viewpoint_from
from splatcert.viewer.schedule import Paint, RenderLoop
from splatcert.viewer.shown import Exhibit

MOVING_QUALITY, STILL_QUALITY = 75, 92
"""Of JPEG pictures."""


class ClientPage:
    """Controls and pictures of one client, who looks where and as they like."""

    def __init__(self, exhibit: Exhibit, client: viser.ClientHandle, loop: RenderLoop) -> None:
        self._exhibit, self._client, self._loop = exhibit, client, loop
        self._viewpoint = viewpoint_from(client.camera)
        self._gone = False
        self._mode: Mode = "RGB"
        self._promise = exhibit.levels.at(*exhibit.levels.certified)
        self._build_display()
        self._build_levels()
        self._capture = CapturePanel(exhibit, client, self._ask, self._promise)
        self._capture.moved(self._viewpoint.position)
        client.camera.on_update(self._moved)
        self._ask_frame()

    def leave(self) -> None:
        """The client has gone."""
        self._gone = True
        self._capture.leave()
        self._loop.forget(
            *((self._client.client_id, name) for name in ("frame", "card", "colours"))
        )

    def _build_display(self) -> None:
        gui = self._client.gui
        self._modes = gui.add_button_group("Show", MODES)
        self._caption = gui.add_html(caption(self._mode))
        gui.add_html(colour_bar(self._exhibit.pixel_scale, "Half-width of a pixel"))
        self._gauge = gui.add_html("")
        self._modes.on_click(self._switch)

    def _build_levels(self) -> None:
        gui, levels = self._client.gui, self._exhibit.levels
        alpha, beta = map(float, levels.certified)
        with gui.add_folder("Guarantee"):
            self._alpha = gui.add_slider(
                "alpha",
                min=float(levels.alphas[0]),
                max=float(levels.alphas[-1]),
                step=0.01,
                initial_value=alpha,
                hint="A new view may fall short with at most this probability.",
            )
            self._beta = gui.add_slider(
                "beta",
                min=float(levels.betas[0]),
                max=float(levels.betas[-1]),
                step=0.01,
                initial_value=beta,
                marks=tuple(map(float, levels.betas)),
                hint="Share of a view's pixels that may lie outside their boxes. It snaps to the "
                "levels whose scores are stored.",
            )
            self._words = gui.add_html(promise_words(self._promise))
        self._alpha.on_update(self._choose_levels)
        self._beta.on_update(self._choose_levels)

    async def _moved(self, camera: viser.CameraHandle) -> None:
        self._viewpoint = viewpoint_from(camera)
        self._capture.moved(camera.position)
        self._ask_frame()

    async def _switch(self, _: Any) -> None:
        self._mode = next(mode for mode in MODES if mode == self._modes.value)
        self._caption.content = caption(self._mode)
        self._ask_frame()

    async def _choose_levels(self, _: Any) -> None:
        promise = self._exhibit.levels.at(self._alpha.value, self._beta.value)
        if self._beta.value != float(promise.beta):
            self._beta.value = float(promise.beta)
        if promise == self._promise:
            return
        self._promise = promise
        self._words.content = promise_words(promise)
        self._ask_frame()
        self._capture.promise_changed(promise)

    def _ask(self, name: str, paint: Paint, *, adapts: bool = False) -> None:
        def unless_gone(share: float) -> None:
            if not self._gone:
                paint(share)

        self._loop.ask((self._client.client_id, name), unless_gone, adapts=adapts)

    def _ask_frame(self) -> None:
        viewpoint, exhibit = self._viewpoint, self._exhibit
        look = Look(self._mode, self._promise.threshold, exhibit.pixel_scale)

        def paint(share: float) -> None:
            frame = draw(exhibit.certificate, viewpoint, look, share)
            quality = STILL_QUALITY if share == 1 else MOVING_QUALITY
            scene = self._client.scene
            scene.set_background_image(frame.pixels, format="jpeg", jpeg_quality=quality)
            self._gauge.content = exhibit.gauge.html(frame, look.threshold)

        self._ask("frame", paint, adapts=True)
