"""The report on a query before anything runs: all its errors, lifetimes, keys and sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.algebra.units import check_unit
from tocsin.analysis.attributes import differing
from tocsin.analysis.front_ends import compiled
from tocsin.analysis.keys import keys
from tocsin.analysis.lifetimes import lifetimes, span_of_words
from tocsin.analysis.names import MISSING, STATUS
from tocsin.analysis.rates import check_rates, parse_rates
from tocsin.analysis.result_types import common_type
from tocsin.analysis.schema import BoundQuery, check_clock
from tocsin.analysis.sizes import require_within, size_report
from tocsin.analysis.types import DataType, from_spark_name
from tocsin.engines.wording import missing, unordered
from tocsin.options import Demands, Options
from tocsin.plan.plan import Plan, unbound_plan
from tocsin.plan.prepare import prepare
from tocsin.plan.strategies import AUTOMATON, unsupported
from tocsin.reports import CheckReport

SMALLER = "shorten the window, or declare rates per key with `live_keys=` (`--live-keys`)."


def checked(
    query: alg.Query, schemas: Any, demands: Demands, warnings: tuple[errors.TocsinWarning, ...]
) -> CheckReport:
    """Check a query against schemas; see `Pattern.check`.

    Without schemas (None), the report has all but the columns of the result.
    """
    query = ordered_by_ties(query) if demands.tie else query
    plan, problems = unbound_plan(query, Options(time=demands.time)), errors.Problems()
    if schemas is None:
        check_unit(demands.time_unit)
    else:
        types = alg.event_types(query.pattern)
        given = schemas_of(schemas, types, demands.type)
        problems.extend(tie_problems(demands.ties, given, types))
        with errors.collecting(problems):
            check_clock(demands.time_unit, given, demands.time, (query,))
        with errors.collecting(problems):
            plan = Plan(prepare(query, given, demands.time), plan.options, plan.times)
    distances = None
    with errors.collecting(problems):
        distances = plan.rule.written_network
        if demands.streaming or demands.max_state is not None:
            distances.require_bounded()
    late_us, limit = demands.measures(problems)
    with errors.collecting(problems):
        if demands.rates is not None:
            check_rates(demands.rates, query.pattern)
    errors.raise_all(problems)
    assert distances is not None
    lives = lifetimes(query, distances)
    rates = parse_rates(demands.rates)
    sizes = size_report(
        query,
        lives,
        rates,
        schemas=plan.rule.facts.schemas,
        lateness_us=late_us,
        live_keys=demands.live_keys,
        least_us=span_of_words(plan.query, lives) + (query.every_us or 0) if plan.strategy is AUTOMATON else 0,
    )
    if limit is not None:
        require_within(limit, sizes.shared, SMALLER)
    refusal = unsupported(query)
    return CheckReport(
        columns=None if plan.rule.types is None else _columns(plan.rule.types),
        network=distances,
        lifetimes=lives,
        keys=keys(query),
        sizes=sizes if rates else None,
        unbounded=distances.unbounded_pair(),
        refusal=None if refusal is None else refusal.message,
        warnings=warnings + distances.warnings,
    )


def _columns(bound: BoundQuery) -> tuple[tuple[str, str], ...]:
    columns = tuple((name, str(kind)) for name, kind in bound.columns)
    return (*columns, (STATUS, "string"), (MISSING, "string")) if bound.query.timeouts else columns


def tie_problems(
    ties: Sequence[str], schemas: Mapping[str, Mapping[str, Any]], types: Collection[str]
) -> Iterator[errors.TocsinError]:
    """The errors in tie columns: every event type has them, and their values have an order."""
    for name in ties:
        found: dict[str, DataType] = {}
        for kind in (kind for kind in types if kind in schemas):
            if name not in schemas[kind]:
                yield missing(name, schemas[kind], f"the input of `{kind}`", "tie=", "column")
                continue
            with contextlib.suppress(errors.InvalidOptionError):  # no type at all: binding reports it
                given = schemas[kind][name]
                found[kind] = from_spark_name(given) if isinstance(given, str) else given
        without_order = [known for known in found.values() if not known.is_ordered]
        if without_order:
            yield unordered("tie", name, str(without_order[0]))
        elif common_type(found.values()) is None:
            yield errors.TypeMismatchError(
                f"The columns of `tie` cannot be compared between inputs: `{name}` is {differing(found)}.",
                hint="`tie=` names columns that have one type in all inputs.",
            )


def problems_with_schemas(
    text: str, language: str, name: str, schemas: Callable[[alg.Query], Any], *, time: str, type: str
) -> list[errors.TocsinError]:
    """Everything that is wrong with a text: its names and structure, and its attributes against schemas.

    `schemas` finds the schemas, as for `Pattern.check`, once the event types are known. What it raises is a problem
    too.
    """
    problems = errors.Problems()
    with errors.collecting(problems):
        translation = compiled(text, language, name, {}, is_partial=True)[2]
        problems.extend(translation.problems)
        query, unfit = translation.query, list[errors.TocsinError]()
        with errors.collecting(unfit):
            prepare(query, schemas_of(schemas(query), alg.event_types(query.pattern), type), time)
        # A name that is wrong has no attributes, and one mistake is reported once.
        places = [problem.where for problem in problems]
        problems += [
            problem
            for problem in unfit
            if problem.where is None
            or not (isinstance(problem, errors.UnknownVariableError) or problem.where in places)
        ]
    return problems.in_order()


# --- schemas --------------------------------------------------------------------------------------

SCHEMA_HINT = "write `{'ts': 'timestamp', 'amount': 'double'}` for each event type."


def schemas_of(given: Any, types: Iterable[str], type_column: str) -> dict[str, Mapping[str, Any]]:
    """The attributes of each event type: told type by type, or by one DataFrame or schema for all."""
    from tocsin.engines.spark.compat import is_dataframe, is_schema

    if is_dataframe(given) or is_schema(given):
        from tocsin.engines.spark.inputs import require_type_column
        from tocsin.engines.spark.spark_types import checked, types_in

        schema = checked(given, "the input")
        require_type_column(type_column, schema)
        return dict.fromkeys(types, types_in(schema))
    if not isinstance(given, Mapping):
        raise errors.InvalidInputError(
            f"`schemas` is a {type(given).__name__}, neither a DataFrame nor a mapping from event type to schema.",
            hint="write `{'Login': {'ts': 'timestamp', 'user': 'string'}}`, or pass one DataFrame with a type column.",
        )
    problems = errors.Problems()
    found: dict[str, Mapping[str, Any]] = {}
    for name, schema in given.items():
        with errors.collecting(problems):
            found[name] = _attributes(name, schema)
    errors.raise_all(problems)
    return found


def _attributes(name: Any, given: Any) -> Mapping[str, Any]:
    """The attributes of an event type, from whatever tells them."""
    from tocsin.engines.spark.compat import is_dataframe, is_schema

    if not isinstance(name, str):
        raise errors.InvalidInputError(
            f"`schemas` has the key {errors.shown(name)}, which is not the name of an event type.", hint=SCHEMA_HINT
        )
    if isinstance(given, Mapping):
        for attribute, kind in given.items():
            if not isinstance(attribute, str) or not isinstance(kind, str | DataType):
                raise errors.InvalidInputError(
                    f"The schema of `{name}` maps {errors.shown(attribute)} to {errors.shown(kind)}, "
                    "not an attribute to the name of its type.",
                    hint=SCHEMA_HINT,
                )
        return given
    if is_dataframe(given) or is_schema(given):
        from tocsin.engines.spark.spark_types import checked, types_in

        return types_in(checked(given, f"the input of `{name}`"))
    raise errors.InvalidInputError(
        f"A schema is a DataFrame, a StructType or a mapping from attribute to type, not a {type(given).__name__}.",
        hint=SCHEMA_HINT,
    )
