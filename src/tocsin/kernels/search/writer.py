"""Indented lines of generated code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines; blocks indent."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str) -> None:
        """One line at the current depth."""
        self.lines.append(f"{'    ' * self.depth}{text}")

    def all(self, texts: Iterable[str]) -> None:
        """Several lines at the current depth; their own indentation is kept."""
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A header, and what is written inside one step deeper; `pass` when nothing is."""
        self.line(header)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    @contextmanager
    def condition(self, *tests: str) -> Iterator[None]:
        """An `if` over all tests, or nothing when there is none."""
        if not tests:
            yield
            return
        with self.block(f"if {' and '.join(tests)}:"):
            yield

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"
