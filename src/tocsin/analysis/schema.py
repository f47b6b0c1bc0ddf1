"""Binding: a query meets the schemas of its event types, and every problem is shown at once.

`bind` checks that every event type of the pattern has a schema, that every attribute is there (`variable_schemas`),
that the attributes of the partition are in every type, negated ones included, and that every condition and column has a
type. The `BoundQuery` has the types of the columns of the result.

Integer times of inputs are read in the unit that the user names, or in microseconds with a warning (R42).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.algebra.units import Unit, check_unit, has_durations
from tocsin.analysis import types
from tocsin.analysis.attributes import Binder, Schema, VariableSchemas, differing
from tocsin.analysis.inference import Environment, Inference
from tocsin.analysis.result_types import column_type, common_type
from tocsin.analysis.types import DataType, Kind
from tocsin.language import expressions as ex
from tocsin.source import Where

TIME_KINDS = (Kind.TIMESTAMP, Kind.INTEGER)
Schemas = Mapping[str, Mapping[str, str | DataType]]  # event type → attribute → its type, or Spark's name of it


@dataclass(frozen=True)
class BoundQuery:
    """A query whose types are known."""

    query: alg.Query
    schemas: Mapping[str, Schema]  # the event types of the pattern
    time: Mapping[str, str]  # the time attribute of each of them
    time_type: DataType  # its type: a timestamp or an integer
    # What the result holds beside `match_id`, `start` and `end`: the RETURN columns, or one column per variable.
    columns: tuple[tuple[str, DataType], ...]
    # What the events of each variable look like: their types, and what PROJECT and AGG leave and make.
    held: VariableSchemas = field(default_factory=dict)

    @property
    def has_integer_time(self) -> bool:
        """Whether time is an integer in microseconds."""
        return self.time_type.kind is Kind.INTEGER


def rebound(bound: BoundQuery, query: alg.Query, more: Schemas | None = None) -> BoundQuery:
    """Another query over the same events, such as one with another RETURN; `more` are attributes added to them."""
    schemas = {name: {**schema.attributes, **(more or {}).get(name, {})} for name, schema in bound.schemas.items()}
    return bind(query, schemas, time=dict(bound.time))


def bind(query: alg.Query, schemas: Schemas, *, time: str | Mapping[str, str] = "ts") -> BoundQuery:
    """Check a query against the schemas of its event types.

    `time` is the time attribute, or that of each event type.
    """
    problems = errors.Problems()
    places = _places(query.pattern)
    known = _known(query, schemas, places, problems)
    times, time_type = _times(known, time, problems)
    _check_partition(query, known, places, problems)
    values = _Values(query, known, problems)
    values.check(query.pattern)
    columns = values.columns()
    errors.raise_all(problems.in_order())
    return BoundQuery(query, known, times, time_type, columns, values.held)


def value_types(bound: BoundQuery, expressions: Iterable[ex.Expression]) -> list[DataType]:
    """The exact types of values that are computed for each match of a bound query."""
    problems = errors.Problems()
    values = _Values(bound.query, bound.schemas, problems, bound.held)
    found = [values.exact(expression) for expression in expressions]
    errors.raise_all(problems.in_order())
    return found


def _known(
    query: alg.Query, given: Schemas, places: Mapping[str, Where], problems: errors.Problems
) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for name in alg.event_types(query.pattern):
        if name in given:
            try:
                found[name] = Schema.of(name, given[name])
            except errors.InvalidOptionError as problem:
                problems.append(problem)
            continue
        problems.add(
            errors.UnknownEventTypeError,
            f"There is no event type `{name}`.",
            where=places.get(name),
            hint=errors.did_you_mean(name, given, "event types"),
        )
    return found


def _times(
    schemas: Mapping[str, Schema], time: str | Mapping[str, str], problems: errors.Problems
) -> tuple[dict[str, str], DataType]:
    """The time attribute of each event type, and the type of all of them."""
    names: dict[str, str] = {}
    found: dict[str, DataType] = {}
    for schema in schemas.values():
        name = time if isinstance(time, str) else time.get(schema.type)
        if name is None or name not in schema.attributes:
            problems.add(
                errors.MissingColumnError,
                f"Event type `{schema.type}` has no time attribute"
                + (f" `{name}`." if name is not None else " named in `time`."),
                hint=errors.did_you_mean(name or "ts", schema.attributes, f"`{schema.type}` has")
                + " Choose one with `time=`.",
            )
            continue
        names[schema.type], given = name, schema.attributes[name]
        if given.kind in TIME_KINDS:
            found[schema.type] = given
            continue
        problems.add(
            errors.TimeTypeError,
            f"The time attribute `{name}` of `{schema.type}` is {given.describe()}.",
            hint="it must be a timestamp, or an integer in microseconds.",
        )
    if len({given.kind for given in found.values()}) > 1:
        problems.add(
            errors.TimeTypeError,
            f"The time attribute is {differing(found)}.",
            hint="convert one of them, so that all event types tell time in the same way.",
        )
    return names, next(iter(found.values()), types.TIMESTAMP)


def _check_partition(
    query: alg.Query, schemas: Mapping[str, Schema], places: Mapping[str, Where], problems: errors.Problems
) -> None:
    for attribute in query.partition.attributes:
        found: dict[str, DataType] = {}
        for schema in schemas.values():
            if attribute in schema.attributes:
                found[schema.type] = schema.attributes[attribute]
                continue
            problems.add(
                errors.UnknownAttributeError,
                f"Event type `{schema.type}` has no attribute `{attribute}`, by which the query is partitioned.",
                where=places.get(schema.type),
                hint=errors.did_you_mean(attribute, schema.attributes, f"`{schema.type}` has"),
            )
        common = common_type(found.values())
        if common is None or not common.is_ordered:
            problems.add(
                errors.TypeMismatchError,
                f"The query is partitioned by `{attribute}`, which is {differing(found)}.",
                hint="a partition needs single values that can be compared across all event types.",
            )


class _Values:
    """The types of the conditions and columns of a query."""

    def __init__(
        self,
        query: alg.Query,
        schemas: Mapping[str, Schema],
        problems: errors.Problems,
        held: VariableSchemas | None = None,
    ) -> None:
        pattern = query.pattern
        while isinstance(pattern, alg.Emit):  # its conditions speak of the events it is made of
            pattern = pattern.part
        self.query = query
        self.problems = problems
        self.variables = alg.variables_of(pattern)
        self.binder = Binder(schemas, problems, is_strict(pattern))
        self.held = self.binder.held(pattern) if held is None else held
        environment = Environment(lambda reference: self.binder.attribute(reference, self.held), self._event)
        self.inference = Inference(environment, problems)

    def _event(self, name: str) -> DataType:
        """A whole variable: a struct with the attributes of all its types; an array when it is iterated."""
        fields: dict[str, list[DataType]] = {}
        for schema in self.held.get(name, ()):
            for attribute, found in schema.attributes.items():
                fields.setdefault(attribute, []).append(found)
        event = types.struct_of((attribute, column_type(kinds) or kinds[0]) for attribute, kinds in fields.items())
        return types.array_of(event) if self._is_iterated(name) else event

    def _is_iterated(self, name: str) -> bool:
        return name in self.variables and self.variables[name].iterated

    def check(self, pattern: alg.Node) -> None:
        """Check the expressions of a pattern that `Binder.held` does not reach."""
        self.binder.check_around(pattern, self.held)
        for node in pattern.walk():
            match node:
                case alg.Event(condition=ex.Expression() as condition):
                    self.inference.condition(condition)
                case alg.Emit():
                    for expression in (node.at, *(value for _, value in node.values)):
                        self.inference.type_of(expression)
                case _:
                    pass  # without expressions, or checked before

    def columns(self) -> tuple[tuple[str, DataType], ...]:
        """The columns of the result: those of RETURN, or one per variable."""
        columns = tuple((each.name, self.exact(each.expression)) for each in self.query.returns)
        for key in self.query.group_by:
            found = self.inference.type_of(key.expression)
            if not found.is_ordered:
                self.problems.add(
                    errors.TypeMismatchError,
                    f"GROUP BY `{key.name}` is {found.describe()}.",
                    where=key.expression.where,
                    hint="group by single values that can be compared.",
                )
        if self.query.having is not None:
            named = replace(self.inference.environment, columns=dict(columns))
            Inference(named, self.problems).condition(self.query.having)
        return columns or tuple((name, self._event(name)) for name in self.variables)

    def exact(self, expression: ex.Expression) -> DataType:
        """The exact type of a value that is computed for each match."""
        found = self.inference.type_of(expression)
        if not isinstance(expression, ex.Attribute):
            return found
        found = found if found.is_null else self.binder.exact(expression, self.held)
        is_array = expression.index is ex.Each.PLAIN and self._is_iterated(expression.variable)
        return types.array_of(found) if is_array else found


def is_strict(pattern: alg.Node) -> bool:
    """Whether every type that a variable may hold must have an attribute: not in ACEL."""
    return not any(is_of_acel(node) for node in pattern.walk())


def _places(pattern: alg.Node) -> dict[str, Where]:
    places: dict[str, Where] = {}
    for node in pattern.walk():
        if isinstance(node, alg.Event | alg.NextOf | alg.Around) and node.type is not None:
            places.setdefault(node.type, node.where)
    return places


# --- the clock -----------------------------------------------------------------------------------

TIMES = (Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL)


def unit_of(
    time_unit: str | None,
    schemas: Schemas,
    times: Mapping[str, str],
    queries: Iterable[alg.Query],
    *,
    warns: bool = True,
) -> Unit:
    """The unit in which the queries' durations are to count.

    `time_unit` is the choice of the user. Without a duration in any query no unit matters.
    """
    check_unit(time_unit)
    known = {name: Schema.of(name, schema).attributes for name, schema in schemas.items()}
    clocks = {times[name]: own[times[name]].kind for name, own in known.items() if times.get(name) in own}
    timestamp = next((column for column, kind in clocks.items() if kind is Kind.TIMESTAMP), None)
    if time_unit is not None and timestamp is not None:
        raise errors.InvalidOptionError(
            f'`time_unit="{time_unit}"` is for integer times, and the time column `{timestamp}` is a timestamp.',
            hint="leave out `time_unit=`: a timestamp has its unit.",
        )
    integer = next((column for column, kind in clocks.items() if kind is Kind.INTEGER), None)
    if time_unit is None and warns and integer is not None and has_durations(*queries):
        _warn(integer)
    others = {column for own in known.values() for column, given in own.items() if given.kind in TIMES}
    return Unit(time_unit or "us", others)


def check_clock(
    time_unit: str | None,
    schemas: Schemas,
    time: str | Mapping[str, str],
    queries: Sequence[alg.Query],
) -> None:
    """Refuse a unit that the schemas or the durations do not allow."""
    times = dict.fromkeys(schemas, time) if isinstance(time, str) else time
    unit = unit_of(time_unit, schemas, times, queries, warns=False)
    for query in queries:
        unit.query(query)


def _warn(column: str) -> None:
    level, frame = 3, sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tocsin."):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        errors.TocsinWarning(
            "TIME_UNIT_ASSUMED",
            f"The time column `{column}` holds integers, which are read as microseconds.",
            hint='say what they count: `time_unit="us"`, or "s", "ms" or "ns".',
        ),
        stacklevel=level,
    )
