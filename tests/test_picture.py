"""The README's pictures show what the bundled pattern and the bundled rules find in the bundled streams."""

from __future__ import annotations

from pathlib import Path

from tools import draw_fraud, draw_timeline

ROOT = Path(__file__).parents[1]


def test_the_picture_is_what_the_tool_draws() -> None:
    assert (ROOT / "docs/images/timeline.svg").read_text() == draw_timeline.drawing()


def test_the_picture_marks_two_matches() -> None:
    assert draw_timeline.drawing().count("new password →") == 2


def test_the_picture_of_the_rules_is_what_the_tool_draws() -> None:
    assert (ROOT / "docs/images/fraud.svg").read_text(encoding="utf-8") == draw_fraud.drawing()


def test_the_picture_of_the_rules_marks_four_matches() -> None:
    assert draw_fraud.drawing().count("</text>\n<circle") >= 4
    assert draw_fraud.drawing().count("FraudRefundScam: ") == 2
