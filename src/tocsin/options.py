"""The options of `match`, `check` and `explain`: their values, and where each has an effect.

`Options` holds all of them, checked once. `Pattern` and `Rules` make it, and every engine reads it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tocsin import errors
from tocsin.algebra.units import MICROSECONDS, Unit, check_unit, parse_limit
from tocsin.analysis.rates import Rate, parse_rates
from tocsin.language.durations import microseconds
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.optimizer.statistics import Statistics

LOCAL, BATCH, STREAM, NOTHING = "local", "batch", "stream", "nothing"
# By name, where a strategy runs; `plan.strategies` has what they do, and adds others here.
STRATEGIES: dict[str, frozenset[str]] = {
    "auto": frozenset({LOCAL, BATCH, STREAM}),
    "join": frozenset({BATCH, STREAM}),
    "sliding-window": frozenset({BATCH}),
    "count": frozenset({BATCH}),
    "trend": frozenset({LOCAL, BATCH, STREAM}),
    "kernel": frozenset({LOCAL, BATCH, STREAM}),
    "clustered": frozenset({BATCH}),
    "automaton": frozenset({LOCAL, BATCH, STREAM}),
    "aggregate": frozenset({LOCAL, BATCH, STREAM}),
}
STRATEGIES_OF_RULES = ("auto", "aggregate")
MOST_NUMBER = 2**63 - 1
MOST_TASK_MEMORY = "512MB"
FAIL = "fail"  # what a stream does with late events, other than to count or to show them


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
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_NUMBER:
        raise errors.InvalidOptionError(
            f"`{name}={errors.shown(value)}` is not a positive integer of at most 64 bits.",
            hint="write an `int`, or leave it out.",
        )


def strategies_in(place: str) -> tuple[str, ...]:
    """The strategies that run locally, on a batch or on a stream."""
    return tuple(name for name, places in STRATEGIES.items() if place in places)


def _optional_positive(name: str, value: Any) -> None:
    if value is not None:
        _positive(name, value)


def _one_of(*known: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise errors.InvalidOptionError(
                f"`{name}={errors.shown(value)}` is none of {', '.join(map(repr, known))}.",
                hint=errors.did_you_mean(value, known, f"values of `{name}`"),
            )

    return check


def _strategy(name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in STRATEGIES:
        raise errors.InvalidOptionError(
            f"There is no strategy `{errors.named(value)}`.",
            hint=errors.did_you_mean(value, STRATEGIES, "strategies"),
        )


def _strategy_of_rules(name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in STRATEGIES_OF_RULES:
        raise errors.InvalidOptionError(
            f"Rules do not run with the strategy `{errors.named(value)}`.",
            hint=errors.did_you_mean(value, STRATEGIES_OF_RULES, "strategies of rules"),
        )


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
    if not isinstance(value, bool) and not (isinstance(value, str) and value == FAIL):
        raise _not_a(name, value, f"True, False or {FAIL!r}", f'late="{FAIL}"')


def _statistics(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Statistics):
        raise _not_a(name, value, "statistics", "statistics=pattern.analyze(inputs)")


def _anything(name: str, value: Any) -> None:
    """Accept a value that is checked where the inputs are known."""


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


def check_option(name: str, value: Any, *, of_rules: bool = False) -> None:
    """Refuse a value that an option of `match` cannot have, for a pattern or for a program of rules.

    Raises
    ------
    InvalidOptionError
        With the nearest value that it can have.
    """
    check = NOT_OF_RULES.get(name, OPTIONS[name].check) if of_rules else OPTIONS[name].check
    check(name, value)


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


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_name, value))


def _is_names_by_type(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_name, [*value.keys(), *value.values()]))


def _not_a(option: str, value: Any, expected: str, example: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{option}={errors.shown(value)}` is not {expected}.", hint=f"write `{example}`.")


def check_max_text(max_text: Any) -> None:
    """Refuse a length of texts that is none."""
    if isinstance(max_text, bool) or not isinstance(max_text, int) or max_text < 1:
        raise errors.InvalidOptionError(
            f"`max_text={errors.shown(max_text)}` is not a number of characters.",
            hint="write the most characters a text may have, as in `max_text=5_000_000`.",
        )


def check_flag(name: str, value: Any) -> None:
    """Refuse a switch that is neither on nor off: the text "no" would be on."""
    if not isinstance(value, bool):
        raise _not_a(name, value, "True or False", f"{name}=True")


def check_name(name: Any) -> None:
    """Refuse a name of a text that is none."""
    if name is not None and not isinstance(name, str):
        raise _not_a("name", name, "a text", 'name="fraud.sase"')


def check_live_keys(live_keys: Any) -> None:
    """Refuse a number of keys that is none."""
    if live_keys is None:
        return
    if isinstance(live_keys, bool) or not isinstance(live_keys, int) or live_keys < 1:
        raise errors.InvalidOptionError(
            f"`live_keys={errors.shown(live_keys)}` is not a number of keys.",
            hint="write how many different keys have events while events are kept, as in `live_keys=100_000`.",
        )


# --- all of them ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The options of one query: those of `match` under their names, and two that users do not give.

    A value that an option cannot have raises InvalidOptionError here. Whether an option has an effect depends on the
    inputs too: `tocsin.engines.check_options`.

    Attributes
    ----------
    slice_us
        The width of the time slices of a batch, in the unit of its times; by default sixteen times the pattern's reach.
    unit
        The unit of integer times, in which all lengths of time are given.
    """

    time: str | Mapping[str, str] = "ts"
    tie: str | Iterable[str] | None = None
    type: str = "type"
    id: str | None = None
    time_unit: str | None = None
    rates: Mapping[str, Any] | None = None
    strategy: str = "auto"
    lateness: str | dt.timedelta | None = None
    statistics: Statistics | None = None
    max_matches_per_start: int = MOST_MATCHES_PER_START
    max_task_memory: int | str = MOST_TASK_MEMORY
    engine: str = "spark"
    form: str = "matches"
    shards: int | None = None
    emit: str = "auto"
    heartbeats: Any = None
    late: bool | str = False
    idle_timeout: str | dt.timedelta | None = None
    slice_us: int | None = None
    unit: Unit = MICROSECONDS

    def __post_init__(self) -> None:
        """Check every value; all that is wrong is raised at once."""
        object.__setattr__(self, "tie", options_in({"tie": self.tie})["tie"])
        problems: list[errors.TocsinError] = []
        for name, option in OPTIONS.items():
            with errors.collecting(problems):
                option.check(name, getattr(self, name))
        with errors.collecting(problems):
            _optional_positive("slice_us", self.slice_us)
        errors.raise_all(problems)

    def counting(self, unit: Unit) -> Options:
        """The options for times of another unit."""
        return replace(self, unit=unit)

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that order events of one instant."""
        return (self.tie,) if isinstance(self.tie, str) else tuple(self.tie or ())

    @property
    def times(self) -> Mapping[str, str]:
        """The time column of every event type, where it is given by type."""
        assert isinstance(self.time, Mapping)
        return self.time

    @cached_property
    def task_bytes(self) -> int:
        """How many bytes a task may hold for matches."""
        return parse_limit(self.max_task_memory).bytes

    @cached_property
    def lateness_us(self) -> int | None:
        """How late the events of a stream may come, in the unit of its times; None: as its watermark says."""
        return None if self.lateness is None else self.unit.ticks(microseconds(self.lateness))

    @cached_property
    def idle_ms(self) -> int | None:
        """After how many milliseconds of wall-clock time an idle input no longer holds back the watermark."""
        return None if self.idle_timeout is None else max(microseconds(self.idle_timeout) // 1000, 1)

    @property
    def with_late(self) -> bool:
        """Whether late events are rows of the result."""
        return self.late is True

    @property
    def is_strict(self) -> bool:
        """Whether a late event stops the stream."""
        return self.late == FAIL

    @cached_property
    def declared(self) -> dict[str, Rate]:
        """The declared rates, in the unit of the times."""
        found = {} if self.rates is None else parse_rates(self.rates)
        return {name: rate.counting(self.unit) for name, rate in found.items()}

    @cached_property
    def known(self) -> Statistics | None:
        """The statistics, or those that follow from declared rates, in the unit of the times."""
        found = self.statistics
        if found is None and self.rates:
            found = Statistics.of(rates=self.rates)
        return None if found is None else found.times(1 / self.unit.microseconds)
