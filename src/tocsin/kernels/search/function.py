"""One search as the text of a function: the nest of loops, and what surrounds it.

The function visits the groups (a partition, or a slice of one) from `group` on, and in the first of them the outermost
candidates from `begin` on. It stops at the end, or with a status: `FULL` when the arrays for matches are, `DEEP` when a
match is longer than the stacks, to be called again where it stopped; `TOO_MANY` when one start has more than `most`
matches, `TOO_LONG` when its iterations take more than `most_steps` steps. It gives the status, where to go on, and how
many matches are complete up to there; `needs` says how long arrays must be, of matches and of each variable's events.

Where the loops count matches, a start whose matches do not fit is counted to its end before more room is asked for:
what is too many is refused before it takes memory, and what is not gets as much as it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from tocsin.algebra import nodes as alg
from tocsin.analysis.types import Kind
from tocsin.errors import unknown_node
from tocsin.kernels.reach import may_be_empty
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.guards import gathered, may_settle, nested, settle, spoken_of, window
from tocsin.kernels.search.iterations import CopiesOfEvents
from tocsin.kernels.search.loops import LineLoop, event
from tocsin.kernels.search.picks import CopiesOfRows, pick
from tocsin.kernels.search.program import Line, Pick
from tocsin.kernels.search.state import Guard, Held, Many, One, State, Then, size_of

DOUBLES = "out_double"  # outputs that are called so hold doubles
FIXED_PARAMETERS = ("groups", "group", "begin", "most", "most_steps", "needs", "own_low", "own_high")


def value_name(number: int, kind: Kind) -> str:
    """The output of what is asked of bags: an array of doubles, or of integers as all others are."""
    return f"{DOUBLES if kind is Kind.DOUBLE else 'out_integer'}{number}"


def function(cx: Context) -> Context:
    """Write the `text` of the function of a search."""
    writer = cx.writer
    writer.depth = 2
    _list_inputs(cx)
    emit(cx, cx.search.part, State(tests=cx.search.tests, held=cx.missing), partial(finish, cx))
    body, writer.lines, writer.depth = writer.lines, [], 0
    # Only now is it known what the function takes.
    names = ", ".join((*FIXED_PARAMETERS, *cx.parameters, *cx.works, *cx.stacks, *cx.outputs))
    writer.line("@compiled")
    with writer.block(f"def search({names}):"):
        writer.line(*(f"{name} = 0" for name in ("count", "found", "steps", "mark", "at")))
        if cx.counts_first:
            writer.line("is_full = False")
        writer.line(*cx.declarations)
        with writer.block("for g in range(group, groups):"):
            writer.line(*cx.beginnings)
            writer.lines += body
            cx.stop_when_full()
        writer.line("return DONE, groups, 0, count")
    return cx


def _list_inputs(cx: Context) -> None:
    """The bounds of every list in this group, and a pointer into each that follows the outermost event."""
    names = [cx.setting.numbers[variable] for variable in cx.variables()]
    names += [f"t{table}" for table in cx.picked()]
    for name in names:
        cx.parameter(f"ts_{name}")
        cx.writer.line(f"a_{name} = {cx.parameter(f'from_{name}')}[g]", f"z_{name} = {cx.parameter(f'to_{name}')}[g]")
        cx.writer.line(f"p_{name} = a_{name}")
    cx.writer.line("mark = count", "at = 0")


# --- the nest ---------------------------------------------------------------------------------


def emit(cx: Context, node: alg.Node, state: State, then: Then) -> None:
    """Code that visits every match of a node beyond what is bound, with `then` inside."""
    match node:
        case alg.Event():
            event(cx, node, state, then)
        case Pick():
            pick(cx, node, state, then)
        case alg.Repeat(part=alg.Event() as one):
            CopiesOfEvents(cx, node, one, state).write(then, one.variable)
        case alg.Repeat(part=Pick() as rows):
            CopiesOfRows(cx, node, rows, state).write(then)
        case Line():
            LineLoop(cx, node.events).write(state, then)
        case alg.Sequence():
            _sequence(cx, node.parts, state, then)
        case alg.All():
            _product(cx, node.parts, state, then)
        case alg.Absent():
            emit(cx, node.part, replace(state, guards=(*state.guards, Guard(node))), then)
        case alg.Gather():
            emit(cx, node.part, replace(state, gatherings=(node, *state.gatherings)), then)
        case _:
            raise unknown_node(node, "The search by loops")


def _sequence(cx: Context, parts: tuple[alg.Node, ...], state: State, then: Then) -> None:
    if not parts:
        then(state)
        return
    begun = replace(state, behind=_behind(cx, parts[1:]))
    emit(cx, parts[0], begun, lambda reached: _sequence(cx, parts[1:], reached, then))


def _behind(cx: Context, parts: tuple[alg.Node, ...]) -> tuple[tuple[str, int], ...]:
    """The lists that the events or rows of parts stand in, and how many of them there must be."""
    found = []
    for part in parts:
        one, least = (part.part, part.least) if isinstance(part, alg.Repeat) else (part, 1)
        if least > 0 and isinstance(one, alg.Event | Pick):
            found.append((f"t{one.table}" if isinstance(one, Pick) else cx.setting.numbers[one.variable], least))
    return tuple(found)


def _product(cx: Context, parts: tuple[alg.Node, ...], state: State, then: Then) -> None:
    """Every part starts from the same floor; what comes after starts from the largest they reach."""

    def visit(rest: tuple[alg.Node, ...], now: State, reached: str) -> None:
        if not rest:
            then(replace(now, floor=reached, is_linear=state.is_linear))
            return

        def after(inner: State) -> None:
            floor = cx.checks.fresh("floor")
            cx.writer.line(f"{floor} = max({reached}, {inner.floor})")
            visit(rest[1:], inner, floor)

        emit(cx, rest[0], replace(now, floor=state.floor, is_linear=False), after)

    visit(parts, state, state.floor)


# --- the innermost place ------------------------------------------------------------------------


def finish(cx: Context, state: State) -> None:
    """Write a match; the absences that only the whole match decides come first."""
    writer = cx.writer
    conditions = [] if state.is_bound else [f"{state.high} != LEAST"]
    if cx.is_main:
        conditions += _owned_at_last(cx, state)
    names = {node.variable for node in state.gatherings}
    waiting = tuple(guard for guard in state.guards if spoken_of(guard.absent) & names)
    with writer.nest():
        if conditions:
            writer.open(f"if {' and '.join(conditions)}:")
        left = _settled(cx, [guard for guard in state.guards if guard not in waiting], state)
        if state.gatherings:
            gathered(cx, replace(state, guards=waiting), partial(_whole, cx))
        else:
            _write(cx, state, left)


def _whole(cx: Context, state: State) -> None:
    """Write a match with all that it gathers; the absences that speak of that come first."""
    with cx.writer.nest():
        _write(cx, state, _settled(cx, state.guards, state))


def _settled(cx: Context, guards: Sequence[Guard], state: State) -> list[Guard]:
    """Decide absences; what follows is inside. Those that a table only brings along are given back."""
    ours = [guard for guard in guards if may_settle(cx, guard)]
    nested(cx, [partial(settle, cx, guard, state) for guard in ours])
    return [guard for guard in guards if guard not in ours]


def _owned_at_last(cx: Context, state: State) -> list[str]:
    if cx.setting.owns_by_end:
        return [f"own_low[g] <= {state.high} <= own_high[g]"]
    first = cx.first()
    is_known = isinstance(first, alg.Event | Pick | alg.Repeat) and not may_be_empty(first)
    return [] if is_known else [f"own_low[g] <= {state.low} <= own_high[g]"]


def _write(cx: Context, state: State, left: list[Guard]) -> None:
    writer = cx.writer
    values = _values(cx, state) if cx.is_main else {}
    writer.line("found += 1")
    writer.when("found > most", "return TOO_MANY, g, at, mark")
    singles = {"out_start": state.low, "out_end": state.high, "out_group": "g"}
    for guard in left:
        number = cx.waiting.index(guard.absent)
        low, high = window(cx, guard, state)
        singles |= {f"out_low{number}": low, f"out_high{number}": high}
        singles[f"out_active{number}"] = f"(1 if {guard.active} else 0)" if guard.active else "1"
    singles |= values
    bags: dict[str, Held | None] = {}
    for variable in (each for each in cx.kinds if each not in cx.setting.hidden):
        name = cx.setting.numbers[variable]
        what = state.held.get(variable)
        if cx.kinds[variable].iterated:
            bags[name] = what
            continue
        singles[f"out_{name}"] = what.index if isinstance(what, One) else "-1"
        if cx.setting.with_floors:
            singles[f"out_floor_{name}"] = f"f_{name}"
    with _room(cx, bags):
        for name, what in bags.items():
            _write_bag(cx, name, what)
        for name, code in singles.items():
            cx.outputs[name] = None
            writer.line(f"{name}[count] = {code}")
    for name, what in bags.items():
        writer.line(f"total_{name} += {size_of(what)}")
    writer.line("count += 1")


@contextmanager
def _room(cx: Context, bags: Mapping[str, Held | None]) -> Iterator[None]:
    """Make sure of room for the lines inside; otherwise the search stops, or only counts from here on."""
    writer = cx.writer
    cx.bags |= dict.fromkeys(bags)
    cx.declarations |= dict.fromkeys(f"total_{name} = 0" for name in bags)
    over = ["count >= len(out_start)"]
    over += [f"total_{name} + {size_of(what)} > len(out_{name})" for name, what in bags.items() if what is not None]
    if not cx.counts_first:
        with writer.block(f"if {' or '.join(over)}:"):
            writer.line("needs[0] = count + 1")
            for number, (name, what) in enumerate(bags.items(), 1):
                writer.line(f"needs[{number}] = total_{name} + {size_of(what)}")
            writer.line("return FULL, g, at, mark")
        yield
        return
    with writer.block(f"if is_full or {' or '.join(over)}:"):
        writer.line("is_full = True")
    with writer.block("else:"):
        yield


def _values(cx: Context, state: State) -> dict[str, str]:
    """Aggregates of bags in the result: the names of the outputs, and their code."""
    found: dict[str, str] = {}
    for number, test in enumerate(cx.setting.asked):
        (fold,) = test.folds
        value, is_null = cx.checks.fold(fold, state.held)
        found[value_name(number, fold.kind)] = value
        found[f"out_null{number}"] = f"(1 if {is_null} else 0)"
    return found


def _write_bag(cx: Context, name: str, what: Held | None) -> None:
    """Append the events of a bag; `out_…_to` says where those of each match end."""
    writer = cx.writer
    total, values, ends = f"total_{name}", f"out_{name}", f"out_{name}_to"
    cx.outputs |= {values: None, ends: None}
    arrays = {values: what.at if isinstance(what, Many) else (lambda k: what.index if what else "-1")}
    if cx.setting.with_floors:
        floor_values = f"out_floor_{name}"
        cx.outputs[floor_values] = None
        arrays[floor_values] = lambda k: f"f_{name}[{k}]"
    if what is not None:
        step = cx.checks.fresh("k")
        with writer.block(f"for {step} in range({size_of(what)}):"):
            for array, code in arrays.items():
                writer.line(f"{array}[{total} + {step}] = {code(step)}")
    writer.line(f"{ends}[count] = {total} + {size_of(what)}")
