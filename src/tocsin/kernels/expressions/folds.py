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
    """A monoid over values of one kind; its texts name a part as `{part}`.

    `steps` has how each part is held, and its text after one more value `{x}` that `{is_null}` or not; it depends on
    itself and on later parts alone. `value` is the text of the result, which is NULL where one of `nulls` holds.
    """

    steps: Mapping[str, tuple[str, str]]
    value: str
    kind: Kind
    nulls: tuple[str, ...] = ()

    @property
    def parts(self) -> Parts:
        """How each part is held."""
        return {name: held for name, (held, _) in self.steps.items()}

    @property
    def zero(self) -> Parts:
        """The parts of the identity."""
        return {name: "True" if name == "none" else ZEROS[held] for name, held in self.parts.items()}

    def add(self, old: Parts, x: str, is_null: str) -> Parts:
        """The parts with one more value, which is a name in the code."""
        return {name: text.format(x=x, is_null=is_null, **old) for name, (_, text) in self.steps.items()}

    def result(self, old: Parts) -> Value:
        """The value that parts stand for."""
        null = any_of(*(text.format(**old) for text in self.nulls))
        return Value(self.value.format(**old), null, self.kind)


@cache
def element(function: str, kind: Kind, *, with_nulls: bool = False) -> Element:
    """A built-in aggregate; raises `NotNumbers` where a few numbers do not hold it.

    A NULL among the values spoils all but `count`, `first` and `last`; only `with_nulls` there may be one.
    """
    if kind is Kind.NULL:
        return element(function, Kind.INTEGER, with_nulls=with_nulls)
    held, is_double = storage(kind), kind is Kind.DOUBLE
    if function in ("sum", "avg", "range") and kind not in (Kind.INTEGER, Kind.DOUBLE):
        raise NotNumbers
    spoiled = {"bad": (BOOLEAN, "{bad} or {is_null}")} if with_nulls else {}
    bad = "{bad}" if with_nulls else "False"
    none = {"none": (BOOLEAN, "False")}
    lost = {"lost": (DOUBLE, "{lost} + compensation({total}, {x})"), "total": (DOUBLE, "{total} + {x}")}
    carried = {"carry": (INTEGER, "{carry} + carry({total}, {x})"), "total": (INTEGER, "wrapped_sum({total}, {x})")}
    number = {"n": (INTEGER, "{n} + 1")}
    low = {"low": (held, "smaller({low}, {none}, {x}, False)")}
    high = {"high": (held, "larger({high}, {none}, {x}, False)")}
    match function:
        case "count":
            return Element(number, "{n}", Kind.INTEGER)
        case "sum" if is_double:
            return Element(lost | spoiled, "({total} + {lost})", kind, (bad,))
        case "sum":
            return Element(carried | spoiled, f"whole_sum({{total}}, {{carry}}, {bad})", kind, (bad,))
        case "avg" if is_double:
            return Element(lost | number | spoiled, "divide(({total} + {lost}), float({n}))", kind, (bad, "{n} == 0"))
        case "avg":
            mean = f"divide((float({{total}}) + {{carry}} * {2.0**64!r}), float({{n}}))"
            return Element(carried | number | spoiled, mean, Kind.DOUBLE, (bad, "{n} == 0"))
        case "min":
            return Element(low | none | spoiled, "{low}", kind, (bad, "{none}"))
        case "max":
            return Element(high | none | spoiled, "{high}", kind, (bad, "{none}"))
        case "range":
            nulls = (bad, "{none}")
            whole = f"whole_range({{high}}, {{low}}, {any_of(*nulls)})"
            return Element(low | high | none | spoiled, "({high} - {low})" if is_double else whole, kind, nulls)
        case "first" | "last" if with_nulls:
            value, null = "{x}", "{is_null}"
            if function == "first":
                value, null = "{x} if {none} else {value}", "{is_null} if {none} else {null}"
            edge = {"value": (held, value), "null": (BOOLEAN, null), **none}
            return Element(edge, "{value}", kind, ("{none}", "{null}"))
        case _:
            raise NotNumbers


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
        return [*begin, *each(*before, *changes)], what.result(parts)

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
