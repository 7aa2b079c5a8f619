# SPDX-License-Identifier: Apache-2.0
"""The recorder in the page of one client: key views, the path through them, and its film."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import numpy as np
import viser

from splatcert.errors import InputError
from splatcert.frames.choose_cameras import FILM_FPS
from splatcert.frames.film import NOT_INSTALLED, can_film
from splatcert.report.words.promise import path_guarantee
from splatcert.scene.readers.camera_files import camera_list
from splatcert_viewer.cameras.films import Films
from splatcert_viewer.cameras.flight import Flight, viewpoint_from
from splatcert_viewer.cameras.recorded import LONGEST, MOST_KEYS, Shooting, frames_between
from splatcert_viewer.cameras.viewpoint import Viewpoint, viewpoint_of
from splatcert_viewer.html import facts
from splatcert_viewer.schedule import Ask
from splatcert_viewer.shown import ViewerState

NONE: str = "no views yet"
PLAY_FPS, DRAWN_FPS = 15, 4
"""Steps per second of playing, and of the line that is drawn."""
COLOUR = (120, 190, 255)
SIZE = 0.02
"""Size of key views, in scene extents."""


class PathPanel:
    """Key views, and what is made of the path through them."""

    def __init__(
        self,
        state: ViewerState,
        client: viser.ClientHandle,
        ask: Ask,
        flight: Flight,
        films: Films,
    ) -> None:
        self._state, self._client, self._ask = state, client, ask
        self._flight, self._films = flight, films
        self._keys: list[Viewpoint] = []
        self._drawn: list[Any] = []
        self._shooting: Shooting | None = None
        self._build()

    def leave(self) -> None:
        """The client has gone."""
        if self._shooting is not None:
            shutil.rmtree(self._shooting.folder, ignore_errors=True)

    def _build(self) -> None:
        gui = self._client.gui
        with gui.add_folder("Camera path", expand_by_default=False):
            self._chosen: viser.GuiDropdownHandle[str] = gui.add_dropdown(
                "Key view", (NONE,), hint="Choose one to fly there."
            )
            edit = gui.add_button_group("Record", ("add view", "remove", "play"))
            self._seconds = gui.add_number("Seconds", 6.0, min=1.0, max=LONGEST, step=0.5)
            make = gui.add_button_group("Make", ("film", "camera file", "stop"))
            self._bar = gui.add_progress_bar(0, visible=False)
            self._words = gui.add_html(facts(path_guarantee(self._state.certificate)))
        acts = {
            "add view": self._add,
            "remove": self._remove,
            "play": self._play,
            "film": self._film,
            "camera file": self._export,
            "stop": self._stop,
        }

        async def act(event: viser.GuiEvent[Any]) -> None:
            try:
                acts[event.target.value]()
            except KeyError:  # no button of ours
                return
            except InputError as error:
                self._say({"Path": str(error)})

        async def choose(event: viser.GuiEvent[Any]) -> None:
            by_hand = event.client_id is not None  # adding a view chooses it, where the camera is
            if by_hand and self._chosen.value in (names := self._names()):
                self._flight.to(self._keys[names.index(self._chosen.value)])

        edit.on_click(act)
        make.on_click(act)
        self._chosen.on_update(choose)

    def _say(self, said: dict[str, str]) -> None:
        self._words.content = facts(said)

    def _names(self) -> list[str]:
        return [f"view {number}" for number in range(1, len(self._keys) + 1)]

    def _add(self) -> None:
        if len(self._keys) >= MOST_KEYS:
            raise InputError(f"a path has at most {MOST_KEYS} key views.")
        self._keys.append(viewpoint_from(self._client.camera))
        self._changed(self._names()[-1])

    def _remove(self) -> None:
        if self._chosen.value in (names := self._names()):
            del self._keys[names.index(self._chosen.value)]
            self._changed(next(reversed(self._names()), NONE))

    def _changed(self, chosen: str) -> None:
        """List the key views, and draw them and the path."""
        self._chosen.options = self._names() or (NONE,)
        self._chosen.value = chosen
        for handle in self._drawn:
            handle.remove()
        scene, extent = self._client.scene, self._state.extent
        self._drawn = [
            scene.add_camera_frustum(
                f"/path/{number}",
                fov=key.fov,
                aspect=key.aspect,
                scale=SIZE * extent,
                thickness=2.0,
                thickness_units="screen",
                color=COLOUR,
                wxyz=key.wxyz,
                position=key.position,
                cast_shadow=False,
                receive_shadow=False,
            )
            for number, key in enumerate(self._keys)
        ]
        if len(self._keys) > 1:
            places = np.array([camera.centre for camera in self._cameras(DRAWN_FPS).values()])
            self._drawn.append(
                scene.add_line_segments(
                    "/path/line",
                    np.stack([places[:-1], places[1:]], axis=1),
                    COLOUR,
                    thickness=2.0,
                    thickness_units="screen",
                )
            )

    def _cameras(self, fps: int = FILM_FPS) -> dict[str, Any]:
        seconds = self._seconds.value
        if not isinstance(seconds, int | float) or not 1 <= seconds <= LONGEST:
            raise InputError(f"a film lasts 1 to {LONGEST:g} seconds.")
        return frames_between(self._state.certificate, self._keys, seconds, fps)

    def _play(self) -> None:
        self._flight.along(map(viewpoint_of, self._cameras(PLAY_FPS).values()), 1 / PLAY_FPS)

    def _export(self) -> None:
        text = camera_list(self._cameras(), fps=FILM_FPS)
        self._client.send_file_download("path.json", text.encode())
        self._say({"Next": "splatcert render CERT --cameras path.json -o DIR makes the same film."})

    def _stop(self) -> None:
        self._flight.stop()
        if self._shooting is not None:
            shutil.rmtree(self._shooting.folder, ignore_errors=True)
            self._shooting, self._bar.visible = None, False
            self._say({"Film": "stopped."})

    def _film(self) -> None:
        if self._shooting is not None:
            return
        if not can_film():
            raise InputError(NOT_INSTALLED)
        cameras = self._cameras()
        self._shooting = Shooting(self._state.certificate, cameras, self._films.room())
        self._bar.visible = True
        self._say({"Film": f"rendering {len(cameras)} frames."})
        self._ask_frame(self._shooting)

    def _ask_frame(self, shooting: Shooting) -> None:
        """Render one frame when it is this client's turn, and ask for the next."""

        def paint(_: float) -> None:
            if self._shooting is not shooting:  # stopped
                return
            shooting.next_frame()
            self._bar.value = 80 * shooting.share
            if shooting.share < 1:
                self._ask_frame(shooting)
            else:
                threading.Thread(target=self._deliver, args=(shooting,), daemon=True).start()

        self._ask("film", paint)

    def _deliver(self, shooting: Shooting) -> None:
        """Encode and hand over, in a thread of its own: nobody waits for the encoder."""

        def on(share: float) -> None:
            self._bar.value = 80 + 20 * share

        try:
            words, send = shooting.words(), self._client.send_file_download
            told = {"Film": self._films.finish(shooting, send, on), **words}
        except Exception as error:  # a film that fails must not end the server
            told = {"Film": f"not written: {error}"}
        if self._shooting is shooting:
            self._shooting, self._bar.visible = None, False
            self._say(told)
