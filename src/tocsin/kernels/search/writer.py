"""Indented lines of generated code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines; blocks indent."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, *texts: str) -> None:
        """Lines at the current depth; their own indentation is kept."""
        self.lines += [f"{'    ' * self.depth}{text}" for text in texts]

    def when(self, test: str, *texts: str) -> None:
        """Lines under an `if`."""
        with self.block(f"if {test}:"):
            self.line(*texts)

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
