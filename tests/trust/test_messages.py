# SPDX-License-Identifier: Apache-2.0
"""What users are told when something is refused, kept word for word.

A change shows up here as a difference to read. To keep it: SPLATCERT_UPDATE_MESSAGES=1.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from message_templates import MAX_LINES, as_text, templates

KEPT = Path(__file__).with_name("messages.txt")


def test_every_message_is_the_one_that_was_agreed():
    found = as_text(templates())
    if os.environ.get("SPLATCERT_UPDATE_MESSAGES"):
        KEPT.write_text(found)
    assert found.splitlines() == KEPT.read_text().splitlines()


def test_no_message_has_more_than_five_lines():
    long = [
        text
        for raised in templates().values()
        for text in raised
        if text.count("\n") >= MAX_LINES and not text.startswith("wrong")
    ]
    assert not long


def test_no_message_shows_keyword_arguments_of_python():
    """Whoever reads it may be at a shell; options there look like --images FOLDER."""
    keyword = re.compile(r"\b[a-z_]+=[\w'\"{(]|=\.\.\.")
    quoted = "Namespace(name=value, ...)"  # what Inria's trainer writes
    found = [text.replace(quoted, "") for raised in templates().values() for text in raised]
    shown = [text for text in found if keyword.search(text) and not text.startswith("TypeError")]
    assert not shown


def test_a_message_names_no_exception_of_python():
    """Users are told what is wrong, not which class said so."""
    words = ("KeyError", "TypeError", "ValueError", "Traceback", "None of")
    assert not [
        text for raised in templates().values() for text in raised for w in words
        if w in text.partition(": ")[2]
    ]  # fmt: skip
