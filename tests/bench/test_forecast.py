# SPDX-License-Identifier: Apache-2.0
"""What a bench says about the time it will still take."""

from __future__ import annotations

import pytest

from splatcert_bench.run.bench import Forecast, State
from splatcert_bench.run.fingerprint import Task


def task(stage: str) -> Task:
    return Task(
        name=stage, stage=stage, function=print, arguments=(), settings={}, outputs=(), after=()
    )


def test_time_left_is_that_of_jobs_of_the_same_kind():
    forecast = Forecast([task("train"), task("train"), task("study")])
    assert forecast.left() is None
    forecast.know("train", 100)
    forecast.ended("train")
    assert forecast.left() == 200  # one more training, and a study that nobody has seen
    forecast.know("study", 20)
    assert forecast.left() == 120
    forecast.at_once = 2
    assert forecast.left() == 60


def test_models_that_were_given_do_not_make_training_look_quick():
    forecast = Forecast([task(""), task(""), task("train")])
    forecast.know("", 0.01)
    forecast.ended("")
    assert forecast.left() is None
    forecast.know("train", 600)
    assert forecast.left() == 600


@pytest.mark.parametrize(("seconds", "words"), [(40, "40 s"), (600, "10 min"), (9000, "2.5 h")])
def test_state_in_words(seconds, words):
    state = State(total=4, done=1, running=("a/train",), left=seconds)
    assert state.words() == f"1 of 4 jobs done; running a/train; about {words} left"
