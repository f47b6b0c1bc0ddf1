"""Aggregates as numbers in generated code: the parts of a monoid, registers that hold it, folds of a bag (R18).

A sum of integers beyond 64 bits stops the query (D24), whatever the partial sums were: they are kept modulo 2**64 with
a count of the carries. A sum of doubles is compensated after Neumaier. `stddev` needs all values: in a register it is
a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from tocsin.analysis.types import Kind
from tocsin.kernels.expressions.leaves import Fold, NotNumbers, Value, any_of
from tocsin.kernels.model import Held

INDENT = "    "
INTEGER, DOUBLE, BOOLEAN = "int", "float", "bool"
OBJECT, KEY = "object", "key"  # any Python value, and what such a value is compared by
ZEROS = {INTEGER: "0", DOUBLE: "0.0", BOOLEAN: "False"}
KINDS = {Held.FLOAT: Kind.DOUBLE, Held.BOOLEAN: Kind.BOOLEAN}  # all others are integers
Parts = Mapping[str, str]  # a text for each part


def storage(kind: Kind) -> str:
    """How a value of a kind is held."""
    return {Kind.DOUBLE: DOUBLE, Kind.BOOLEAN: BOOLEAN}.get(kind, INTEGER)


@dataclass(frozen=True)
class Element:
    """A monoid over values of one kind.

    `add` returns the parts with one more value, a name in the code, and whether it is NULL; each part depends on itself
    and on later parts alone. `result` returns the value that parts stand for, given the text of whether it is NULL for
    another reason.
    """

    parts: Mapping[str, str]  # and how each is held
    add: Callable[[Parts, str, str], Parts]
    result: Callable[[Parts, str], Value]

    @property
    def zero(self) -> Parts:
        """The parts of the identity."""
        return {name: "True" if name == "none" else ZEROS[held] for name, held in self.parts.items()}


def element(function: str, kind: Kind) -> Element:
    """A built-in aggregate over values that are not NULL; raises `NotNumbers` where a few numbers do not hold it."""
    held, is_double = storage(kind), kind is Kind.DOUBLE
    if function in ("sum", "avg", "range") and kind not in (Kind.INTEGER, Kind.DOUBLE):
        raise NotNumbers
    match function:
        case "count":
            return Element(
                {"n": INTEGER},
                lambda old, value, null: {"n": f"{old['n']} + 1"},
                lambda old, bad: Value(old["n"], "False", Kind.INTEGER),
            )
        case "sum" | "avg":
            total = _double_sum() if is_double else _integer_sum()
            return total if function == "sum" else _mean(total, is_double)
        case "min" | "max":
            choose = "smaller" if function == "min" else "larger"
            return Element(
                {"value": held, "none": BOOLEAN},
                lambda old, value, null: {
                    "value": f"{choose}({old['value']}, {old['none']}, {value}, False)",
                    "none": "False",
                },
                lambda old, bad: Value(old["value"], any_of(bad, old["none"]), kind),
            )
        case "range":
            return Element(
                {"low": held, "high": held, "none": BOOLEAN},
                lambda old, value, null: {
                    "low": f"smaller({old['low']}, {old['none']}, {value}, False)",
                    "high": f"larger({old['high']}, {old['none']}, {value}, False)",
                    "none": "False",
                },
                lambda old, bad: _difference(old, any_of(bad, old["none"]), kind),
            )
        case _:
            raise NotNumbers


def _double_sum() -> Element:
    return Element(
        {"lost": DOUBLE, "total": DOUBLE},
        lambda old, value, null: {
            "lost": f"{old['lost']} + compensation({old['total']}, {value})",
            "total": f"{old['total']} + {value}",
        },
        lambda old, bad: Value(f"({old['total']} + {old['lost']})", bad, Kind.DOUBLE),
    )


def _integer_sum() -> Element:
    return Element(
        {"carry": INTEGER, "total": INTEGER},
        lambda old, value, null: {
            "carry": f"{old['carry']} + carry({old['total']}, {value})",
            "total": f"wrapped_sum({old['total']}, {value})",
        },
        lambda old, bad: Value(f"whole_sum({old['total']}, {old['carry']}, {bad})", bad, Kind.INTEGER),
    )


def _mean(total: Element, is_double: bool) -> Element:
    def result(old: Parts, bad: str) -> Value:
        whole = f"(float({old['total']}) + {old.get('carry')} * {2.0**64!r})"
        whole = total.result(old, bad).text if is_double else whole
        return Value(f"divide({whole}, float({old['n']}))", any_of(bad, f"{old['n']} == 0"), Kind.DOUBLE)

    return Element(
        {**total.parts, "n": INTEGER},
        lambda old, value, null: {**total.add(old, value, null), "n": f"{old['n']} + 1"},
        result,
    )


def _difference(old: Parts, null: str, kind: Kind) -> Value:
    is_double = kind is Kind.DOUBLE
    difference = f"({old['high']} - {old['low']})"
    return Value(difference if is_double else f"whole_range({old['high']}, {old['low']}, {null})", null, kind)


# --- folds of bags --------------------------------------------------------------------------------


def fold_statements(fold: Fold, out: str, value: Callable[[str], tuple[str, str | None]], count: str) -> list[str]:
    """Statements that leave an aggregate in the variables `{out}` and `{out}_null`; their other names start so too.

    `value` returns the text of the slot's number for the event at a place of the bag, from 0 in order of time, and of
    whether it is NULL (None: never). `count` is the text of the number of events. NULLs are left out, but for the first
    and the last event; an empty bag has the identity of the fold.
    """
    text, null = ("", None) if fold.slot is None else value(f"{out}_k")
    if fold.slot is None or (fold.function == "count" and null is None):
        return [f"{out} = {count}", f"{out}_null = False"]
    kind = KINDS.get(fold.slot.held, Kind.INTEGER)
    if fold.function in ("first", "last"):
        return [
            f"{out} = {ZEROS[storage(kind)]}",
            f"{out}_null = True",
            f"if {count} > 0:",
            f"{INDENT}{out}_k = {'0' if fold.function == 'first' else f'{count} - 1'}",
            f"{INDENT}{out} = {storage(kind)}({text})",
            f"{INDENT}{out}_null = {'False' if null is None else f'bool({null})'}",
        ]

    def each(*body: str) -> list[str]:
        """A loop over the elements that are not NULL, as `{out}_x`."""
        inside = [f"{out}_x = {storage(kind)}({text})", *body]
        if null is not None:
            inside = [f"if not {null}:", *_indented(inside)]
        return [f"for {out}_k in range({count}):", *_indented(inside)]

    def folded(what: Element, prefix: str, one: str, *before: str) -> tuple[list[str], Value]:
        parts = {name: f"{prefix}_{name}" for name in what.parts}
        begin = [f"{parts[name]} = {zero}" for name, zero in what.zero.items()]
        changes = [f"{parts[name]} = {new}" for name, new in what.add(parts, one, "False").items()]
        return [*begin, *each(*before, *changes)], what.result(parts, "False")

    if fold.function != "stddev":
        lines, found = folded(element(fold.function, kind), out, f"{out}_x")
        return [*lines, f"{out} = {found.text}", f"{out}_null = {found.null}"]
    # Of the population, in a second pass over the differences from the mean.
    lines, mean = folded(element("avg", kind), out, f"{out}_x")
    distance = f"(float({out}_x) - {out}_mean)"
    square = f"{out}_square = {distance} * {distance}"
    more, squares = folded(element("sum", Kind.DOUBLE), f"{out}_squares", f"{out}_square", square)
    return [
        *lines,
        f"{out}_mean = {mean.text}",
        *more,
        f"{out} = square_root({squares.text} / {out}_n) if {out}_n > 0 else 0.0",
        f"{out}_null = {out}_n == 0",
    ]


def _indented(lines: list[str]) -> list[str]:
    return [f"{INDENT}{line}" for line in lines]


@cache
def nullable_element(monoid: str, kind: Kind) -> Element:
    """A built-in aggregate over values that may be NULL, which spoils all but `count`, `first` and `last`."""
    if kind is Kind.NULL:
        return nullable_element(monoid, Kind.INTEGER)
    if monoid in ("first", "last"):
        return _edge(kind, is_first=monoid == "first")
    known = element(monoid, kind)
    if monoid == "count":
        return known
    return Element(
        {**known.parts, "bad": BOOLEAN},
        lambda old, value, null: {**known.add(old, value, null), "bad": f"{old['bad']} or {null}"},
        lambda old, bad: known.result(old, old["bad"]),
    )


def _edge(kind: Kind, *, is_first: bool) -> Element:
    def add(old: Parts, value: str, null: str) -> Parts:
        if not is_first:
            return {"value": value, "null": null, "none": "False"}
        return {
            "value": f"{value} if {old['none']} else {old['value']}",
            "null": f"{null} if {old['none']} else {old['null']}",
            "none": "False",
        }

    return Element(
        {"value": storage(kind), "null": BOOLEAN, "none": BOOLEAN},
        add,
        lambda old, bad: Value(old["value"], any_of(old["none"], old["null"]), kind),
    )
