"""A stream drawn as text: time runs to the right, one line per key, matches as brackets under their events."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

BLANK = " "


@dataclass(frozen=True)
class Mark:
    """One event: when, and the letter that stands for its type."""

    at: dt.datetime
    letter: str


@dataclass(frozen=True)
class Line:
    """The events of one key, and the matches among them, each as the times of its events."""

    name: str
    marks: tuple[Mark, ...]
    matches: tuple[tuple[dt.datetime, ...], ...] = ()


def draw(lines: Sequence[Line], start: dt.datetime, end: dt.datetime, *, width: int = 72) -> str:
    """The lines between two times.

    Examples
    --------
    >>> at = [dt.datetime(2026, 1, 1, 8, minute) for minute in (0, 5, 10, 20)]
    >>> line = Line("ada", tuple(map(Mark, at, "LPTL")), ((at[0], at[1], at[2]),))
    >>> print(draw([line], at[0], at[3], width=41))
         08:00                               08:20
    ada  L·········P·········T···················L
         └─────────┴─────────┘
    """
    margin = max(len(line.name) for line in lines) + 2
    scale = (width - 1) / max((end - start).total_seconds(), 1)

    def column(at: dt.datetime) -> int:
        return round((at - start).total_seconds() * scale)

    clock = "%H:%M" if start.date() == end.date() else "%d %b %H:%M"
    first, last = f"{start:{clock}}", f"{end:{clock}}"
    rows = [BLANK * margin + first + BLANK * (width - len(first) - len(last)) + last]
    for line in lines:
        cells = ["·"] * width
        for mark in line.marks:
            if start <= mark.at <= end:
                cells[_free(cells, column(mark.at))] = mark.letter
        rows.append(line.name.ljust(margin) + "".join(cells))
        rows += [BLANK * margin + _bracket([column(at) for at in match]) for match in line.matches]
    return "\n".join(rows)


def _free(cells: list[str], column: int) -> int:
    """The column itself, or the next one when an event stands there already."""
    while column + 1 < len(cells) and cells[column] != "·":
        column += 1
    return column


def _bracket(columns: list[int]) -> str:
    first, last = columns[0], columns[-1]
    cells = [BLANK] * first + ["─"] * (last - first + 1)
    for column in columns:
        cells[column] = "┴"
    cells[first], cells[last] = ("└", "┘") if first < last else ("┴", "┴")
    return "".join(cells)
