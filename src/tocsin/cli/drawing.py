"""Streams drawn as text or as SVG: a lane for each key, its events in order of time, and the matches among them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

LEFT, WIDTH, TOP, LANE = 90, 860, 64, 64
MATCH = "#ff725c"


@dataclass(frozen=True)
class Found:
    """A match: the times of its events in order, and a description."""

    times: tuple[dt.datetime, ...]
    words: str = ""


@dataclass(frozen=True)
class Lane:
    """The events of one key between two times, each with its kind, and the matches among them."""

    name: str
    begin: dt.datetime
    end: dt.datetime
    events: tuple[tuple[dt.datetime, str], ...]
    matches: tuple[Found, ...] = ()

    @property
    def visible(self) -> list[tuple[dt.datetime, str]]:
        """The events between the two times."""
        return [(time, kind) for time, kind in self.events if self.begin <= time <= self.end]

    def share(self, time: dt.datetime) -> float:
        """How far a time lies between the two: from 0 to 1."""
        return (time - self.begin) / max(self.end - self.begin, dt.timedelta(seconds=1))

    def clock(self, time: dt.datetime, day: str) -> str:
        """A time as it is written on this lane: with the day, where the lane has more than one."""
        return f"{time:%H:%M}" if self.begin.date() == self.end.date() else f"{time:{day} %H:%M}"


# --- text -----------------------------------------------------------------------------------------


def as_text(lane: Lane, letters: Mapping[str, str], *, width: int = 72) -> str:
    """A lane as text: a letter for each event, and matches as brackets under theirs.

    >>> at = [dt.datetime(2026, 1, 1, 8, minute) for minute in (0, 5, 10, 20)]
    >>> kinds = {"Login": "L", "Password": "P", "Transfer": "T"}
    >>> lane = Lane("ada", at[0], at[3], tuple(zip(at, [*kinds, "Login"])), (Found(tuple(at[:3])),))
    >>> print(as_text(lane, kinds, width=41))
         08:00                               08:20
    ada  L·········P·········T···················L
         └─────────┴─────────┘
    """
    margin = " " * (len(lane.name) + 2)

    def column(time: dt.datetime) -> int:
        return round(lane.share(time) * (width - 1))

    cells = ["·"] * width
    for time, kind in lane.visible:
        at = column(time)
        while at + 1 < width and cells[at] != "·":  # an event stands there already
            at += 1
        cells[at] = letters[kind]
    first, last = lane.clock(lane.begin, "%d %b"), lane.clock(lane.end, "%d %b")
    rows = [margin + first + last.rjust(width - len(first)), f"{lane.name}  {''.join(cells)}"]
    return "\n".join([*rows, *(margin + _bracket([column(time) for time in match.times]) for match in lane.matches)])


def _bracket(columns: list[int]) -> str:
    first, last = columns[0], columns[-1]
    cells = [" "] * first + ["─"] * (last - first + 1)
    for column in columns:
        cells[column] = "┴"
    cells[first], cells[last] = ("└", "┘") if first < last else ("┴", "┴")
    return "".join(cells)


# --- SVG ------------------------------------------------------------------------------------------


def as_svg(title: str, colors: Mapping[str, str], lanes: Sequence[Lane], axis: Sequence[dt.datetime] = ()) -> str:
    """Lanes as a picture: events as dots, matches as bands around theirs.

    `title` is for readers who cannot see it; `axis` has the times to be named below all lanes, which then have the
    same; without any, every lane names its own ends.

    >>> noon = dt.datetime(2026, 1, 1, 12)
    >>> lane = Lane("ada", noon, noon + dt.timedelta(hours=1), ((noon, "Login"),))
    >>> print(as_svg("One login", {"Login": "#4269d0"}, [lane]).splitlines()[1])
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
        parts.append(_text(_x(lanes[0], time), below, f"{time:%H:%M}", size=11, color="#777", anchor="middle"))
    return "\n".join([*parts, "</svg>", ""])


def _x(lane: Lane, time: dt.datetime) -> float:
    return LEFT + WIDTH * lane.share(time)


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
        left, right = _x(lane, match.times[0]) - 13, _x(lane, match.times[-1]) + 13
        yield (
            f'<rect x="{left:.1f}" y="{y - 13}" width="{right - left:.1f}" height="26" rx="13" fill="{MATCH}" '
            f'fill-opacity=".2" stroke="{MATCH}" stroke-width="1.5"/>'
        )
        yield _text(left, y - 19, match.words, size=12, color="#b5402c")
    for time, kind in lane.visible:
        yield f'<circle cx="{_x(lane, time):.1f}" cy="{y}" r="6" fill="{colors[kind]}"/>'
    if is_labelled:
        yield _text(LEFT, y + 28, lane.clock(lane.begin, "%d %b,"), size=11, color="#777")
        yield _text(LEFT + WIDTH, y + 28, lane.clock(lane.end, "%d %b,"), size=11, color="#777", anchor="end")


def _text(x: float, y: float, words: str, *, size: int = 13, color: str = "#333", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{escape(words)}</text>'
    )
