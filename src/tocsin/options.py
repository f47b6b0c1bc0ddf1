"""The schemas and options of `match`, `check` and `explain`: what each may be, and what to write instead."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.units import check_unit
from tocsin.analysis.limits import parse_limit
from tocsin.analysis.rates import parse_rates
from tocsin.analysis.types import DataType
from tocsin.language import durations
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.optimizer.statistics import Statistics
from tocsin.physical.claims import STRATEGIES_WITHOUT_SPARK, check_strategy
from tocsin.physical.programs.claims import check_strategy as check_strategy_of_rules

LONGEST_US = 2**62  # sums of a time and a length fit into 64 bits
MOST_TASK_MEMORY = "512MB"
FAIL = "fail"  # what a stream does with late events, other than to count or to show them
SCHEMA_HINT = "write `{'ts': 'timestamp', 'amount': 'double'}` for each event type."


def check_columns(*, time: Any = "ts", type: Any = "type", tie: Any = None, id: Any = None) -> None:
    """Refuse names of columns that are no names.

    Raises
    ------
    InvalidOptionError
        For the one that is wrong, or a `QueryErrors` with all of them.
    """
    problems: list[errors.TocsinError] = []
    for name, value in (("time", time), ("type", type), ("tie", tie), ("id", id)):
        with errors.collecting(problems):
            OPTIONS[name].check(name, value)
    errors.raise_all(problems)


# --- every option of `match`: what it may be, and where it has an effect --------------------------


@dataclass(frozen=True)
class Option:
    """One option of `match`.

    Attributes
    ----------
    check
        Raises for a value that the option cannot have.
    default
        Its value when it is left out.
    no_effect
        Where it would change nothing, and why: a value other than the default is refused there.
    """

    check: Callable[[str, Any], None]
    default: Any = None
    no_effect: Mapping[str, str] = field(default_factory=dict)

    def is_given(self, value: Any) -> bool:
        """Whether a value asks for more than the default does."""
        return value is not None if self.default is None else bool(value != self.default)


def _column(name: str, value: Any) -> None:
    if not _is_name(value):
        raise _not_a(name, value, "the name of a column", f"{name}='kind'")


def _optional_column(name: str, value: Any) -> None:
    if value is not None and not _is_name(value):
        raise _not_a(name, value, "the name of a column", f"{name}='event_id'")


def _time(name: str, value: Any) -> None:
    if not _is_name(value) and not _is_names_by_type(value):
        raise _not_a(name, value, "the name of a column, nor a mapping from event type to one", "time='at'")


def _tie(name: str, value: Any) -> None:
    if value is not None and not _is_name(value) and not _is_names(value):
        raise _not_a(name, value, "the name of a column, nor a list of such names", "tie='seq'")


def _time_unit(name: str, value: Any) -> None:
    check_unit(value)


def _positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise errors.InvalidOptionError(f"`{name}={value!r}` is not a positive integer.", hint="leave it out.")


def _optional_positive(name: str, value: Any) -> None:
    if value is not None:
        _positive(name, value)


def _one_of(*known: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise errors.InvalidOptionError(
                f"`{name}={value!r}` is none of {', '.join(map(repr, known))}.",
                hint=errors.did_you_mean(str(value), known, f"values of `{name}`"),
            )

    return check


def _strategy(name: str, value: Any) -> None:
    check_strategy(value)


def _strategy_of_rules(name: str, value: Any) -> None:
    check_strategy_of_rules(value)


def _form_of_rules(name: str, value: Any) -> None:
    OPTIONS[name].check(name, value)
    if value == "compact":
        raise errors.InvalidOptionError(
            '`form="compact"` is not for rules: an automaton makes compact rows of one pattern, and rules are searched '
            "for together.",
            hint="leave out `form=`.",
        )


def _bytes(name: str, value: Any) -> None:
    limit = parse_limit(value, name)
    if limit.is_per_key or limit.bytes < 1:
        raise _not_a(name, value, "a number of bytes for one task", f'{name}="2GB"')


def _duration(name: str, value: Any) -> None:
    if value is not None:
        microseconds(value, name)


def _late(name: str, value: Any) -> None:
    if not isinstance(value, bool) and value != FAIL:
        raise _not_a(name, value, f"True, False or {FAIL!r}", f'late="{FAIL}"')


def _statistics(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Statistics):
        raise _not_a(name, value, "statistics", "statistics=pattern.analyze(inputs)")


def _anything(name: str, value: Any) -> None:
    """Accept a value that is checked where the inputs are known."""


LOCAL, BATCH, STREAM, NOTHING = "local", "batch", "stream", "nothing"
_PLACES = {LOCAL: 'with `engine="local"`', BATCH: "on a batch", STREAM: "on a stream", NOTHING: "without `inputs`"}


def _for_streams(why: str) -> dict[str, str]:
    return {LOCAL: why, BATCH: why, NOTHING: why}


_READS = {NOTHING: "it names a column of the inputs"}
_ONE_PLAN = "it guides the choice of a plan on Spark, and the local engine has one plan"
OPTIONS: Mapping[str, Option] = {
    "time": Option(_time, "ts"),
    "tie": Option(_tie, no_effect=_READS),
    "type": Option(_column, "type", _READS),
    "id": Option(_optional_column, no_effect=_READS),
    "time_unit": Option(_time_unit, no_effect={NOTHING: "it is the unit of a column of the inputs"}),
    "engine": Option(_one_of("spark", "local"), "spark"),
    "form": Option(_one_of("matches", "compact"), "matches"),
    "strategy": Option(_strategy, "auto"),
    "max_matches_per_start": Option(_positive, MOST_MATCHES_PER_START),
    "max_task_memory": Option(_bytes, MOST_TASK_MEMORY),
    "statistics": Option(_statistics, no_effect={LOCAL: _ONE_PLAN}),
    "rates": Option(_anything, no_effect={LOCAL: _ONE_PLAN}),
    "lateness": Option(_duration, no_effect=_for_streams("only events of a stream come late")),
    "shards": Option(_optional_positive, no_effect=_for_streams("it splits the state of a stream")),
    "emit": Option(_one_of("auto", "watermark"), "auto", _for_streams("it says when a stream emits its matches")),
    "heartbeats": Option(_anything, no_effect=_for_streams("they advance the watermark of a stream")),
    "late": Option(_late, False, _for_streams("only events of a stream come late")),
    "idle_timeout": Option(_duration, no_effect=_for_streams("it advances the watermark of a stream")),
}
# Options whose values a program of rules does not all have.
NOT_OF_RULES: Mapping[str, Callable[[str, Any], None]] = {"strategy": _strategy_of_rules, "form": _form_of_rules}
_OF_ENGINES = ("strategy", "max_matches_per_start", "statistics", "shards", "emit", "heartbeats")
# The strategies in which nothing counts the matches of a start.
_UNLIMITED = ("join", "sliding-window", "count", "trend")


def names_of(tie: Any) -> tuple[str, ...]:
    """The columns of `tie=`.

    Raises
    ------
    InvalidOptionError
        When they are no names.
    """
    given = options_in({"tie": tie})["tie"]
    OPTIONS["tie"].check("tie", given)
    return (given,) if isinstance(given, str) else given or ()


def options_in(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options among the arguments of a method; columns that order events as a tuple."""
    given = {name: value for name, value in arguments.items() if name in OPTIONS}
    tie = given.get("tie")
    if isinstance(tie, Iterable) and not isinstance(tie, str | bytes | Mapping):
        given["tie"] = tuple(tie)
    return given


def check_options(given: Mapping[str, Any], inputs: Any, *, of_rules: bool = False) -> str:
    """Refuse, all at once, values that options cannot have, and options that would change nothing.

    Parameters
    ----------
    given
        Options of `match` by name.
    inputs
        The inputs: they tell a batch from a stream.
    of_rules
        Whether a program of rules is matched, and not a pattern.

    Returns
    -------
    str
        Where the query runs: `"local"`, `"batch"` or `"stream"`.

    Raises
    ------
    InvalidOptionError
        For the one that is wrong, or a `QueryErrors` with all of them.
    """
    problems: list[errors.TocsinError] = []
    for name, value in given.items():
        with errors.collecting(problems):
            (NOT_OF_RULES.get(name, OPTIONS[name].check) if of_rules else OPTIONS[name].check)(name, value)
    errors.raise_all(problems)
    place = place_of(given.get("engine", "spark"), inputs)
    for name, value in given.items():
        option = OPTIONS[name]
        if option.is_given(value) and place in option.no_effect:
            problems.append(_without_effect(name, _PLACES[place], option.no_effect[place]))
    problems += _beside_others(given, inputs, place)
    errors.raise_all(problems)
    return place


def place_of(engine: str, inputs: Any) -> str:
    """Where a query runs: `"local"`, `"batch"` or `"stream"`; `"nothing"` when it has no inputs yet."""
    from tocsin.physical.compat import has_streams

    if inputs is None:
        return NOTHING
    if engine == LOCAL:
        return LOCAL
    return STREAM if has_streams(inputs) else BATCH


def _beside_others(given: Mapping[str, Any], inputs: Any, place: str) -> Iterator[errors.TocsinError]:
    """Options that have no effect beside others, or on inputs of this form."""
    is_given = {name: OPTIONS[name].is_given(value) for name, value in given.items()}
    if is_given.get("type") and isinstance(inputs, Mapping):
        yield _without_effect("type", "on one input for each event type", "it names the type column of a single input")
    strategy = given.get("strategy", "auto")
    if place == LOCAL and strategy not in STRATEGIES_WITHOUT_SPARK:
        yield errors.InvalidOptionError(
            f'The strategy `{strategy}` is Spark\'s and does not run with `engine="local"`.',
            hint=errors.did_you_mean(strategy, STRATEGIES_WITHOUT_SPARK, "strategies of the local engine"),
        )
    if is_given.get("form"):
        why = "a compact row holds any number of matches, without ids"
        for name in ("max_matches_per_start", "max_task_memory", "id"):
            if is_given.get(name):
                yield _without_effect(name, 'with `form="compact"`', why)
    elif strategy in _UNLIMITED:
        why = "this strategy does not search start by start"
        for name in ("max_matches_per_start", "max_task_memory"):
            if is_given.get(name):
                yield _without_effect(name, f'with `strategy="{strategy}"`', why)
    if place == BATCH and is_given.get("rates") and is_given.get("statistics"):
        yield _without_effect("rates", "beside `statistics=`", "these have the number of events of each type already")


def _without_effect(name: str, where: str, why: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{name}=` has no effect {where}: {why}.", hint=f"leave out `{name}=`.")


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
    with errors.collecting(problems):
        parse_rates(rates)
    errors.raise_all(problems)


def check_max_text(max_text: Any) -> None:
    """Refuse a length of texts that is none."""
    if isinstance(max_text, bool) or not isinstance(max_text, int) or max_text < 1:
        raise errors.InvalidOptionError(
            f"`max_text={max_text!r}` is not a number of characters.",
            hint="write the most characters a text may have, as in `max_text=5_000_000`.",
        )


def check_live_keys(live_keys: Any) -> None:
    """Refuse a number of keys that is none."""
    if live_keys is None:
        return
    if isinstance(live_keys, bool) or not isinstance(live_keys, int) or live_keys < 1:
        raise errors.InvalidOptionError(
            f"`live_keys={live_keys!r}` is not a number of keys.",
            hint="write how many different keys have events while events are kept, as in `live_keys=100_000`.",
        )


def microseconds(duration: str | dt.timedelta | None, option: str | None = None) -> int:
    """A length of time given as an option, which an error names.

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
    if found is None or not 0 <= found <= LONGEST_US:
        given = f"{duration}" if option is None else f"{option}={duration!r}"
        raise errors.InvalidOptionError(
            f"`{given}` is not a length of time.", hint="write a number and a unit, as in `10 seconds` or `500 ms`."
        )
    return found


def engine_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options that `check_options` has accepted, under the names of `tocsin.physical.engine.Options`."""
    found = {name: given[name] for name in _OF_ENGINES if name in given}
    for name, renamed in (("lateness", "lateness_us"), ("idle_timeout", "idle_us")):
        if given.get(name) is not None:
            found[renamed] = microseconds(given[name])
    if "max_task_memory" in given:
        found["max_task_memory"] = parse_limit(given["max_task_memory"]).bytes
    if "late" in given:
        found |= {"late": given["late"] is True, "is_strict": given["late"] == FAIL}
    return found


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
        with errors.collecting(problems):
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
