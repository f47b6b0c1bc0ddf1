"""Every ruling of SEMANTICS §10 is pinned: under another reading of it, a test that names it fails.

The folder `readings` holds the rejected readings, each a small patch of the reference, the translator or the parser. A
ruling's pins are the cases that name it in `rulings:`, and the tests of hand-made algebra whose names begin with it.
They run here as they run by themselves, so that a case counts only if it would fail the suite.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest
from tests.conformance import by_reference, compiled_anew
from tests.reference import test_algebra_nodes
from tests.semantics import test_cases
from tests.semantics.readings import absences, conditions, nodes, outputs, policies, selection, streams, structure
from tests.semantics.readings.support import Reading, readings_in

from tocsin.errors import TocsinError
from tocsin.testing.cases import Case

RULINGS = [f"R{number}" for number in (*range(1, 42), 44, 45)]
MODULES = (conditions, selection, policies, streams, absences, structure, outputs, nodes)
READINGS = sorted(
    (reading for module in MODULES for reading in readings_in(module)),
    key=lambda reading: RULINGS.index(reading.ruling),
)

# Two rows that are equal in everything: a case file cannot write them, because a label is also an attribute.
EQUAL_ROWS = Case(
    name="two rows that are equal in everything are two events",
    file=__file__,
    line=0,
    pattern="PATTERN SEQ(A a, B b) WITHIN 10 SECONDS RETURN a.x, b.x AS y",
    events=(("A", {"ts": 1, "x": 5}), ("A", {"ts": 1, "x": 5}), ("B", {"ts": 2, "x": 7})),
    rulings=("R33",),
    rows=({"x": 5, "y": 7}, {"x": 5, "y": 7}),
)


@dataclass(frozen=True)
class Pin:
    """A test that holds a ruling to its reading."""

    name: str
    run: Callable[[], None]

    def fails(self) -> bool:
        """Whether the test fails; an error that is no verdict on the reading, such as a broken patch, is raised."""
        try:
            self.run()
        except (AssertionError, pytest.fail.Exception, TocsinError):
            return True
        return False


@cache
def pins(ruling: str) -> tuple[Pin, ...]:
    """The tests that name a ruling and pass."""
    found = [pin for case in (*test_cases.CASES, EQUAL_ROWS) if ruling in case.rulings for pin in pins_of(case)]
    found += pins_on_nodes(f"test_{ruling.lower()}_")
    return tuple(pin for pin in found if not pin.fails())


def pins_of(case: Case) -> Iterator[Pin]:
    if case.error is not None:
        yield Pin(str(case), partial(test_cases.test_a_refused_pattern_is_refused_for_its_reason, case))
    else:
        yield Pin(str(case), partial(test_cases.assert_matches_of_the_case, by_reference, case))
    if case.warns:
        yield Pin(f"{case}, warning", partial(test_cases.test_a_case_gives_its_warnings, case))


def pins_on_nodes(prefix: str) -> list[Pin]:
    return [
        Pin(name, partial(test, **arguments))
        for name, test in inspect.getmembers(test_algebra_nodes, inspect.isfunction)
        if name.startswith(prefix)
        for arguments in parameters(test)
    ]


def parameters(test: Any) -> list[dict[str, Any]]:
    """The arguments of a test, once for each set of its `parametrize` mark."""
    for mark in getattr(test, "pytestmark", ()):
        names, sets = mark.args
        return [dict(zip(names, values, strict=True)) for values in sets]
    return [{}]


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_another_reading_of_a_ruling_fails_a_test_that_names_it(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = pins(reading.ruling)
    reading.apply(monkeypatch)
    compiled_anew()
    failing = [pin.name for pin in passing if pin.fails()]
    compiled_anew()
    assert failing, f"no test of {reading.ruling} tells this reading from the ruling"


@pytest.mark.parametrize("ruling", RULINGS)
def test_every_ruling_has_another_reading_and_a_test_that_names_it(ruling: str) -> None:
    assert any(reading.ruling == ruling for reading in READINGS)
    assert pins(ruling)
