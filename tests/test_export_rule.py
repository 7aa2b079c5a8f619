# SPDX-License-Identifier: Apache-2.0
"""Rules on columns: what they mean, and that nothing else can be said in them."""

from __future__ import annotations

import numpy as np
import pytest

from splatcert.export import Rule, RuleError

COLUMNS = {
    "views_seen": np.array([0, 3, 5, 9], dtype=np.int32),
    "opacity": np.array([0.9, 0.01, 0.5, 0.7], dtype=np.float32),
}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("views_seen >= 3", [0, 1, 1, 1]),
        ("views_seen >= 3 and opacity > 0.05", [0, 0, 1, 1]),
        ("views_seen < 1 or opacity < 0.1", [1, 1, 0, 0]),
        ("not (views_seen >= 3)", [1, 0, 0, 0]),
        ("1 < views_seen <= 5", [0, 1, 1, 0]),
        ("2 * opacity - 1 > -views_seen / 10", [1, 0, 1, 1]),
        ("  views_seen != 3  ", [1, 0, 1, 1]),
        ("1 < 2", [1, 1, 1, 1]),
    ],
)
def test_what_a_rule_means(text, kept):
    np.testing.assert_array_equal(Rule.parse(text).apply(COLUMNS), np.array(kept, dtype=bool))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "views_seen.__class__ == 1",
        "(lambda: 1)() > 0",
        "[x for x in (1,)] == 1",
        "views_seen[0] > 1",
        "views_seen ** 9999 > 1",
        "opacity == 'a'",
        "opacity == True",
        "views_seen",
        "views_seen in (1, 2)",
        "1 if opacity else 0",
        "f'{opacity}' == 1",
        "(opacity := 1) > 0",
        "",
        "views_seen >",
        "x" * 2000,
        "(" * 300 + "opacity" + ")" * 300,
        "-" * 900 + "1 > 0",
        "\x00",
    ],
)
def test_nothing_else_can_be_said(text):
    with pytest.raises(RuleError):
        Rule.parse(text).apply(COLUMNS)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(RuleError, match=r"Did you mean opacity\?\n  Columns: opacity, views_seen"):
        Rule.parse("opactiy > 0.5").apply(COLUMNS)
