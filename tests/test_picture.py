"""The README's picture shows what the bundled pattern finds in the bundled stream."""

from __future__ import annotations

from pathlib import Path

from tools import draw_timeline

ROOT = Path(__file__).parents[1]


def test_the_picture_is_what_the_tool_draws() -> None:
    assert (ROOT / "docs/images/timeline.svg").read_text() == draw_timeline.drawing()


def test_the_picture_marks_two_matches() -> None:
    assert draw_timeline.drawing().count("new password →") == 2
