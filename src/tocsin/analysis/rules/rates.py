"""How many events a rule can emit, and how late: a rate and a lag for every derived type.

Each event of a variable x takes part in at most `Π (rate(y) × len(y) + 1)` matches, over the other variables y in some
order, where len(y) is the length of the shortest window of y around x and those before it. So the matches, counted at
the times of x's events, have at most that many times the rate of x. An event that is emitted at the time of x has this
rate; one at the first or last of several times has at most the sum of theirs. Where several events are gathered or
absent the number of matches does not grow; where a variable repeats it may be exponential, and no rate is told.

An event is emitted when its match is decided, which is up to `lifetime(x)` after the event of x. Emitted at the time of
x, it comes that late; a rule that reads it waits for it, and keeps its other events as much longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.lifetimes import Lifetimes, lifetimes
from tocsin.analysis.rates import Rate
from tocsin.analysis.temporal import Network, network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx


def with_derived(program: Program, rates: Mapping[str, Rate]) -> dict[str, Rate]:
    """The rates of all types, as far as they follow; a type from inside and outside has the sum of both."""
    known: dict[str, Rate | None] = dict(rates)
    for rule in program.in_order:
        for emit in rule.emits:
            rate = emitted_rate(rule, emit, network(rule.query, TIMESTAMP), known)
            before = known.get(emit.type, Rate(Fraction(0)))
            together = None if rate is None or before is None else Rate(rate.per_second + before.per_second)
            known[emit.type] = together
    return {name: rate for name, rate in known.items() if rate is not None}


def emitted_rate(rule: Rule, emit: alg.Emit, distances: Network, rates: Mapping[str, Rate | None]) -> Rate | None:
    """The largest rate of an emission; None when it does not follow from what is known."""
    times = [node.variable for node in emit.at.walk() if isinstance(node, ex.Attribute)]
    if any(not isinstance(node, ex.Attribute | ex.Call | ex.Interval | ex.Arithmetic) for node in emit.at.walk()):
        return None  # a mean lies where there is no event
    parts = [match_rate(rule, name, distances, rates) for name in dict.fromkeys(times)]
    return None if None in parts else Rate(sum((part for part in parts if part is not None), Fraction(0)))


def match_rate(rule: Rule, reference: str, distances: Network, rates: Mapping[str, Rate | None]) -> Fraction | None:
    """The largest rate of matches, at the times of one variable's events."""
    closure = distances.alternatives[0]
    types = dict(closure.alternative.types)
    if closure.alternative.iterated:
        return None
    order = [reference, *(name for name in closure.variables if name != reference)]
    total = Fraction(1)
    for place, name in enumerate(order):
        rate = rates.get(types[name] or "")
        if rate is None or rate.is_per_key:
            return None
        if place == 0:
            total *= rate.per_second
            continue
        lengths = [
            most - least
            for before in order[:place]
            for least, most in [closure.distance(before, name)]
            if least is not None and most is not None
        ]
        if not lengths:
            return None
        total *= rate.per_second * Fraction(min(lengths), 1_000_000) + 1
    return total


def lags(program: Program) -> dict[str, int]:
    """How long after its own time an event of each emitted type may come, in microseconds."""
    found: dict[str, int] = {}
    for rule in program.in_order:
        own = max((found.get(name, 0) for name in rule.reads), default=0)
        lives = lifetimes(rule.query, network(rule.query, TIMESTAMP))
        for emit in rule.emits:
            late = own + max(0, _until_decided(emit.at, lives))
            found[emit.type] = max(late, found.get(emit.type, 0))
    return found


def _until_decided(at: ex.Expression, lives: Lifetimes) -> int:
    """The longest time from the instant that an expression gives to the decision of its match."""
    match at:
        case ex.Arithmetic("+", left, ex.Interval(moved)) | ex.Arithmetic("+", ex.Interval(moved), left):
            return _until_decided(left, lives) - moved
        case ex.Arithmetic("-", left, ex.Interval(moved)):
            return _until_decided(left, lives) + moved
        case ex.Call(_, operands) | rx.Mean(operands):
            return max(_until_decided(each, lives) for each in operands)
    return max((lives[name] or 0 for name in ex.variables_in(at)), default=0)
