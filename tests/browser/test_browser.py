# SPDX-License-Identifier: Apache-2.0
"""The account a page is kept of: what the other tests here rely on."""

from __future__ import annotations


def test_requests_and_errors_are_recorded(page, seen, tmp_path):
    home = tmp_path / "home.html"
    home.write_text(
        '<img src="absent.png"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'
        "<script>console.error('said'); throw new Error('thrown')</script>"
    )
    page.goto(home.as_uri())
    assert seen.requests[0] == home.as_uri()
    assert seen.elsewhere(home.as_uri()) == [(tmp_path / "absent.png").as_uri()]
    assert any("said" in text for text in seen.errors)
    assert any("thrown" in text for text in seen.errors)
