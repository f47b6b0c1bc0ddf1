"""Draw the README's picture: four customers of the bundled stream, and the matches of the bundled pattern among them.

`python -m tools.draw_timeline > docs/images/timeline.svg`; a test checks that the file is what this prints.
"""

from __future__ import annotations

import datetime as dt
from importlib.resources import files
from typing import Any

from tools import bank

import tocsin
from tocsin.cli.drawing import Found, Lane, as_svg

USERS = ("chloe", "kaia", "jonas", "hana")
FROM, TO = bank.MORNING + dt.timedelta(minutes=36), bank.MORNING + dt.timedelta(minutes=161)
AXIS = [bank.MORNING + dt.timedelta(minutes=minutes) for minutes in range(40, 161, 20)]
COLORS = {"Login": "#4269d0", "PasswordChange": "#a463f2", "Transfer": "#3ca951", "Alert": "#9498a0"}


def matches(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The matches of the bundled pattern, with their events instead of its RETURN columns."""
    query = (files("tocsin.datasets") / "bank.sase").read_text()
    pattern = tocsin.pattern(query[: query.index("RETURN")])
    return tocsin.reference.evaluate(pattern, events)


def drawing() -> str:
    """The picture as SVG."""
    events = bank.events()
    found = {row["l"]["user"]: row for row in matches(events)}
    lanes = [
        Lane(
            user,
            FROM,
            TO,
            tuple((event["ts"], event["type"]) for event in events if event["user"] == user),
            (_match(found[user]),) if user in found else (),
        )
        for user in USERS
    ]
    return as_svg("Two account takeovers found among the events of four customers", COLORS, lanes, AXIS)


def _match(row: dict[str, Any]) -> Found:
    words = f"{row['l']['country']} login → new password → {row['t']['amount']:,.0f} sent"
    return Found((row["start"], row["end"]), words)


if __name__ == "__main__":
    print(drawing(), end="")
