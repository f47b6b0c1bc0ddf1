"""The schemas and options of `match`, `check` and `explain`: what each may be, and what to write instead."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.rates import parse_rates
from tocsin.analysis.types import DataType
from tocsin.language import durations

FAIL = "fail"  # what a stream does with late events, other than to count or to show them
SCHEMA_HINT = "write `{'ts': 'timestamp', 'amount': 'double'}` for each event type."


@contextlib.contextmanager
def collecting(problems: list[errors.TocsinError]) -> Iterator[None]:
    """Put what is wrong into a list, to be raised together with all else that is."""
    try:
        yield
    except errors.QueryErrors as several:
        problems.extend(several.errors)
    except errors.TocsinError as problem:
        problems.append(problem)


def check_columns(*, time: Any = "ts", type: Any = "type", tie: Any = None, id: Any = None) -> None:
    """Refuse names of columns that are no names.

    Raises
    ------
    InvalidOptionError
        For the one that is wrong, or a `QueryErrors` with all of them.
    """
    problems: list[errors.TocsinError] = []
    if not _is_name(time) and not _is_names_by_type(time):
        problems.append(_not_a("time", time, "the name of a column, nor a mapping from event type to one", "time='at'"))
    if not _is_name(type):
        problems.append(_not_a("type", type, "the name of a column", "type='kind'"))
    if tie is not None and not _is_name(tie) and not _is_names(tie):
        problems.append(_not_a("tie", tie, "the name of a column, nor a list of such names", "tie='seq'"))
    if id is not None and not _is_name(id):
        problems.append(_not_a("id", id, "the name of a column", "id='event_id'"))
    errors.raise_all(problems)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_name, value))


def _is_names_by_type(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_name, [*value.keys(), *value.values()]))


def _not_a(option: str, value: Any, expected: str, example: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{option}={value!r}` is not {expected}.", hint=f"write `{example}`.")


def check_rates(rates: Any, pattern: alg.Node) -> None:
    """Refuse what is not a rate, and what looks like a misspelt event type of the pattern.

    One mapping may serve several patterns, so that a rate of another type is no mistake by itself.
    """
    if rates is None:
        return
    if not isinstance(rates, Mapping):
        raise errors.InvalidOptionError(
            f"`rates` is a {type(rates).__name__}, not a mapping from event type to rate.",
            hint='write `{"Login": "100/s"}`.',
        )
    known = alg.event_types(pattern)
    undeclared = [name for name in known if name not in rates]
    problems: list[errors.TocsinError] = [
        errors.InvalidOptionError(
            f"`rates` names `{name}`, which is no event type of the pattern.",
            hint=errors.did_you_mean(str(name), known, "event types"),
        )
        for name in rates
        if name not in known and errors.nearest(str(name), undeclared)
    ]
    with collecting(problems):
        parse_rates(rates)
    errors.raise_all(problems)


def check_live_keys(live_keys: Any) -> None:
    """Refuse a number of keys that is none."""
    if live_keys is None:
        return
    if isinstance(live_keys, bool) or not isinstance(live_keys, int) or live_keys < 1:
        raise errors.InvalidOptionError(
            f"`live_keys={live_keys!r}` is not a number of keys.",
            hint="write how many different keys have events while events are kept, as in `live_keys=100_000`.",
        )


def microseconds(duration: str | dt.timedelta | None) -> int:
    """A length of time given as an option.

    Examples
    --------
    >>> microseconds("10 seconds"), microseconds("500ms"), microseconds(None)
    (10000000, 500000, 0)
    """
    if duration is None:
        return 0
    if isinstance(duration, dt.timedelta):
        found: int | None = duration // dt.timedelta(microseconds=1)
    else:
        parts = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*", str(duration))
        known = parts is not None and parts[2].upper() in durations.MICROSECONDS
        found = durations.to_microseconds(parts[1], parts[2]) if parts is not None and known else None
    if found is None or found < 0:
        raise errors.InvalidOptionError(
            f"`{duration}` is not a length of time.", hint="write a number and a unit, as in `10 seconds` or `500 ms`."
        )
    return found


def stream_options(
    lateness: str | dt.timedelta | None,
    shards: int | None,
    heartbeats: Any,
    late: bool | str,
    idle_timeout: str | dt.timedelta | None,
) -> dict[str, Any]:
    """What users ask of streams, as engines take it.

    Raises
    ------
    InvalidOptionError
        For what is wrong, or a `QueryErrors` with all of it.
    """
    problems: list[errors.TocsinError] = []
    late_us = idle_us = None
    if not isinstance(late, bool) and late != FAIL:
        problems.append(_not_a("late", late, f"True, False or {FAIL!r}", f'late="{FAIL}"'))
    with collecting(problems):
        late_us = None if lateness is None else microseconds(lateness)
    with collecting(problems):
        idle_us = None if idle_timeout is None else microseconds(idle_timeout)
    errors.raise_all(problems)
    return {
        "lateness_us": late_us,
        "shards": shards,
        "heartbeats": heartbeats,
        "late": late is True,
        "is_strict": late == FAIL,
        "idle_us": idle_us,
    }


def schemas_of(given: Any, types: Iterable[str], type_column: str) -> dict[str, Mapping[str, Any]]:
    """The attributes of each event type: told type by type, or by one DataFrame or schema for all."""
    from tocsin.physical.compat import is_dataframe, is_schema

    if is_dataframe(given) or is_schema(given):
        from tocsin.physical.inputs import require_type_column
        from tocsin.physical.schemas import attributes_of, checked

        schema = checked(given, "the input")
        require_type_column(type_column, schema)
        return dict.fromkeys(types, attributes_of(schema))
    if not isinstance(given, Mapping):
        raise errors.InvalidInputError(
            f"`schemas` is a {type(given).__name__}, neither a DataFrame nor a mapping from event type to schema.",
            hint="write `{'Login': {'ts': 'timestamp', 'user': 'string'}}`, or pass one DataFrame with a type column.",
        )
    problems: list[errors.TocsinError] = []
    found: dict[str, Mapping[str, Any]] = {}
    for name, schema in given.items():
        with collecting(problems):
            found[name] = _attributes(name, schema)
    errors.raise_all(problems)
    return found


def _attributes(name: Any, given: Any) -> Mapping[str, Any]:
    """The attributes of an event type, from whatever tells them."""
    from tocsin.physical.compat import is_dataframe, is_schema

    if not isinstance(name, str):
        raise errors.InvalidInputError(
            f"`schemas` has the key {name!r}, which is not the name of an event type.", hint=SCHEMA_HINT
        )
    if isinstance(given, Mapping):
        for attribute, kind in given.items():
            if not isinstance(attribute, str) or not isinstance(kind, str | DataType):
                raise errors.InvalidInputError(
                    f"The schema of `{name}` maps {attribute!r} to {kind!r}, not an attribute to the name of its type.",
                    hint=SCHEMA_HINT,
                )
        return given
    if is_dataframe(given) or is_schema(given):
        from tocsin.physical.schemas import attributes_of, checked

        return attributes_of(checked(given, f"the input of `{name}`"))
    raise errors.InvalidInputError(
        f"A schema is a DataFrame, a StructType or a mapping from attribute to type, not a {type(given).__name__}.",
        hint=SCHEMA_HINT,
    )
