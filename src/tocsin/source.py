"""Where a piece of a query was written: in a text, or in a line of Python.

Everything that can be wrong carries a `Place`, so that an error can show it. This module knows nothing of
languages; it is the lowest layer together with `errors`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

# Characters of a line that an error quotes.
LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class Source:
    """A query text and the name it is quoted by."""

    text: str
    name: str = "<pattern>"

    def line_and_column(self, offset: int) -> tuple[int, int]:
        r"""Line and column of an offset, both counted from 1.

        >>> Source("PATTERN A a\nWHERE a.x > 1").line_and_column(18)
        (2, 7)
        """
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        """The text of one line, counted from 1."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a source text, end exclusive."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line the range starts in, counted from 1."""
        return self.source.line_and_column(self.start)[0]

    @property
    def column(self) -> int:
        """The column the range starts at, counted from 1."""
        return self.source.line_and_column(self.start)[1]

    def describe(self) -> str:
        """`name:line:column`."""
        return f"{self.source.name}:{self.line}:{self.column}"

    def excerpt(self) -> list[str]:
        r"""The line of the place, and carets under the range.

        >>> print(*Place(Source("WHERE b.acount = 1"), 8, 14).excerpt(), sep="\n")
        1 | WHERE b.acount = 1
                    ^^^^^^
        """
        line, column = self.source.line_and_column(self.start)
        text = self.source.line(line).replace("\t", " ")
        margin = f"{line} | "
        if len(text) > LONGEST_LINE:
            # Only what stands around the place.
            first = max(0, min(column - 1 - LONGEST_LINE // 3, len(text) - LONGEST_LINE))
            before, behind = "…" * (first > 0), "…" * (first + LONGEST_LINE < len(text))
            text = before + text[first : first + LONGEST_LINE] + behind
            column -= first - len(before)
        width = max(1, min(self.end - self.start, len(text) - column + 1))
        return [margin + text, " " * (len(margin) + column - 1) + "^" * width]


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of the user's Python program, for queries made with the builder."""

    file: str
    line: int

    def describe(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"

    def excerpt(self) -> list[str]:
        """Nothing to quote: the user's editor has the line."""
        return []


Where = Place | CallSite | None


@dataclass(frozen=True)
class Written:
    """A node of a tree, with the place it was written. Trees are equal wherever they were written."""

    where: Where = field(default=None, compare=False, repr=False, kw_only=True)


def caller() -> CallSite | None:
    """The nearest line outside this package: what a builder call's errors point at."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("tocsin."):
            return CallSite(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
