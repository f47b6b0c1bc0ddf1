"""Aggregates of a bag as statements of generated code (R18): NULLs are left out, an empty bag has the fold's identity.

A sum of integers beyond 64 bits stops the query (D24), whatever the partial sums were: they are kept modulo 2**64 with
a count of the carries. A sum of doubles is compensated after Neumaier.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.kernels.expressions.leaves import Fold
from tocsin.kernels.model import Held

INDENT = "    "
ZERO = {Held.INTEGER: "0", Held.RANK: "0", Held.FLOAT: "0.0", Held.BOOLEAN: "False"}
CAST = {Held.INTEGER: "int", Held.RANK: "int", Held.FLOAT: "float", Held.BOOLEAN: "bool"}


def fold_statements(fold: Fold, out: str, element: Callable[[str], tuple[str, str | None]], count: str) -> list[str]:
    """Statements that leave an aggregate in the variables `{out}` and `{out}_null`; their other names start so too.

    `element` returns the text of the slot's number for the event at a place of the bag, from 0 in order of time, and of
    whether it is NULL (None: never). `count` is the text of the number of events.
    """
    if fold.slot is None:
        return [f"{out} = {count}", f"{out}_null = False"]
    writer = _FoldWriter(fold.slot.held, out, element, count)
    match fold.function:
        case "count":
            return writer.count_known()
        case "sum":
            return writer.sum()
        case "avg":
            return writer.mean()
        case "stddev":
            return writer.deviation()
        case "min" | "max":
            return writer.extreme(fold.function, out)
        case "range":
            return writer.range()
        case "first" | "last":
            return writer.edge(fold.function)
        case _:
            raise ValueError(fold.function)


class _FoldWriter:
    def __init__(self, held: Held, out: str, element: Callable[[str], tuple[str, str | None]], count: str) -> None:
        self.held, self.out, self.element, self.count = held, out, element, count

    def _each(self, *body: str, index: str = "k") -> list[str]:
        """A loop over the elements that are not NULL, as `{out}_x`."""
        place = f"{self.out}_{index}"
        text, null = self.element(place)
        inside = [f"{self.out}_x = {CAST[self.held]}({text})", *body]
        if null is not None:
            inside = [f"if not {null}:", *_indented(inside)]
        return [f"for {place} in range({self.count}):", *_indented(inside)]

    def count_known(self) -> list[str]:
        out = self.out
        _, null = self.element(f"{out}_k")
        if null is None:
            return [f"{out} = {self.count}", f"{out}_null = False"]
        return [
            f"{out} = 0",
            f"for {out}_k in range({self.count}):",
            f"{INDENT}if not {null}:",
            f"{INDENT}{INDENT}{out} += 1",
            f"{out}_null = False",
        ]

    def sum(self) -> list[str]:
        out = self.out
        if self.held is Held.FLOAT:
            return [*self._double_total(), f"{out} = {out}_total", f"{out}_null = False"]
        return [*self._integer_total(), f"{out} = whole_sum({out}_total, {out}_carry, False)", f"{out}_null = False"]

    def mean(self) -> list[str]:
        out = self.out
        return [
            *self._total_as_double(),
            f"{out} = {out}_total / {out}_n if {out}_n > 0 else 0.0",
            f"{out}_null = {out}_n == 0",
        ]

    def deviation(self) -> list[str]:
        """Of the population, in a second pass over the differences from the mean."""
        out = self.out
        return [
            *self._total_as_double(),
            f"{out}_mean = {out}_total / {out}_n if {out}_n > 0 else 0.0",
            f"{out}_squares = 0.0",
            f"{out}_lost = 0.0",
            *self._each(
                f"{out}_square = (float({out}_x) - {out}_mean) * (float({out}_x) - {out}_mean)",
                f"{out}_lost += compensation({out}_squares, {out}_square)",
                f"{out}_squares += {out}_square",
            ),
            f"{out} = square_root(({out}_squares + {out}_lost) / {out}_n) if {out}_n > 0 else 0.0",
            f"{out}_null = {out}_n == 0",
        ]

    def extreme(self, function: str, out: str) -> list[str]:
        choose = "smaller" if function == "min" else "larger"
        return [
            f"{out} = {ZERO[self.held]}",
            f"{out}_null = True",
            *self._each(f"{out} = {choose}({out}, {out}_null, {self.out}_x, False)", f"{out}_null = False"),
        ]

    def range(self) -> list[str]:
        out = self.out
        whole = f"whole_range({out}_high, {out}_low, {out}_none)"
        return [
            f"{out}_low = {ZERO[self.held]}",
            f"{out}_high = {ZERO[self.held]}",
            f"{out}_none = True",
            *self._each(
                f"{out}_low = smaller({out}_low, {out}_none, {out}_x, False)",
                f"{out}_high = larger({out}_high, {out}_none, {out}_x, False)",
                f"{out}_none = False",
            ),
            f"{out} = {f'{out}_high - {out}_low' if self.held is Held.FLOAT else whole}",
            f"{out}_null = {out}_none",
        ]

    def edge(self, function: str) -> list[str]:
        """The value of the first or last event, NULL or not (R18)."""
        out = self.out
        text, null = self.element(f"{out}_k")
        return [
            f"{out} = {ZERO[self.held]}",
            f"{out}_null = True",
            f"if {self.count} > 0:",
            f"{INDENT}{out}_k = {'0' if function == 'first' else f'{self.count} - 1'}",
            f"{INDENT}{out} = {CAST[self.held]}({text})",
            f"{INDENT}{out}_null = {'False' if null is None else f'bool({null})'}",
        ]

    def _total_as_double(self) -> list[str]:
        """`{out}_total` as a double and `{out}_n`, the number of values."""
        out = self.out
        if self.held is Held.FLOAT:
            return self._double_total()
        total = f"{out}_total = float({out}_whole) + {out}_carry * {2.0**64!r}"
        return [line.replace(f"{out}_total", f"{out}_whole") for line in self._integer_total()] + [total]

    def _integer_total(self) -> list[str]:
        out = self.out
        return [
            f"{out}_total = 0",
            f"{out}_carry = 0",
            f"{out}_n = 0",
            *self._each(
                f"{out}_carry += carry({out}_total, {out}_x)",
                f"{out}_total = wrapped_sum({out}_total, {out}_x)",
                f"{out}_n += 1",
            ),
        ]

    def _double_total(self) -> list[str]:
        out = self.out
        return [
            f"{out}_total = 0.0",
            f"{out}_lost = 0.0",
            f"{out}_n = 0",
            *self._each(
                f"{out}_lost += compensation({out}_total, {out}_x)",
                f"{out}_total += {out}_x",
                f"{out}_n += 1",
            ),
            f"{out}_total += {out}_lost",
        ]


def _indented(lines: list[str]) -> list[str]:
    return [f"{INDENT}{line}" for line in lines]
