"""Draw the README's picture: four customers of the bundled stream, and the matches of the bundled pattern among them.

`python tools/draw_timeline.py > docs/images/timeline.svg`; a test checks that the file is what this prints.
"""

from __future__ import annotations

import datetime as dt
from importlib.resources import files
from typing import Any

import tocsin
from tocsin.datasets import bank

USERS = ("chloe", "kaia", "jonas", "hana")
FROM, TO = bank.MORNING + dt.timedelta(minutes=36), bank.MORNING + dt.timedelta(minutes=161)
LEFT, WIDTH, TOP, LANE = 90, 860, 64, 64
COLORS = {"Login": "#4269d0", "PasswordChange": "#a463f2", "Transfer": "#3ca951", "Alert": "#9498a0"}
MATCH = "#ff725c"


def x_of(time: dt.datetime) -> float:
    """Where a time lies on the axis."""
    return LEFT + WIDTH * ((time - FROM) / (TO - FROM))


def text(x: float, y: float, words: str, *, size: int = 13, color: str = "#333", anchor: str = "start") -> str:
    """Words at a point."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{words}</text>'


def matches(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The matches of the bundled pattern, with their events instead of its RETURN columns."""
    query = (files("tocsin.datasets") / "bank.sase").read_text()
    pattern = tocsin.pattern(query[: query.index("RETURN")])
    return tocsin.reference.evaluate(pattern, events)


def drawing() -> str:
    """The picture as SVG."""
    events = [event for event in bank.events() if FROM <= event["ts"] <= TO]
    height = TOP + LANE * len(USERS) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" '
        'font-family="system-ui, sans-serif" role="img">',
        "<title>Two account takeovers found among the events of four customers</title>",
        f'<rect width="100%" height="{height}" fill="#fff" rx="8"/>',
    ]
    at = LEFT
    for kind, color in COLORS.items():
        parts += [f'<circle cx="{at + 6}" cy="25" r="6" fill="{color}"/>', text(at + 18, 30, kind)]
        at += 34 + 8 * len(kind)
    parts += [
        f'<rect x="{at}" y="17" width="26" height="16" rx="8" fill="{MATCH}" fill-opacity=".2" stroke="{MATCH}"/>',
        text(at + 34, 30, "match"),
    ]
    found = {row["l"]["user"]: row for row in matches(bank.events())}
    for lane, user in enumerate(USERS):
        y = TOP + LANE * lane + 24
        parts += [
            text(LEFT - 14, y + 4, user, anchor="end"),
            f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>',
        ]
        if user in found:
            parts += _match(found[user], y)
        parts += [
            f'<circle cx="{x_of(event["ts"]):.1f}" cy="{y}" r="6" fill="{COLORS[event["type"]]}"/>'
            for event in events
            if event["user"] == user
        ]
    axis = TOP + LANE * len(USERS) + 14
    for minutes in range(40, 161, 20):
        time = bank.MORNING + dt.timedelta(minutes=minutes)
        parts.append(text(x_of(time), axis, f"{time:%H:%M}", size=11, color="#777", anchor="middle"))
    return "\n".join([*parts, "</svg>", ""])


def _match(row: dict[str, Any], y: float) -> list[str]:
    left, right = x_of(row["start"]) - 13, x_of(row["end"]) + 13
    words = f"{row['l']['country']} login → new password → {row['t']['amount']:,.0f} sent"
    return [
        f'<rect x="{left:.1f}" y="{y - 13}" width="{right - left:.1f}" height="26" rx="13" fill="{MATCH}" '
        f'fill-opacity=".2" stroke="{MATCH}" stroke-width="1.5"/>',
        text(left, y - 19, words, size=12, color="#b5402c"),
    ]


if __name__ == "__main__":
    print(drawing(), end="")
