"""How many events a rule can emit: the arrivals of every derived type.

An event of a variable x takes part in a limited number of matches (`multiplicity.py`), so that the matches, counted at
the times of x's events, are that many copies of x's arrivals. An emitted event lies at a known distance from x, which
may vary by some spread: in a closed interval of length t there are at most as many as in one of length t + spread of
x's events. One at the first or last of several times lies at one of them: then the sum of theirs bounds it too. All
these bounds hold, and the least of them counts. Where several events are gathered or absent the number of matches does
not grow; where a variable repeats it may be exponential, and nothing is told.
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.arrivals import Arrivals, Copies, Least, Together
from tocsin.analysis.keys import common_keys, keys
from tocsin.analysis.rates import Rate
from tocsin.analysis.rules.multiplicity import Reads, choices
from tocsin.analysis.temporal import Closure, Distance, network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx


def with_derived(program: Program, rates: Mapping[str, Rate], live_keys: int | None = None) -> dict[str, Arrivals]:
    """The arrivals of all types, as far as they follow; a type from inside and outside has the sum of both."""
    known: dict[str, Arrivals | None] = dict(rates)
    for rule in program.in_order:
        for emit in rule.emits:
            inside = emitted(rule, emit, known, live_keys)
            before = known.get(emit.type)
            is_first = emit.type not in known
            if isinstance(before, Rate):
                before = before.of_all(live_keys)
            if is_first:
                known[emit.type] = inside
            else:
                known[emit.type] = None if inside is None or before is None else Together((before, inside))
    return {name: arrivals for name, arrivals in known.items() if arrivals is not None}


def emitted(
    rule: Rule, emit: alg.Emit, known: Mapping[str, Arrivals | None], live_keys: int | None = None
) -> Arrivals | None:
    """The arrivals of an emission; None when they do not follow from what is known."""
    closure = network(rule.query, TIMESTAMP).alternatives[0]
    if closure.alternative.iterated:
        return None
    reads = reads_of(rule, known, live_keys)
    found = [
        Copies(arrivals, times, most - least)
        for name in closure.variables
        for arrivals, times in [_matches_at(rule, closure, name, reads)]
        for least, most in [_from(emit.at, name, closure)]
        if arrivals is not None and times is not None and least is not None and most is not None
    ]
    names = _at_one_of(emit.at)
    if names is not None:
        parts = [_matches_at(rule, closure, name, reads) for name in names]
        exact = [Copies(arrivals, times) for arrivals, times in parts if arrivals is not None and times is not None]
        if len(exact) == len(parts):
            return Least((Together(tuple(exact)) if len(exact) > 1 else exact[0], *found))
    return Least(tuple(found)) if found else None


def reads_of(rule: Rule, known: Mapping[str, Arrivals | None], live_keys: int | None = None) -> Reads:
    """What is known of the arrivals of each variable of a rule."""
    types = {name: kind.types[0] or "" for name, kind in rule.query.variables.items()}
    types |= {each.variable: each.type for each in alg.around_in(rule.query.pattern)}
    of_all: dict[str, Arrivals] = {}
    of_key: dict[str, Arrivals] = {}
    has_key = common_keys(rule.query, keys(rule.query)) != ()
    for name, kind in types.items():
        arrivals = known.get(kind)
        whole = arrivals.of_all(live_keys) if isinstance(arrivals, Rate) else arrivals
        single = arrivals.of_key if isinstance(arrivals, Rate) and has_key else whole
        of_all |= {} if whole is None else {name: whole}
        of_key |= {} if single is None else {name: single}
    return Reads(of_all, of_key)


def _matches_at(rule: Rule, closure: Closure, name: str, reads: Reads) -> tuple[Arrivals | None, int | None]:
    """The arrivals of a variable, and how many matches one of its events can be in."""
    return reads.of_all.get(name), choices(closure, name, closure.variables, reads, rule.query.unordered)


def _at_one_of(at: ex.Expression) -> list[str] | None:
    """The variables at one of whose times, moved by a constant, an event is emitted; None for a mean of times."""
    if any(not isinstance(node, ex.Attribute | ex.Call | ex.Interval | ex.Arithmetic) for node in at.walk()):
        return None
    return list(dict.fromkeys(node.variable for node in at.walk() if isinstance(node, ex.Attribute)))


def _from(at: ex.Expression, name: str, closure: Closure) -> Distance:
    """The least and the largest time from an event of a variable to the instant that an expression gives."""
    match at:
        case ex.Attribute(variable):
            return (0, 0) if variable == name else closure.distance(name, variable)
        case ex.Arithmetic("+", left, ex.Interval(moved)) | ex.Arithmetic("+", ex.Interval(moved), left):
            return _moved(_from(left, name, closure), moved)
        case ex.Arithmetic("-", left, ex.Interval(moved)):
            return _moved(_from(left, name, closure), -moved)
        case ex.Call(_, operands) | rx.Mean(operands):
            ends = [_from(each, name, closure) for each in operands]
            first = [least for least, _ in ends if least is not None]
            last = [most for _, most in ends if most is not None]
            return (min(first), max(last)) if len(first) == len(last) == len(ends) else (None, None)
        case _:
            return (None, None)


def _moved(distance: Distance, by_us: int) -> Distance:
    least, most = distance
    return (None if least is None else least + by_us, None if most is None else most + by_us)
