"""Where a piece of a query was written, in a text or in a line of Python, and the base of all trees.

Everything that can be wrong carries a `Place`, so that an error can show it. This module knows nothing of
languages; it is the lowest layer together with `errors`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

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


N = TypeVar("N", bound="Tree[Any]")


@dataclass(frozen=True)
class Tree(Written, Generic[N]):
    """A node whose operands are the nodes of its own kind in its fields, and in tuples there.

    The class that derives from this one is the kind: conditions are no operands of a pattern.
    """

    _kind: ClassVar[type[Any]]

    def __init_subclass__(cls) -> None:
        """Make each class that derives directly the kind of all below it."""
        if Tree in cls.__bases__:
            cls._kind = cls

    def children(self) -> tuple[N, ...]:
        """The operands, from left to right."""
        return tuple(trees_in(self, self._kind))

    def walk(self) -> Iterator[N]:
        """The node itself and all below it, parents first."""
        waiting = [cast("N", self)]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children())

    def map_children(self, change: Callable[[N], N]) -> Self:
        """The node with `change` applied to each operand; itself if none changes."""
        return map_trees(self, self._kind, change)

    def transform(self, change: Callable[[N], N]) -> N:
        """The tree with `change` applied to every node, children first."""
        return change(cast("N", self.map_children(lambda child: child.transform(change))))


T = TypeVar("T", bound=Tree[Any])
_SLOTS: dict[type, tuple[str, ...]] = {}  # the fields that may hold parts


def _slots(kind: type[Tree[Any]]) -> tuple[str, ...]:
    if kind not in _SLOTS:
        _SLOTS[kind] = tuple(slot.name for slot in fields(kind) if slot.name != "where")
    return _SLOTS[kind]


def trees_in(node: Tree[Any], kind: type[N]) -> Iterator[N]:
    """The trees of a kind in the fields of a node, and in tuples there."""
    for slot in _slots(type(node)):
        yield from _found(getattr(node, slot), kind)


def map_trees(node: T, kind: type[N], change: Callable[[N], N]) -> T:
    """A node with `change` applied to those trees; itself if none changes."""
    old = {slot: getattr(node, slot) for slot in _slots(type(node))}
    new = {slot: _mapped(value, kind, change) for slot, value in old.items()}
    changed = {slot: value for slot, value in new.items() if value is not old[slot]}
    return replace(node, **changed) if changed else node


def _found(value: Any, kind: type[N]) -> Iterator[N]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _found(item, kind)


def _mapped(value: Any, kind: type[N], change: Callable[[N], N]) -> Any:
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple):
        items = tuple(_mapped(item, kind, change) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


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
