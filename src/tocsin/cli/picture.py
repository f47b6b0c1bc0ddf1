"""A stream drawn as SVG: one lane per key, events as dots, matches as bands around theirs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

LEFT, WIDTH, TOP, LANE = 90, 860, 64, 64
MATCH = "#ff725c"


@dataclass(frozen=True)
class Found:
    """A match: from when to when, and what is to be said of it."""

    start: dt.datetime
    end: dt.datetime
    words: str


@dataclass(frozen=True)
class Lane:
    """The events of one key between two times, each with its kind, and the matches among them."""

    name: str
    begin: dt.datetime
    end: dt.datetime
    events: tuple[tuple[dt.datetime, str], ...]
    matches: tuple[Found, ...] = ()

    def x(self, time: dt.datetime) -> float:
        """Where a time lies."""
        return LEFT + WIDTH * ((time - self.begin) / (self.end - self.begin))


def draw(title: str, colors: Mapping[str, str], lanes: Sequence[Lane], axis: Sequence[dt.datetime] = ()) -> str:
    """The picture.

    Parameters
    ----------
    title
        What readers hear who cannot see it.
    colors
        The kinds of events and their colours.
    lanes
        From top to bottom.
    axis
        The times to be named below all lanes, which then have the same; without any, every lane names its own ends.

    Examples
    --------
    >>> noon = dt.datetime(2026, 1, 1, 12)
    >>> lane = Lane("ada", noon, noon + dt.timedelta(hours=1), ((noon, "Login"),))
    >>> print(draw("One login", {"Login": "#4269d0"}, [lane]).splitlines()[1])
    <title>One login</title>
    """
    height = TOP + LANE * len(lanes) + (34 if axis else 10)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" '
        'font-family="system-ui, sans-serif" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="{height}" fill="#fff" rx="8"/>',
        *_legend(colors),
    ]
    for number, lane in enumerate(lanes):
        parts += _lane(lane, TOP + LANE * number + 24, colors, is_labelled=not axis)
    below = TOP + LANE * len(lanes) + 14
    for time in axis:
        parts.append(_text(lanes[0].x(time), below, f"{time:%H:%M}", size=11, color="#777", anchor="middle"))
    return "\n".join([*parts, "</svg>", ""])


def _legend(colors: Mapping[str, str]) -> Iterator[str]:
    at = LEFT
    for kind, color in colors.items():
        yield f'<circle cx="{at + 6}" cy="25" r="6" fill="{color}"/>'
        yield _text(at + 18, 30, kind)
        at += 34 + 8 * len(kind)
    yield f'<rect x="{at}" y="17" width="26" height="16" rx="8" fill="{MATCH}" fill-opacity=".2" stroke="{MATCH}"/>'
    yield _text(at + 34, 30, "match")


def _lane(lane: Lane, y: float, colors: Mapping[str, str], *, is_labelled: bool) -> Iterator[str]:
    yield _text(LEFT - 14, y + 4, lane.name, anchor="end")
    yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>'
    for match in lane.matches:
        left, right = lane.x(match.start) - 13, lane.x(match.end) + 13
        yield (
            f'<rect x="{left:.1f}" y="{y - 13}" width="{right - left:.1f}" height="26" rx="13" fill="{MATCH}" '
            f'fill-opacity=".2" stroke="{MATCH}" stroke-width="1.5"/>'
        )
        yield _text(left, y - 19, match.words, size=12, color="#b5402c")
    for time, kind in lane.events:
        if lane.begin <= time <= lane.end:
            yield f'<circle cx="{lane.x(time):.1f}" cy="{y}" r="6" fill="{colors[kind]}"/>'
    if is_labelled:
        clock = "%H:%M" if lane.begin.date() == lane.end.date() else "%d %b, %H:%M"
        yield _text(LEFT, y + 28, f"{lane.begin:{clock}}", size=11, color="#777")
        yield _text(LEFT + WIDTH, y + 28, f"{lane.end:{clock}}", size=11, color="#777", anchor="end")


def _text(x: float, y: float, words: str, *, size: int = 13, color: str = "#333", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{escape(words)}</text>'
    )
