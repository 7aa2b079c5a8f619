# SPDX-License-Identifier: Apache-2.0
"""Which picture comes next, by a clock of our own; and the thread that paints them."""

from __future__ import annotations

import threading

from splatcert_viewer.schedule import SETTLED, SHARES, RenderLoop, Schedule, Turn, next_share
from waiting import PATIENCE, until


def nothing(_: float) -> None:
    pass


def turn_of(schedule: Schedule, now: float) -> Turn:
    found = schedule.next(now)
    assert isinstance(found, Turn)
    return found


def test_only_the_newest_request_of_a_canvas_is_painted():
    schedule, painted = Schedule(), []
    for k in range(5):
        schedule.ask("a", lambda _, k=k: painted.append(k), now=float(k))
    turn_of(schedule, 5.0).paint(1.0)
    assert painted == [4]
    assert schedule.next(5.0) is None


def test_pictures_get_coarser_until_they_are_fast_and_full_when_the_camera_rests():
    schedule, cost = Schedule(budget=0.05), 0.2
    shares, now = [], 0.0
    for _ in range(8):
        schedule.ask("a", nothing, now)
        turn = turn_of(schedule, now)
        shares.append(turn.share)
        schedule.took(turn, cost * turn.share**2)
        now += 0.06
    assert shares[0] == 1.0
    assert cost * shares[-1] ** 2 <= 0.05 and shares[-1] == shares[-2]
    wait = schedule.next(now)
    assert isinstance(wait, float) and 0 < wait <= SETTLED
    full = turn_of(schedule, now + SETTLED)
    assert full.share == 1.0
    schedule.took(full, cost)
    assert schedule.next(now + 1) is None
    schedule.ask("a", nothing, now + 2)
    assert turn_of(schedule, now + 2).share == shares[-1], "a still picture may take its time"


def test_a_share_is_stable_where_it_fits():
    for share in SHARES:
        assert next_share(share, 0.05, 0.05) == share
    assert next_share(0.5, 0.005, 0.05) == 0.75
    assert next_share(1.0, 0.005, 0.05) == 1.0
    assert next_share(SHARES[0], 1.0, 0.05) == SHARES[0]


def test_clients_take_turns():
    schedule, order = Schedule(), []
    for now in range(6):
        for key in ("a", "b", "c"):
            schedule.ask(key, nothing, now)
        order.append(turn_of(schedule, now + 0.5).key)
    assert sorted(order[:3]) == ["a", "b", "c"] and order[:3] == order[3:]


def test_what_need_not_adapt_is_painted_whole_at_once():
    schedule = Schedule(budget=0.01)
    for now in (0.0, 1.0):
        schedule.ask("card", nothing, now, adapts=False)
        turn = turn_of(schedule, now)
        assert turn.share == 1.0
        schedule.took(turn, 1.0)
    assert schedule.next(2.0) is None


def test_whoever_asks_never_waits_and_the_newest_camera_is_painted():
    loop, painted, errors = RenderLoop(lambda error: None), [], []
    begun, released = threading.Event(), threading.Event()

    def slow(_: float) -> None:
        begun.set()
        released.wait(PATIENCE)
        painted.append("slow")

    loop.start()
    try:
        loop.ask("a", slow)
        assert begun.wait(PATIENCE)
        for k in range(1000):
            loop.ask("a", lambda _, k=k: painted.append(k))
        assert not painted  # all have asked while the slow picture was still under way
        released.set()
        done = threading.Event()
        loop.ask("b", lambda _: done.set())
        assert done.wait(PATIENCE)
        until(lambda: len(painted) > 1)
    finally:
        loop.stop()
    assert painted[:2] == ["slow", 999] and not errors


def test_a_picture_that_fails_does_not_end_the_others():
    errors: list[Exception] = []
    loop, done = RenderLoop(errors.append), threading.Event()

    def fail(_: float) -> None:
        raise ZeroDivisionError

    loop.start()
    try:
        loop.ask("a", fail)
        loop.ask("b", lambda _: done.set())
        assert done.wait(PATIENCE)
    finally:
        loop.stop()
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_stopped_loop_has_ended():
    loop = RenderLoop(lambda error: None)
    loop.start()
    loop.stop(PATIENCE)
    assert not loop._thread.is_alive()
