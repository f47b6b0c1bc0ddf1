"""From a query to its kernel: what Spark decides of an event, what the search computes, and the columns that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product

from tocsin import automata, errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.analysis.attributes import Schema
from tocsin.analysis.schema import BoundQuery
from tocsin.analysis.types import NULL, DataType
from tocsin.automata import expressions as rx
from tocsin.automata.model import DerivedEvent
from tocsin.kernels.expressions.arithmetic import NotNumbers
from tocsin.kernels.model import WORD_BITS, Source
from tocsin.kernels.reach import reach_of
from tocsin.kernels.runs.code import ReplayCode, SearchCode
from tocsin.kernels.runs.functions import Replaying, Search, replay_of, search_of
from tocsin.kernels.runs.objects import Objects
from tocsin.kernels.runs.registers import Attributes, Registers
from tocsin.kernels.runs.running import Bits, RunKernel
from tocsin.kernels.runs.tables import Letter, Tables, folded, tables
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

__all__ = ["RunKernel", "run_kernel", "tables_of"]


def tables_of(query: alg.Query) -> Tables:
    """The automaton of a query; what reads a graph must number its steps as what wrote it."""
    is_contiguous = query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)
    return tables(automata.automaton(query.pattern, contiguous=is_contiguous))


def run_kernel(bound: BoundQuery) -> RunKernel:
    """Compile a query to an automaton over columns."""
    query = bound.query
    found = tables_of(query)
    reach = reach_of(query)
    types = tuple(sorted(alg.event_types(query.pattern)))
    sources: list[Source] = []
    letters = tuple(_bits(letter, types, bound.schemas, sources) for letter in found.letters)
    has_times = any(step.timing for step in found.steps)
    is_inverted = any(letter.is_inverted for letter in letters)
    search, graphing, replaying, attributes = _compiled(found, bound)
    has = {name: _has(bound.schemas[name]) for name in types}
    return RunKernel(
        **vars(
            replace(
                reach,
                needs_order=reach.needs_order or any(map(is_of_acel, query.pattern.walk())) or has_times,
                counts_every_event=reach.counts_every_event or found.counts_every_event or (has_times and is_inverted),
            )
        ),
        sources=tuple(sources),
        carried=attributes.carried(has),
        types=types,
        wants=_wants(found, types, bound.schemas, search, replaying),
        tables=found,
        letters=letters,
        search=search,
        graphing=graphing,
        replaying=replaying,
    )


def _compiled(found: Tables, bound: BoundQuery) -> tuple[Search, Search, Replaying, Attributes]:
    """The generated functions, and the attributes they read; where registers are not all numbers, they are objects."""
    # What is compiled reads the letters of an event from one word.
    has_numbers = (True, False) if len(found.letters) <= WORD_BITS else (False,)
    for of_search, of_replay in product(has_numbers, (True, False)):
        attributes = Attributes(lambda node: _type_of(node, bound.schemas))
        search: Registers | Objects = Objects(found)
        replay: Registers | Objects = Objects(found)
        try:
            if of_search:
                search = Registers((step.updates for step in found.steps), _guards(found), attributes)
            if of_replay:
                replay = Registers((step.replays for step in found.steps), _fields(found), attributes)
            # Only now are all columns known.
            has_window = bound.query.window_us is not None
            return (
                search_of(SearchCode(found, search, has_window)),
                search_of(SearchCode(found, search, has_window, as_graphs=True)),
                replay_of(ReplayCode(found, replay)),
                attributes,
            )
        except NotNumbers:
            continue
    raise AssertionError("objects hold every value")


def _guards(found: Tables) -> list[ex.Expression]:
    return [step.guard for step in found.steps if step.guard is not None]


def _fields(found: Tables) -> list[ex.Expression]:
    made = (output for step in found.steps for _, output in step.made)
    return [value for output in made if isinstance(output, DerivedEvent) for _, value in output.fields]


def _type_of(node: ex.Attribute, schemas: Mapping[str, Schema]) -> DataType:
    """The type of an attribute in all event types that have it."""
    found = [schema.lookup(node.path) for schema in schemas.values() if _has(schema)(node.path)]
    if len({one.kind for one in found}) > 1:
        raise NotNumbers
    return found[0] if found else NULL


def _has(schema: Schema) -> Callable[[tuple[str, ...]], bool]:
    def has(path: tuple[str, ...]) -> bool:
        try:
            schema.lookup(path)
        except errors.UnknownAttributeError:
            return False
        return True

    return has


def _bits(letter: Letter, types: tuple[str, ...], schemas: Mapping[str, Schema], sources: list[Source]) -> Bits:
    """The sources of a letter: one for all types of which it asks the same."""
    is_inverted = _settled(letter, None, {}) == rx.TRUE
    asked: dict[ex.Expression, list[str]] = {}
    only = {test.type for test in letter if isinstance(test, rx.TypeIs)}
    for name in [one for one in only if one in schemas] if only else types:  # of any other type it is FALSE
        condition = _settled(letter, name, schemas[name].attributes)
        if is_inverted:
            condition = rx.simplified(ex.Or((ex.Not(condition), ex.IsNull(condition))))
        if condition not in (rx.FALSE, rx.NULL):
            asked.setdefault(condition, []).append(name)
    bits = 0
    for condition, names in asked.items():
        number = len(sources)
        variable = f"#{number}"
        conditions = () if condition == rx.TRUE else tuple(ex.conjuncts(_named(condition, variable)))
        sources.append(Source(variable, tuple(names), False, number, conditions))
        bits |= 1 << number
    return Bits(bits, is_inverted)


def _settled(letter: Letter, name: str | None, attributes: Mapping[str, object]) -> ex.Expression:
    return rx.both(*(folded(test, name, attributes) for test in letter))


def _named(condition: ex.Expression, variable: str) -> ex.Expression:
    return condition.transform(
        lambda node: (
            replace(node, variable=variable) if isinstance(node, ex.Attribute) and node.variable == rx.EVENT else node
        )
    )


def _wants(
    found: Tables,
    types: tuple[str, ...],
    schemas: Mapping[str, Schema],
    search: Search,
    replaying: Replaying,
) -> dict[str, tuple[str, ...]]:
    """The attributes that plain Python reads, and those that tell equal matches apart."""
    read: list[ex.Expression] = []
    if search.is_plain:
        read += [*_guards(found), *(value for step in found.steps for _, value in step.updates)]
    if replaying.is_plain:
        read += [*_fields(found), *(value for step in found.steps for _, value in step.replays)]
    names = {
        node.path[0]
        for expression in read
        for node in expression.walk()
        if isinstance(node, ex.Attribute) and node.variable == rx.EVENT
    }
    if found.is_ambiguous:
        names |= {name for one in found.templates if not one.is_derived for name in one.attributes}
    wanted = {kind: tuple(sorted(names.intersection(schemas[kind].attributes))) for kind in types}
    return {kind: attributes for kind, attributes in wanted.items() if attributes}
