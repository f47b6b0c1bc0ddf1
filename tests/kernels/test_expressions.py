"""Conditions written for kernels hold exactly when the reference says so."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.expression_strategies import (
    BAGS,
    CONJUNCTS,
    DOUBLES,
    ENVIRONMENT,
    HALVES,
    INTEGERS,
    OBJECT_CONJUNCTS,
    Bags,
    as_events,
    seen,
)

from tocsin import errors
from tocsin.analysis.types import Kind
from tocsin.expressions import interpret, numeric
from tocsin.kernels.expressions.code import true_code
from tocsin.kernels.expressions.folds import fold_statements
from tocsin.kernels.expressions.leaves import Fold, SlotRef, Test
from tocsin.kernels.expressions.slots import Families, prepare, slot_values
from tocsin.kernels.model import Held, Slot
from tocsin.language import expressions as ex
from tocsin.language.sase.parser import parse_expression
from tocsin.reference import conditions as reference
from tocsin.reference.aggregates import fold as reference_fold
from tocsin.reference.values import arithmetic, call, compare

LEAST, GREATEST = -(2**63), 2**63 - 1


def prepared(text: str) -> Test | None:
    return prepare(parse_expression(text), ENVIRONMENT, Families())


# --- what is taken apart --------------------------------------------------------------------------


def test_the_largest_part_that_speaks_of_one_event_is_a_slot() -> None:
    test = prepared("b[i].x * b[i].x > abs(a.x)")
    assert test is not None
    assert [(slot.variable, slot.expression) for slot in test.slots] == [
        ("b", parse_expression("b.x * b.x")),
        ("a", parse_expression("abs(a.x)")),
    ]
    assert [reference.index for reference in test.references] == [ex.Running("i"), ex.Each.PLAIN]


def test_a_number_with_constants_travels_bare_so_that_other_conditions_share_it() -> None:
    test = prepared("b[i].x * 2 > a.x + 1 AND b[i].x < a.x")
    assert test is not None
    assert [slot.expression for slot in test.slots] == [parse_expression("b.x"), parse_expression("a.x")]


def test_a_condition_on_one_event_is_a_slot_as_a_whole() -> None:
    test = prepared("lower(a.k) LIKE 'p%' OR a.s.z > 3")
    assert test is not None
    assert [slot.held for slot in test.slots] == [Held.BOOLEAN]
    assert isinstance(test.tree, SlotRef)


def test_references_to_neighbours_share_a_slot() -> None:
    test = prepared("b[i].x > b[i-1].x AND NEXT(b).x > b.x")
    assert test is not None
    assert len(test.slots) == 1
    assert [each.index for each in test.references] == [ex.Running("i"), ex.Running("i", -1), ex.Each.NEXT]


def test_strings_that_meet_are_one_family_also_by_way_of_others() -> None:
    families = Families()
    tests = [
        prepare(parse_expression(text), ENVIRONMENT, families)
        for text in ("a.k = b.k", "c.k < d.k", "a.d = c.d", "lower(b.k) != c.k", "b.k = c.k")
    ]
    found = [{families.of(slot) for slot in test.slots} for test in tests if test is not None]
    assert len(found) == 5
    assert all(len(numbers) == 1 for numbers in found)
    assert found[0] == found[1] == found[3] == found[4] != found[2]


def test_families_stay_apart_when_a_condition_is_refused() -> None:
    families = Families()
    assert prepare(parse_expression("a.k = b.k AND a.k || b.k = c.k"), ENVIRONMENT, families) is None
    first = prepare(parse_expression("a.k = c.k"), ENVIRONMENT, families)
    second = prepare(parse_expression("b.k = d.k"), ENVIRONMENT, families)
    assert first is not None
    assert second is not None
    assert families.of(first.slots[0]) != families.of(second.slots[0])


@pytest.mark.parametrize(
    "text",
    [
        "a.k || b.k = 'pq'",
        "concat(a.k, b.k) LIKE 'p%'",
        "coalesce(a.k, b.k) = 'p'",
        "a.d > b.x",
        "a.d + b.d > b.d",
        "a.x + b.x > 99999999999999999999",
        "round(a.v * b.v, 2) > 1",
        "COUNT(DISTINCT b.x) > a.x",
        "SUM(DISTINCT b.x) > a.x",
        "MIN(b.k) = 'p'",
        "SUM(b.d) > a.x",
        "a.x + 99999999999999999999 > b.x",
    ],
)
def test_what_numbers_cannot_decide_is_refused(text: str) -> None:
    assert prepared(text) is None


def test_only_whether_it_is_null_matters_to_count() -> None:
    test = prepared("COUNT(b.s) > 1 AND COUNT(b) > 1")
    assert test is not None
    assert [slot.held for slot in test.slots] == [Held.BOOLEAN]
    assert [fold.slot is None for fold in test.folds] == [False, True]


# --- what is written ------------------------------------------------------------------------------


def held(slot: Slot, value: Any) -> Any:
    """A value as a kernel holds it; ranks come later."""
    match value:
        case None:
            return None
        case dt.datetime():
            return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - dt.date(1970, 1, 1)) // dt.timedelta(microseconds=1)
        case dt.timedelta():
            return value // dt.timedelta(microseconds=1)
    return float(value) if slot.held is Held.FLOAT else value


class Columns:
    """The slots of a test for all events of a match, as NumPy arrays."""

    def __init__(self, test: Test, bags: reference.Bags, families: Families) -> None:
        self.test, self.bags = test, bags
        values = {
            slot: [
                held(slot, reference.interpret(slot.expression, {slot.variable: (event,)}, {}))
                for event in bags.get(slot.variable, ())
            ]
            for slot in test.slots
        }
        ranked: dict[int, set[Any]] = {}
        for slot, column in values.items():
            if slot.held is Held.RANK:
                ranked.setdefault(families.of(slot), set()).update(value for value in column if value is not None)
        ranks = {family: {value: rank for rank, value in enumerate(sorted(known))} for family, known in ranked.items()}
        self.names: dict[str, Any] = dict(numeric.HELPERS)
        for number, (slot, given_values) in enumerate(values.items()):
            rank = ranks[families.of(slot)] if slot.held is Held.RANK else {}
            column = [rank.get(value, value) for value in given_values]
            dtype = {Held.FLOAT: np.float64, Held.BOOLEAN: np.bool_}.get(slot.held, np.int64)
            self.names[f"c{number}"] = np.array([0 if value is None else value for value in column], dtype=dtype)
            self.names[f"n{number}"] = np.array([value is None for value in column], dtype=np.bool_)

    def texts(self, slot: Slot, place: str) -> tuple[str, str]:
        number = self.test.slots.index(slot)
        return f"c{number}[{place}]", f"n{number}[{place}]"

    def place(self, leaf: SlotRef, choice: reference.Choice) -> int:
        event = reference.chosen(ex.Attribute(leaf.variable, ("x",), leaf.index), self.bags, choice)
        assert event is not None
        return self.bags[leaf.variable].index(event)

    def holds(self) -> bool:
        """The test under every choice of events, by its generated code."""
        names = dict(self.names)
        for number, fold in enumerate(self.test.folds):
            count = str(len(self.bags.get(fold.variable, ())))
            lines = fold_statements(fold, f"f{number}", lambda k, fold=fold: self.texts(fold.slot, k), count)
            exec("\n".join(lines), names)

        references = list(ex.references_in(self.test.conjunct))
        for choice in reference.choices(references, self.bags):
            if any(reference.chosen(each, self.bags, choice) is None for each in references):
                continue

            def texts(leaf: SlotRef | Fold, choice: Any = choice) -> tuple[str, str | None]:
                if isinstance(leaf, SlotRef):
                    return self.texts(leaf.slot, str(self.place(leaf, choice)))
                number = self.test.folds.index(leaf)
                return f"f{number}", f"f{number}_null"

            if not eval(true_code(self.test.tree, texts), names):
                return False
        return True


@settings(max_examples=300, deadline=None)
@given(CONJUNCTS, BAGS)
def test_generated_code_holds_exactly_when_the_conjunct_does(conjunct: ex.Expression, rows: Bags) -> None:
    bags = as_events(rows)
    families = Families()
    test = prepare(conjunct, ENVIRONMENT, families)
    if test is not None:
        assert Columns(test, bags, families).holds() == reference.holds(conjunct, bags)


@settings(max_examples=300, deadline=None)
@given(CONJUNCTS)
def test_a_prepared_conjunct_names_every_event_it_speaks_of(conjunct: ex.Expression) -> None:
    test = prepare(conjunct, ENVIRONMENT, Families())
    if test is not None:
        assert {each.variable for each in ex.references_in(conjunct)} == {each.variable for each in test.references}
        assert {each.variable for each in test.references} | {each.variable for each in test.folds} == ex.variables_in(
            conjunct
        )


def test_most_generated_conjuncts_are_decided_by_numbers() -> None:
    # Were most refused, the property above would say little.
    kept = []

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(CONJUNCTS)
    def count(conjunct: ex.Expression) -> None:
        kept.append(prepare(conjunct, ENVIRONMENT, Families()) is not None)

    count()
    assert sum(kept) > len(kept) / 2


# --- folds ----------------------------------------------------------------------------------------


def folded(function: str, held_as: Held, values: list[Any]) -> Any:
    kind = {Held.INTEGER: Kind.INTEGER, Held.FLOAT: Kind.DOUBLE, Held.BOOLEAN: Kind.BOOLEAN}[held_as]
    slot = Slot("b", ex.Attribute("b", ("x",)), held_as)
    lines = fold_statements(Fold(function, slot, "b", kind), "out", lambda k: (f"c[{k}]", f"n[{k}]"), "count")
    dtype = {Held.INTEGER: np.int64, Held.FLOAT: np.float64, Held.BOOLEAN: np.bool_}[held_as]
    names: dict[str, Any] = {
        **numeric.HELPERS,
        "c": np.array([0 if value is None else value for value in values], dtype=dtype),
        "n": np.array([value is None for value in values], dtype=np.bool_),
        "count": len(values),
    }
    try:
        exec("\n".join(lines), names)
    except OverflowError:
        return "NUMBER_TOO_LARGE"
    return None if names["out_null"] else names["out"]


def by_reference(function: str, values: list[Any]) -> Any:
    try:
        return reference_fold(function, values)
    except errors.NumberTooLargeError as problem:
        return problem.condition


FOLDS = ["count", "sum", "min", "max", "avg", "range", "first", "last"]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*FOLDS, "stddev"]), st.lists(st.none() | INTEGERS, max_size=5))
def test_folds_of_integers(function: str, values: list[int | None]) -> None:
    expected = by_reference(function, values)
    if function in ("avg", "stddev") and expected is not None:
        assert folded(function, Held.INTEGER, values) == pytest.approx(expected, rel=1e-14)
    else:
        assert folded(function, Held.INTEGER, values) == expected


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FOLDS), st.lists(st.none() | DOUBLES, max_size=5))
def test_folds_of_doubles(function: str, values: list[float | None]) -> None:
    assert seen(folded(function, Held.FLOAT, values)) == seen(reference_fold(function, values))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_sums_of_doubles_lose_nothing_to_their_order(values: list[float]) -> None:
    # Neumaier's bound: one rounding of the exact sum, and the squared unit of the sum of sizes.
    exact, size = math.fsum(values), math.fsum(map(abs, values))
    error = abs(folded("sum", Held.FLOAT, values) - exact)
    assert error <= math.ulp(exact) + len(values) ** 2 * 2.0**-104 * size
    assert folded("stddev", Held.FLOAT, values) == pytest.approx(reference_fold("stddev", values), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("function", ["count", "min", "max", "first", "last"])
def test_folds_of_booleans(function: str) -> None:
    for values in ([], [None], [True], [False, None, True], [True, False]):
        assert folded(function, Held.BOOLEAN, values) == reference_fold(function, values)


# --- arithmetic -----------------------------------------------------------------------------------


@settings(max_examples=500, deadline=None)
@given(INTEGERS, INTEGERS)
def test_overflow_is_seen_before_it_happens(a: int, b: int) -> None:
    one, other = np.int64(a), np.int64(b)
    assert numeric.add_overflows(one, other) == (arithmetic("+", a, b) is None)
    assert numeric.subtract_overflows(one, other) == (arithmetic("-", a, b) is None)
    assert numeric.multiply_overflows(one, other) == (arithmetic("*", a, b) is None)
    assert numeric.carry(one, other) * 2**64 + int(numeric.wrapped_sum(one, other)) == a + b
    if b != 0:
        assert numeric.remainder_integers(one, other) == arithmetic("%", a, b)
    for digits in (1, 2, 17, 18):
        expected = call("round", [a, -digits])
        assert numeric.round_overflows(one, 10**digits) == (expected is None)
        assert expected in (None, numeric.round_integer(one, 10**digits))


@settings(max_examples=500, deadline=None)
@given(DOUBLES, DOUBLES)
def test_doubles_compute_and_compare_as_in_the_reference(a: float, b: float) -> None:
    assert numeric.equal_doubles(a, b) == compare("=", a, b)
    assert numeric.less_double(a, b) == compare("<", a, b)
    assert numeric.at_most_double(a, b) == compare("<=", a, b)
    assert seen(numeric.larger(a, False, b, False)) == seen(call("greatest", [a, b]))
    assert seen(numeric.smaller(a, False, b, False)) == seen(call("least", [a, b]))
    assert seen(numeric.power(a, b)) == seen(call("power", [a, b]))
    assert seen(numeric.square_root(a)) == seen(call("sqrt", [a]))
    assert seen(numeric.sign(a)) == seen(call("sign", [a]))
    assert numeric.fits_integer(a) == (call("floor", [a]) is not None)
    if numeric.fits_integer(a):
        assert numeric.floor_integer(a) == call("floor", [a])
        assert numeric.ceil_integer(a) == call("ceil", [a])
        assert numeric.nearest_integer(a) == round(a)
    if b != 0:
        assert seen(numeric.divide(a, b)) == seen(arithmetic("/", a, b))
        assert seen(numeric.remainder_doubles(a, b)) == seen(arithmetic("%", a, b))


# --- compiled -------------------------------------------------------------------------------------

SAMPLE = [
    "a.x * b.x + 1 > c.x - a.x",
    "a.x % b.x = -b.x OR abs(a.x - c.x) > 5",
    "a.v / b.v >= c.v % a.v",
    "a.v > b.v AND NOT (a.v = c.v)",
    "CASE WHEN a.x > b.x THEN a.v ELSE b.v * c.x END < power(a.v, c.v)",
    "coalesce(a.x, b.x, 3) IN (1, c.x, NULL)",
    "greatest(a.v, b.v, c.v) BETWEEN least(a.v, c.v) AND sqrt(b.v * b.v)",
    "a.f = b.f OR (a.f AND NOT c.f) IS NULL",
    "floor(a.v * b.v) + ceil(c.v - a.v) > round(a.x - c.x, -2)",
    "(b.t - a.t) / 3 > 1 SECOND OR (b.t - a.t) * c.v < 2 SECONDS",
    "a.k < b.k AND nullif(a.k, c.k) IS NOT NULL",
    "sign(a.v - b.v) != -sign(c.x - a.x) OR mod(a.x, c.x) = 1",
]


def as_source(function: str, texts: list[str], slots: int) -> str:
    """A function of one event per variable that gives all tests as bits."""
    parameters = ", ".join(f"c{number}, n{number}" for number in range(slots))
    lines = [f"    if {text}:\n        found |= {1 << place}" for place, text in enumerate(texts)]
    return "\n".join([f"def {function}({parameters}):", "    found = 0", *lines, "    return found"])


@pytest.mark.compiled
def test_numba_gives_what_python_gives() -> None:
    numba = pytest.importorskip("numba")
    families = Families()
    prepared_tests = [prepare(parse_expression(text), ENVIRONMENT, families) for text in SAMPLE]
    tests = [test for test in prepared_tests if test is not None]
    assert len(tests) == len(SAMPLE)
    slots = list(dict.fromkeys(slot for test in tests for slot in test.slots))

    def texts(leaf: SlotRef | Fold) -> tuple[str, str]:
        assert isinstance(leaf, SlotRef)
        return f"c{slots.index(leaf.slot)}", f"n{slots.index(leaf.slot)}"

    written = [true_code(test.tree, texts) for test in tests]
    names: dict[str, Any] = dict(numeric.HELPERS)
    exec(as_source("plain", written, len(slots)), names)
    compiled_names: dict[str, Any] = {name: numba.njit(helper) for name, helper in numeric.HELPERS.items()}
    exec(as_source("fast", written, len(slots)), compiled_names)
    fast = numba.njit(compiled_names["fast"])
    choose = np.random.default_rng(7)
    pools = {
        Held.INTEGER: np.array([0, 1, 2, 3, -1, 2**62, LEAST, GREATEST, 5_000_000], dtype=np.int64),
        Held.FLOAT: np.array([0.0, -0.0, 1.5, -2.5, 1e308, -1e308, 2.0**63, math.nan, math.inf, -math.inf]),
        Held.BOOLEAN: np.array([True, False]),
        Held.RANK: np.arange(3),
    }
    seen_bits = 0
    for _ in range(1500):
        arguments: list[Any] = []
        for slot in slots:
            arguments += [choose.choice(pools[slot.held]), bool(choose.random() < 0.15)]
        found = names["plain"](*arguments)
        assert fast(*arguments) == found, arguments
        seen_bits |= found
    assert seen_bits == 2 ** len(tests) - 1


@pytest.mark.compiled
def test_numba_folds_as_python_does() -> None:
    numba = pytest.importorskip("numba")
    cases = [(function, held_as) for function in [*FOLDS, "stddev"] for held_as in (Held.INTEGER, Held.FLOAT)]
    lines = ["def folds(c0, n0, c1, n1, count, values, nulls):"]
    for place, (function, held_as) in enumerate(cases):
        column = 0 if held_as is Held.INTEGER else 1
        kind = Kind.INTEGER if held_as is Held.INTEGER else Kind.DOUBLE
        fold = Fold(function, Slot("b", ex.Attribute("b", ("x",)), held_as), "b", kind)
        body = fold_statements(
            fold, f"f{place}", lambda k, column=column: (f"c{column}[{k}]", f"n{column}[{k}]"), "count"
        )
        lines += [f"    {line}" for line in [*body, f"values[{place}] = f{place}", f"nulls[{place}] = f{place}_null"]]
    compiled_names: dict[str, Any] = {name: numba.njit(helper) for name, helper in numeric.HELPERS.items()}
    exec("\n".join(lines), compiled_names)
    fast = numba.njit(compiled_names["folds"])
    choose = np.random.default_rng(11)
    for size in [0, 1, *[4] * 40]:
        # Beyond 64 bits a sum stops the whole function, which `test_overflow` looks at.
        whole = choose.choice([0, 1, -3, 2**60, GREATEST - 2**62, LEAST + 2**62], size)
        while not LEAST <= sum(map(int, whole)) <= GREATEST or (size and int(max(whole)) - int(min(whole)) > GREATEST):
            whole = choose.choice([0, 1, -3, 2**60, GREATEST - 2**62, LEAST + 2**62], size)
        double = choose.choice([0.0, 0.5, -1.5, 1e308, math.nan, math.inf], size)
        null = [choose.random(size) < 0.25 for _ in range(2)]
        values, nulls = np.zeros(len(cases)), np.zeros(len(cases), dtype=np.bool_)
        fast(whole, null[0], double, null[1], size, values, nulls)
        for place, (function, held_as) in enumerate(cases):
            column, missing = (whole, null[0]) if held_as is Held.INTEGER else (double, null[1])
            given_values = [None if gone else value.item() for value, gone in zip(column, missing, strict=True)]
            expected = folded(function, held_as, given_values)
            assert seen(None if nulls[place] else values[place].item()) == seen(
                None if expected is None else float(expected)
            )


# --- on Python values -----------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(CONJUNCTS | OBJECT_CONJUNCTS, BAGS)
def test_closures_hold_exactly_when_the_conjunct_does(conjunct: ex.Expression, rows: Bags) -> None:
    assert interpret.holds(conjunct)(rows) == reference.holds(conjunct, as_events(rows))


@settings(max_examples=200, deadline=None)
@given(CONJUNCTS | OBJECT_CONJUNCTS, BAGS)
def test_closures_give_the_values_of_the_reference(conjunct: ex.Expression, rows: Bags) -> None:
    for part in [conjunct, *conjunct.children()]:
        if not isinstance(part, ex.Variable):
            expected = reference.interpret(part, as_events(rows), {})
            assert seen(interpret.value(part)(rows)) == seen(expected)


@settings(max_examples=300, deadline=None)
@given(CONJUNCTS, BAGS)
def test_slots_of_python_values_are_what_kernels_hold(conjunct: ex.Expression, rows: Bags) -> None:
    test = prepare(conjunct, ENVIRONMENT, Families())
    for slot in test.slots if test is not None else ():
        bag = as_events(rows).get(slot.variable, ())
        expected = [held(slot, reference.interpret(slot.expression, {slot.variable: (event,)}, {})) for event in bag]
        found = slot_values(slot.expression, rows.get(slot.variable, []), slot.held)
        assert list(map(seen, found)) == list(map(seen, expected))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([*FOLDS, "stddev", "collect"]),
    st.lists(st.none() | INTEGERS, max_size=5) | st.lists(st.none() | HALVES, max_size=5),
    st.booleans(),
)
def test_aggregates_of_python_values(function: str, values: list[Any], distinct: bool) -> None:
    node = ex.Aggregate(function, ex.Attribute("b", ("x",)), distinct)
    bags = {"b": [{"x": value} for value in values]}
    try:
        expected = reference_fold(function, values, distinct=distinct)
    except errors.NumberTooLargeError:
        with pytest.raises(errors.NumberTooLargeError):
            interpret.value(node)(bags)
        return
    found = interpret.value(node)(bags)
    if function == "collect":
        assert list(map(seen, found)) == list(map(seen, expected))
    elif function == "stddev" and expected is not None:
        assert found == pytest.approx(expected, nan_ok=True)
    else:
        assert seen(found) == seen(expected)


def test_a_time_stamp_without_a_zone_is_utc() -> None:
    check = interpret.holds(parse_expression("a.t = c.t"))
    naive, zoned = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert check({"a": [{"t": naive}], "c": [{"t": zoned}]})


def test_decimals_keep_all_their_digits() -> None:
    long = Decimal("12345678901234567890123456789012345678")
    bags = {"a": [{"d": long}]}
    assert interpret.value(parse_expression("-a.d"))(bags) == long.copy_negate()
    assert interpret.value(parse_expression("abs(a.d)"))(bags) == long
    assert interpret.value(parse_expression("SUM(a.d)"))(bags) == long


def test_decimals_are_compared_by_value() -> None:
    test = prepared("a.d = b.d")
    assert test is not None
    bags = as_events({"a": [{"d": Decimal("1.0")}], "b": [{"d": Decimal("1.00")}]})
    assert Columns(test, bags, Families()).holds()
