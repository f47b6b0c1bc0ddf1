"""Code that decides whether a match may live: its tests, its absences, and what it gathers in the end (D38).

Bounds of absences and gatherings are kept as the first and the last time inside, so that strict and closed ones look
alike. A bound whose anchor binds no event bounds nothing (R1, R13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tocsin.algebra import nodes as alg
from tocsin.kernels.expressions.leaves import Test
from tocsin.kernels.gathered import Look
from tocsin.kernels.policies.selection import is_final
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.state import Guard, Held, Many, One, State, Stretch, Then
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

MOST_NESTED = 8  # conditions inside each other


@dataclass(frozen=True)
class Closed(alg.Absent):
    """An absence of the beginning of a pattern: it counts where an event ends its gap, and not before (D65).

    `on_both_sides` when an event must begin the gap too. Bounds by the window stand on no side where an event must be.
    """

    on_both_sides: bool = False


def proceed(cx: Context, state: State, then: Then, *, variable: str | None, is_first: bool) -> None:
    """Make the tests and settle the absences that are ready, then go on inside; `next` stops at the first."""
    ready = tuple(test for test in state.tests if ex.variables_in(test.conjunct) <= state.held.keys())
    is_next = cx.setting.selection is Selection.NEXT and variable is not None and not is_first
    late = tuple(test for test in ready if is_next and variable is not None and is_final(test.conjunct, variable))
    early = tuple(test for test in ready if test not in late)
    rest = replace(state, tests=tuple(test for test in state.tests if test not in ready))

    def selected() -> None:
        tested(cx, late, rest.held, lambda: guarded(cx, rest, then))
        if is_next:
            # Any later candidate has this one between it and the event before (R2).
            cx.writer.line("break")

    tested(cx, early, state.held, selected)


def tested(cx: Context, tests: tuple[Test, ...], held: Mapping[str, Held], inside: Callable[[], None]) -> None:
    """All tests, the cheap ones in one condition, those with loops one after the other."""
    writer, depth = cx.writer, cx.writer.depth
    cheap, loops = [], []
    for test in tests:
        before = len(writer.lines)
        condition = cx.checks.check(test, held)
        prepared = writer.lines[before:]
        del writer.lines[before:]
        if prepared:
            loops.append((prepared, condition))
        elif condition:
            cheap.append(condition)
    with writer.nest():
        if cheap:
            writer.open(f"if {' and '.join(cheap)}:")
        for lines, condition in loops:
            shift = "    " * (writer.depth - depth)
            writer.lines += [shift + line for line in lines]
            writer.open(f"if {condition}:")
        inside()


def guarded(cx: Context, state: State, then: Then) -> None:
    """Settle the absences that are ready, then go on inside."""
    ready = [guard for guard in state.guards if may_settle(cx, guard) and is_ready(guard, state)]
    rest = replace(state, guards=tuple(guard for guard in state.guards if guard not in ready))
    with cx.writer.nest():
        nested(cx, [partial(settle, cx, guard, state) for guard in ready])
        then(rest)


def nested(cx: Context, conditions: Sequence[Callable[[], str]]) -> None:
    """Go one step deeper for each condition, which is prepared by lines before it; many are gathered in one name.

    Python parses no more than 100 steps.
    """
    writer = cx.writer
    if len(conditions) > MOST_NESTED:
        holds = cx.checks.fresh("holds")
        writer.line(f"{holds} = True")
        for condition in conditions:
            with writer.block(f"if {holds}:"):
                writer.line(f"{holds} = {condition()}")
        conditions = [lambda: holds]
    for condition in conditions:
        writer.open(f"if {condition()}:")


def may_settle(cx: Context, guard: Guard) -> bool:
    """Whether an absence is decided here, and not brought along by a table."""
    return cx.is_main or guard.absent not in cx.waiting


def settle(cx: Context, guard: Guard, state: State) -> str:
    """The condition that nothing blocks the match, prepared by the lines before it."""
    if guard.rows is None:
        low, high = window(cx, guard, state)
        return _is_free(cx, guard, state, low, high)
    # Every copy of an iterated sub-match has an absence of its own.
    array, count = guard.rows
    writer, free = cx.writer, cx.checks.fresh("free")
    copy = cx.checks.fresh("copy")
    writer.line(f"{free} = True")
    with writer.block(f"for {copy} in range({count}):"):
        one = guard.of_row(f"{array}[{copy}]")
        low, high = window(cx, one, state)
        writer.when(f"not ({_is_free(cx, one, state, low, high)})", f"{free} = False", "break")
    return free


def window(cx: Context, guard: Guard, state: State) -> tuple[str, str]:
    """The names of the first and the last time inside all bounds."""
    low, high = cx.checks.fresh("above"), cx.checks.fresh("below")
    cx.writer.line(f"{low} = {guard.low or 'LEAST'}", f"{high} = {guard.high or 'MOST'}")
    for bound in guard.absent.lower:
        _bound_by(cx, bound, low, state, guard, is_lower=True)
    for bound in guard.absent.upper:
        _bound_by(cx, bound, high, state, guard, is_lower=False)
    if isinstance(guard.absent, Closed) and not guard.is_brought:
        is_open = f"{high} == MOST" + (f" or {low} == LEAST" if guard.absent.on_both_sides else "")
        cx.writer.when(f"{is_open}", f"{high} = LEAST")
    return low, high


def _bound_by(cx: Context, bound: alg.Bound, name: str, state: State, guard: Guard, *, is_lower: bool) -> None:
    writer = cx.writer
    offset = bound.offset_us + (0 if not bound.strict else 1 if is_lower else -1)
    pick = "max" if is_lower else "min"
    if isinstance(bound.anchor, alg.Whole):
        anchor = state.low if bound.anchor is alg.Whole.START else state.high
        writer.line(f"{name} = {pick}({name}, plus({anchor}, {offset}))")
        return
    if guard.is_brought:
        return  # part of what the row brings
    is_last = isinstance(bound.anchor, alg.LastOf)
    held = [(variable, state.held[variable]) for variable in bound.anchor.variables if variable in state.held]
    only = held[0][1] if len(held) == 1 else None
    if isinstance(only, One) and only.is_sure:
        writer.line(f"{name} = {pick}({name}, plus(ts_{cx.setting.numbers[held[0][0]]}[{only.index}], {offset}))")
        return
    anchor, is_there = cx.checks.fresh("anchor"), cx.checks.fresh("there")
    writer.line(f"{anchor} = {'LEAST' if is_last else 'MOST'}", f"{is_there} = False")
    for variable, what in held:
        index, exists = _edge(what, is_last)
        with writer.block(f"if {exists}:"):
            time = f"ts_{cx.setting.numbers[variable]}[{index}]"
            writer.line(f"{anchor} = {'max' if is_last else 'min'}({anchor}, {time})", f"{is_there} = True")
    writer.when(f"{is_there}", f"{name} = {pick}({name}, plus({anchor}, {offset}))")


def _is_free(cx: Context, guard: Guard, state: State, low: str, high: str) -> str:
    absent = guard.absent
    number = cx.setting.numbers[absent.variable]
    writer = cx.writer
    free = cx.checks.fresh("free")
    writer.line(f"{free} = True")
    with writer.condition(*([guard.active] if guard.active else [])):
        at = first_in(cx, number, low)
        with writer.block(f"while {at} < z_{number} and ts_{number}[{at}] <= {high}:"):
            with writer.condition(*chosen(cx, absent, at, state)):
                writer.line(f"{free} = False", "break")
            writer.line(f"{at} += 1")
    return free


def first_in(cx: Context, number: str, low: str, key: tuple[str, str] | None = None) -> str:
    """The name of the index of the first candidate that is not before a window.

    `key` is where the candidates of a key begin and end, in a list that is sorted by one.
    """
    writer, at = cx.writer, cx.checks.fresh("at")
    near, (begin, end) = (key[0], key) if key is not None else (f"p_{number}", (f"a_{number}", f"z_{number}"))
    # The one after `low − 1`, which may not exist.
    writer.line(f"{at} = first_after(ts_{number}, plus({low}, -1), {near}, {end})")
    writer.when(f"{low} == LEAST", f"{at} = {begin}")
    return at


def chosen(cx: Context, around: alg.Around, at: str, state: State) -> list[str]:
    """The conditions that the candidate at an index is of the type and makes every conjunct TRUE."""
    held: dict[str, Held] = {**state.held, around.variable: One(at, is_sure=True)}
    tests = [cx.checks.check(test, held) for test in cx.setting.around_tests[around.variable]]
    return [*cx.kind_test(around.variable, around.type, at), *filter(None, tests)]


def is_ready(guard: Guard, state: State) -> bool:
    """Whether an absence can be decided before the match is whole: nothing later can change its window."""
    absent = guard.absent
    anchors = [bound.anchor for bound in absent.lower + absent.upper]
    if any(isinstance(anchor, alg.Whole) for anchor in anchors):
        return False
    named = {name for anchor in anchors if not isinstance(anchor, alg.Whole) for name in anchor.variables}
    if absent.condition is not None:
        named |= ex.variables_in(absent.condition) - {absent.variable}
    return named <= state.held.keys() if not guard.is_brought else spoken_of(absent) <= state.held.keys()


def spoken_of(absent: alg.Around) -> frozenset[str]:
    """The variables of the match that an absence's condition speaks of."""
    if absent.condition is None:
        return frozenset()
    return ex.variables_in(absent.condition) - {absent.variable}


def _edge(what: Held, is_last: bool) -> tuple[str, str]:
    if isinstance(what, Many):
        return what.at(f"{what.count} - 1" if is_last else "0"), f"{what.count} > 0"
    return what.index, f"{what.index} >= 0"


# --- gatherings ------------------------------------------------------------------------------------


def gathered(cx: Context, state: State, then: Then) -> None:
    """Collect all bags, then make the tests that wait for them, then go on inside."""
    for node in state.gatherings:
        state = _collected(cx, node, state)
    rest = replace(state, tests=(), gatherings=())
    tested(cx, state.tests, state.held, lambda: then(rest))


def _collected(cx: Context, node: alg.Gather, state: State) -> State:
    """The state that knows the bag of a gathering, and the interval with it."""
    writer, fresh = cx.writer, cx.checks.fresh
    name, look = cx.setting.numbers[node.variable], cx.setting.looks[node.variable]
    low, high = window(cx, Guard(node), state)
    key = _key(cx, name, look, state)
    at = first_in(cx, name, low, key)
    end = f"z_{name}" if key is None else key[1]
    bag = _scanned(cx, node, at, end, high, state) if look.tests else _stretch(cx, name, at, end, high)
    start, last = fresh("start"), fresh("end")
    writer.line(f"{start} = {state.low}", f"{last} = {state.high}")
    with writer.block(f"if {bag.count} > 0:"):
        writer.line(f"{start} = min({start}, ts_{name}[{bag.at('0')}])")
        writer.line(f"{last} = max({last}, ts_{name}[{bag.at(f'{bag.count} - 1')}])")
    return replace(state.knowing({node.variable: bag}), low=start, high=last)


def _key(cx: Context, name: str, look: Look, state: State) -> tuple[str, str] | None:
    """The names of where the events begin and end that are equal to the one of the match."""
    if look.key is None:
        return None
    other = state.held[look.key.other]
    assert isinstance(other, One)  # a key is an event of every match
    begin, end = cx.checks.fresh("begin"), cx.checks.fresh("end")
    for local, array in ((begin, "begin"), (end, "end")):
        cx.writer.line(f"{local} = {cx.parameter(f'{array}_{name}')}[{other.index}]")
    return begin, end


def _stretch(cx: Context, name: str, at: str, end: str, high: str) -> Many:
    """All events of the window: from one place to another."""
    last, count = cx.checks.fresh("last"), cx.checks.fresh("count")
    cx.writer.line(f"{last} = first_after(ts_{name}, {high}, {at}, {end})", f"{count} = {last} - {at}")
    return Stretch("", at, count)


def _scanned(cx: Context, node: alg.Gather, at: str, end: str, high: str, state: State) -> Many:
    """A scan of the window; what satisfies all conditions is put into a stack."""
    writer, name = cx.writer, cx.setting.numbers[node.variable]
    bag, count = cx.stack(f"bag_{name}"), cx.checks.fresh("count")
    writer.line(f"{count} = 0")
    with writer.block(f"while {at} < {end} and ts_{name}[{at}] <= {high}:"):
        with writer.condition(*chosen(cx, node, at, state)):
            cx.stop_unless_room(count, bag)
            writer.line(f"{bag}[{count}] = {at}", f"{count} += 1")
        writer.line(f"{at} += 1")
    return Many(bag, "0", count)
