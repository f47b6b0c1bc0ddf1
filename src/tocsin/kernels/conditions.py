"""The conditions of a query, each where it is cheapest: on one event, on numbers inside the loops, or on what is left.

code        meaning
----        -------
flags       conjuncts on one event alone: decided before the kernel, a `Source` is the events that pass
tests       conjuncts between events that numbers decide: the loops make them
residual    the rest: tried on Python values, for matches that have passed everything else
hidden      variables whose bags are not built: the result has only aggregates of them (D50)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.inference import Environment
from tocsin.analysis.schema import BoundQuery
from tocsin.analysis.types import DataType, Kind
from tocsin.errors import TypeMismatchError
from tocsin.kernels.expressions.leaves import InTask, SlotRef, Test
from tocsin.kernels.expressions.prefixes import RANGED, SUMMED
from tocsin.kernels.expressions.slots import Families, prepare
from tocsin.kernels.model import Carried, Held, Slot, Source
from tocsin.kernels.reach import iteration_of
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.optimizer.query_parts import alone, never_null


@dataclass(frozen=True)
class Conditions:
    """The conditions of a query."""

    # Variable → the conjuncts that each of its events must make TRUE by itself.
    flags: Mapping[str, tuple[ex.Expression, ...]]
    # The other conjuncts of WHERE.
    tests: tuple[Test, ...]
    residual: tuple[ex.Expression, ...]
    # Negated or gathered variable → the conjuncts between its event and the match.
    around_tests: Mapping[str, tuple[Test, ...]]
    # Gatherings, the inner ones first, and absences with a conjunct that numbers cannot decide; their other conjuncts
    # are tried with it. What speaks of events that are gathered so late is residual too.
    residual_around: tuple[alg.Around, ...]
    carried: tuple[Carried, ...]  # the columns that the tests need
    places: Mapping[tuple[str, ex.Expression], int]  # (variable, slot's expression) → the column that holds it
    families: Families  # which of the columns are ranked together
    unordered: tuple[tuple[str, ...], ...] = ()  # the groups of variables of which all orders are found
    # Aggregates of gathered events in the result that are computed where the events are, as tests that hold them.
    asked: Mapping[ex.Expression, Test] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()  # the variables of which nothing else is asked: their bags are not built
    # The iterated variable whose longest matches are ranges of a list, of which the result has no more than aggregates
    # and the first and last events; None for other queries.
    ranged: str | None = None

    @property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """The columns each variable needs."""
        found: dict[str, dict[int, None]] = {}
        for (variable, _), column in self.places.items():
            found.setdefault(variable, {})[column] = None
        return {variable: tuple(columns) for variable, columns in found.items()}


def conditions(bound: BoundQuery, core: alg.Node) -> Conditions:
    """Sort the conditions of a query."""
    environment = environment_of(bound, core)
    families = Families()
    flags: dict[str, list[ex.Expression]] = {}
    around_tests: dict[str, tuple[Test, ...]] = {}
    residual_around: list[alg.Around] = []
    gatherings = list(alg.gatherings_in(core))
    gathered = {each.variable for each in gatherings}
    late: set[str] = set()  # gathered after the search

    def prepared(part: ex.Expression) -> Test | None:
        return prepare(part, environment, families)

    for around in (*gatherings, *alg.absences_in(core)):
        own = [part for part in ex.conjuncts(around.condition) if alone(part) == around.variable]
        between = [part for part in ex.conjuncts(around.condition) if part not in own]
        known = flags.setdefault(around.variable, [])
        known.extend(part for part in own if part not in known)
        known_tests = [None if ex.variables_in(part) & late else prepared(part) for part in between]
        around_tests[around.variable] = tuple(test for test in known_tests if test is not None)
        if None in known_tests:
            residual_around.append(around)
            late |= {around.variable} & gathered
    tests: list[Test] = []
    residual: list[ex.Expression] = []
    for conjunct in bound.query.conjuncts:
        only, test = alone(conjunct), None
        if only is not None and only not in gathered:
            flags.setdefault(only, []).append(conjunct)
        elif not ex.variables_in(conjunct) & late and (test := prepared(conjunct)) is not None:
            tests.append(test)
        else:
            residual.append(conjunct)
    found_in_order = interchangeable(bound.query)
    tests = [*(test for group in found_in_order for test in in_order(group)), *tests]
    unordered = tuple(group for group in bound.query.unordered if group not in found_in_order)
    # What is still to be looked at afterwards needs the bags.
    whole = [*residual, *(each.condition for each in residual_around if each.condition is not None)]
    shown = gathered if unordered else set().union(late, *map(ex.variables_in, whole))
    asked: dict[ex.Expression, Test] = {}
    hidden: set[str] = set()
    for name in [each.variable for each in gatherings if each.variable not in shown]:
        if found := _as_tests(_mentions_of(name, bound.query), prepared, SUMMED):
            asked |= found
            hidden.add(name)
    ranged = None if tests or residual or residual_around else _ranged(bound.query)
    mentions = [] if ranged is None else _mentions_of(ranged, bound.query)
    inner = [node for node in mentions if not _is_edge(node)]
    found = _as_tests(inner, prepared, RANGED)
    if found is None:
        ranged = None
    elif ranged is not None:
        asked, hidden = found, {ranged} if inner == mentions else set()
    tests_of_all = (*tests, *(test for some in around_tests.values() for test in some), *asked.values())
    slots = [slot for test in tests_of_all for slot in test.slots]
    carried, places = columns_of(slots, core, families)
    return Conditions(
        {name: tuple(parts) for name, parts in flags.items()},
        tuple(tests),
        tuple(residual),
        around_tests,
        tuple(residual_around),
        carried,
        places,
        families,
        unordered,
        asked,
        frozenset(hidden),
        ranged,
    )


def _ranged(query: alg.Query) -> str | None:
    """The variable of an iteration whose longest matches have a RETURN of their own."""
    repeat = iteration_of(query)
    if repeat is None or not query.returns or query.over_all_matches:
        return None
    assert isinstance(repeat.part, alg.Event)
    return repeat.part.variable


def environment_of(bound: BoundQuery, core: alg.Node) -> Environment:
    """The types of the attributes of a query's variables."""
    types = _types(core)

    def type_of(reference: ex.Attribute) -> DataType:
        kinds = types[reference.variable]
        found = [bound.schemas[kind].lookup(reference.path) for kind in kinds]
        if any(other.kind is not found[0].kind for other in found):
            raise TypeMismatchError(f"`{reference.name}` differs between {', '.join(kinds)}.")
        return found[0]

    return Environment(type_of)


def sources_of(query: alg.Query, core: alg.Node, found: Conditions) -> tuple[Source, ...]:
    """The variables of a query and the events they may hold."""
    negated = alg.negated_variables(core)
    # An event with NULL where a condition needs a value is in no match: it need not travel, and no NULL comes here.
    known: dict[str, list[ex.Expression]] = {}
    for name, path in sorted(never_null(query)):
        known.setdefault(name, []).append(ex.IsNull(ex.Attribute(name, path), negated=True))
    return tuple(
        Source(name, kinds, name in negated, bit, (*found.flags.get(name, ()), *known.get(name, ())))
        for bit, (name, kinds) in enumerate(_types(core).items())
    )


def _types(core: alg.Node) -> dict[str, tuple[str, ...]]:
    """Every variable, negated and gathered ones included, and its event types."""
    found: dict[str, dict[str, None]] = {}
    for node in core.walk():
        if isinstance(node, alg.Event | alg.Around) and node.type is not None:
            found.setdefault(node.variable, {})[node.type] = None
    return {name: tuple(kinds) for name, kinds in found.items()}


def columns_of(
    slots: Sequence[Slot], core: alg.Node, families: Families
) -> tuple[tuple[Carried, ...], dict[tuple[str, ex.Expression], int]]:
    """Columns for slots: one column serves several event types, and all variables that need the same of a type."""
    types = _types(core)
    columns: list[tuple[tuple[Held, int | None], dict[str, ex.Expression]]] = []
    places: dict[tuple[str, ex.Expression], int] = {}
    for slot in dict.fromkeys(slots):
        if isinstance(slot.expression, InTask):
            continue  # known where the search runs
        held, kinds = (slot.held, families.of(slot) if slot.held is Held.RANK else None), types[slot.variable]
        fitting = (
            number
            for number, (other, known) in enumerate(columns)
            if held == other
            and all(anonymous(known[kind]) == anonymous(slot.expression) for kind in kinds if kind in known)
        )
        number = next(fitting, len(columns))
        if number == len(columns):
            columns.append((held, {}))
        places[slot.variable, slot.expression] = number
        for kind in kinds:
            columns[number][1].setdefault(kind, slot.expression)
    return tuple(Carried(*held, expressions) for held, expressions in columns), places


def anonymous(expression: ex.Expression) -> ex.Expression:
    """The expression without the name of its variable: for two variables of one type it is the same value."""
    return ex.renamed(expression, lambda name: "")


NUMBERS = (Kind.INTEGER, Kind.DOUBLE)


def _is_edge(node: ex.Expression) -> bool:
    """Whether only the first or the last event of a bag is needed."""
    match node:
        case ex.Aggregate(function="first" | "last"):
            return not node.distinct
        case ex.Attribute(index=ex.Edge() | ex.Fixed(number=1)):
            return True
        case _:
            return False


def _mentions_of(name: str, query: alg.Query) -> list[ex.Expression]:
    """The aggregates of a variable in the result, and what is said of its events outside them, each once."""
    outputs = [*(each.expression for each in query.returns), *([query.having] if query.having else [])]
    spoken = (node for output in outputs for node in _mentions(output) if name in ex.variables_in(node))
    return list(dict.fromkeys(spoken))


def _mentions(node: ex.Expression) -> Iterator[ex.Expression]:
    if isinstance(node, ex.Aggregate | ex.Attribute | ex.Variable):
        yield node
        return
    for child in node.children():
        yield from _mentions(child)


def _as_tests(
    nodes: Iterable[ex.Expression], prepare: Callable[[ex.Expression], Test | None], functions: frozenset[str]
) -> dict[ex.Expression, Test] | None:
    """Aggregates, each in a test that kernels can compute; None where one of them cannot be, or is no aggregate."""
    found: dict[ex.Expression, Test] = {}
    for node in nodes:
        if not isinstance(node, ex.Aggregate) or node.function not in functions or node.distinct:
            return None
        test = prepare(ex.Comparison("=", node, ex.Literal(0)))
        if test is None or len(test.folds) != 1 or test.folds[0].kind not in NUMBERS:
            return None
        found[node] = test
    return found


# --- variables that can change names (D37) --------------------------------------------------------

# A group of `unordered` is interchangeable when every condition, absence and gathering says the same after two of its
# variables have changed names. Then each set of events is found in every order, and asking for increasing positions
# keeps the first. Otherwise all are found, and a filter keeps the first of each set.


MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def interchangeable(query: alg.Query) -> tuple[tuple[str, ...], ...]:
    """The groups that can be found in order; none where groups share a variable, because the first one goes first.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Event("A", "b")
    >>> near = ex.Between(ex.Arithmetic("-", ex.Attribute("b", ("ts",)), ex.Attribute("a", ("ts",))),
    ...     ex.Interval(-9), ex.Interval(9))
    >>> interchangeable(alg.Query(alg.Filter(alg.All((a, b)), near), unordered=(("a", "b"),)))
    (('a', 'b'),)
    >>> after = replace(near, low=ex.Interval(0))
    >>> interchangeable(alg.Query(alg.Filter(alg.All((a, b)), after), unordered=(("a", "b"),)))
    ()
    """
    names = [name for group in query.unordered for name in group]
    if len(set(names)) < len(names):
        return ()
    said = _said(query.pattern, {})
    # Exchanges of neighbours make all orders.
    return tuple(
        group
        for group in query.unordered
        if all(_said(query.pattern, {one: other, other: one}) == said for one, other in pairwise(group))
    )


def in_order(group: tuple[str, ...]) -> Iterator[Test]:
    """That the events of a group's variables have increasing places; one event may be in two of them (R29)."""
    for names in pairwise(group):
        events = [InTask("pos", ex.Variable(name)) for name in names]
        slots = [Slot(name, event, Held.INTEGER) for name, event in zip(names, events, strict=True)]
        references = [SlotRef(slot, ex.Each.PLAIN, Kind.INTEGER) for slot in slots]
        yield Test(ex.Comparison("<=", *events), ex.Comparison("<=", *references))


def _said(pattern: alg.Node, names: dict[str, str]) -> set[object]:
    """All that a pattern says of its variables, under other names."""

    def name_of(name: str) -> str:
        return names.get(name, name)

    def conjuncts(condition: ex.Expression | None) -> frozenset[str]:
        return frozenset(repr(_normal(ex.renamed(each, name_of))) for each in ex.conjuncts(condition))

    def bound(each: alg.Bound) -> alg.Bound:
        if isinstance(each.anchor, alg.Whole):
            return each
        renamed = tuple(sorted(map(name_of, each.anchor.variables)))
        return replace(each, anchor=replace(each.anchor, variables=renamed))

    found: set[object] = set()
    for node in pattern.walk():
        match node:
            case alg.Filter():
                found |= conjuncts(node.condition)
            case alg.Around():
                sides = frozenset(map(bound, node.lower)), frozenset(map(bound, node.upper))
                found.add((type(node).__name__, node.variable, node.type, conjuncts(node.condition), *sides))
            case alg.Event():
                found.add((name_of(node.variable), node.type, conjuncts(node.condition)))
            case alg.All() | alg.Sequence() | alg.Any() | alg.Repeat() | alg.Within():
                continue
            case _:
                raise errors.unknown_node(node, "The search of unordered variables")
    return found


def _normal(expression: ex.Expression) -> ex.Expression:
    """One of the ways to write the same, so that texts can be compared; what it does not know stays as it is."""

    def change(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.Comparison() if repr(node.right) < repr(node.left):
                return replace(node, op=MIRRORED[node.op], left=node.right, right=node.left)
            case ex.Arithmetic(op="+" | "*") if repr(node.right) < repr(node.left):
                return replace(node, left=node.right, right=node.left)
            case ex.Between(
                operand=ex.Arithmetic(op="-") as difference, low=ex.Interval() as low, high=ex.Interval() as high
            ) if repr(difference.right) < repr(difference.left):
                turned = replace(difference, left=difference.right, right=difference.left)
                ends = ex.Interval(-high.microseconds), ex.Interval(-low.microseconds)
                return replace(node, operand=turned, low=ends[0], high=ends[1])
            case ex.And() | ex.Or():
                return replace(node, operands=tuple(sorted(node.operands, key=repr)))
            case rx.SameEvent() if repr(node.right) < repr(node.left):
                return replace(node, left=node.right, right=node.left)
            case _:
                return node

    return expression.transform(change)
