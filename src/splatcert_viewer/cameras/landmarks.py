# SPDX-License-Identifier: Apache-2.0
"""The cameras of the capture in the page of one client: frusta, flights, and cards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import viser

from splatcert.certificate.certificate import Certificate
from splatcert_viewer.cameras.flight import Flight
from splatcert_viewer.cameras.known_views import ROLES, KnownView, Role
from splatcert_viewer.cameras.viewpoint import Array, viewpoint_of
from splatcert_viewer.colours import colour_of
from splatcert_viewer.frame import Card, make_card
from splatcert_viewer.html import card_words, colour_bar
from splatcert_viewer.schedule import Ask
from splatcert_viewer.shown import ViewerState

SIZES: dict[Role, float] = {"training": 0.012, "calibration": 0.025, "unlabelled": 0.025}
"""Size of frusta, in scene extents."""
NEAR = 0.3
"""Frusta closer than this, in scene extents, are drawn as edges only."""
PREDICTED, NEEDED = "half-width given", "half-width needed"
NOWHERE = "choose a view"
CARD_WIDTH = 320
"""Width of the card, in browser pixels."""


class CapturePanel:
    """Frusta, the list of views, and the card of a chosen one."""

    def __init__(
        self, state: ViewerState, client: viser.ClientHandle, ask: Ask, flight: Flight
    ) -> None:
        self._state, self._client, self._ask, self._flight = state, client, ask, flight
        self._certificate = state.certificate
        self._chosen: KnownView | None = None
        self._build_controls()
        self._places = np.array([view.camera.centre for view in state.views])
        self._held_out = np.array([view.role != "training" for view in state.views])
        self._filled = np.zeros(len(state.views), dtype=bool)
        self._frusta = [self._add_frustum(k, view) for k, view in enumerate(state.views)]
        self._build_card()

    def moved(self, position: Array) -> None:
        """Draw nearby frusta as edges only, because their faces would veil the picture."""
        far = np.linalg.norm(self._places - position, axis=1) > NEAR * self._state.extent
        filled = self._held_out & far
        for index in np.flatnonzero(filled != self._filled):
            self._frusta[index].variant = "filled" if filled[index] else "wireframe"
        self._filled = filled

    def levels_changed(self, certificate: Certificate) -> None:
        """Update half-widths and misses for new levels."""
        self._certificate = certificate
        self._ask_colours()
        self._ask_card()

    def _build_controls(self) -> None:
        gui, views = self._client.gui, self._state.views
        with gui.add_folder("Cameras"):
            self._destination = gui.add_dropdown(
                "Fly to", (NOWHERE, *(view.name for view in sorted(views, key=_ease)))
            )
            choices = (PREDICTED, NEEDED) if self._state.gauge.predicted else (NEEDED, PREDICTED)
            self._colouring = gui.add_dropdown(
                "Colour",
                choices,
                hint="Mean half-width per view: given at these levels, or needed at the certified "
                "beta. The latter is known only where the certificate used a photo.",
            )
            bar = colour_bar(self._state.view_scale, "Mean half-width of a view", "or unknown")
            gui.add_html(bar)
            for role, words in ROLES.items():
                if count := sum(view.role == role for view in views):
                    box = gui.add_checkbox(f"{count} {words}", role != "training")
                    self._on_toggle(role, box)

        async def choose(_: Any) -> None:
            for view in views:
                if view.name == self._destination.value:
                    self._choose(view)

        async def recolour(_: Any) -> None:
            self._ask_colours()

        self._destination.on_update(choose)
        self._colouring.on_update(recolour)

    def _on_toggle(self, role: Role, box: viser.GuiInputHandle[bool]) -> None:
        async def toggled(_: Any) -> None:
            for view, frustum in zip(self._state.views, self._frusta, strict=True):
                if view.role == role:
                    frustum.visible = box.value

        box.on_update(toggled)

    def _add_frustum(self, index: int, view: KnownView) -> viser.CameraFrustumHandle:
        place = viewpoint_of(view.camera)
        frustum = self._client.scene.add_camera_frustum(
            f"/views/{index}",
            fov=place.fov,
            aspect=place.aspect,
            scale=SIZES[view.role] * self._state.extent,
            thickness=1.5 if view.role == "training" else 2.5,
            thickness_units="screen",
            color=self._colour(view),
            wxyz=place.wxyz,
            position=place.position,
            visible=view.role != "training",
            cast_shadow=False,
            receive_shadow=False,
        )

        async def clicked(_: Any) -> None:
            self._choose(view)

        frustum.on_click(clicked)
        return frustum

    def _colour(self, view: KnownView) -> tuple[int, int, int]:
        predicted = self._colouring.value == PREDICTED
        half_width = self._certificate.threshold * view.factor if predicted else view.needed
        return colour_of(half_width, self._state.view_scale)

    def _ask_colours(self) -> None:
        def paint(_: float) -> None:
            for view, frustum in zip(self._state.views, self._frusta, strict=True):
                frustum.color = self._colour(view)

        self._ask("colours", paint)

    def _choose(self, view: KnownView) -> None:
        """Fly to a view and show its card; called on the event loop, and does not wait."""
        self._chosen = view
        self._ask_card()
        self._flight.to(viewpoint_of(view.camera))

    def _build_card(self) -> None:
        gui = self._client.gui
        self._card = gui.add_panel(visible=False)
        with self._card.add_tab("View"):
            self._card_words = gui.add_html("")
            blank = np.zeros((1, 1, 3), dtype=np.uint8)
            self._pictures = {
                name: gui.add_image(blank, label=name, visible=False)
                for name in ("Photo", "Render", "Misses")
            }
            close = gui.add_button("Close")
        self._card.float(x=15, y=-15, width=CARD_WIDTH)

        async def hide(_: Any) -> None:
            self._chosen, self._card.visible = None, False

        close.on_click(hide)

    def _ask_card(self) -> None:
        view, certificate = self._chosen, self._certificate
        if view is None:
            return

        def paint(_: float) -> None:
            state = self._state
            self._show(view, make_card(certificate, view, state.scene))

        self._ask("card", paint)

    def _show(self, view: KnownView, card: Card) -> None:
        self._card_words.content = card_words(view, card.words, self._certificate.threshold)
        pictures = {"Photo": card.photo, "Render": card.render, "Misses": card.misses}
        for name, pixels in pictures.items():
            handle = self._pictures[name]
            if pixels is not None:
                handle.image = pixels
            handle.visible = pixels is not None
        self._card.visible = True


def _ease(view: KnownView) -> tuple[bool, float]:
    """Sort key: hardest first where known, the rest after them."""
    unknown = math.isnan(view.needed)
    return unknown, -view.factor if unknown else -view.needed
