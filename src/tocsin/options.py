"""The options of `match`, `check` and `explain`: their values, and where each has an effect.

`Options` has those of `match`, checked once: `Pattern` and `Rules` make it, and every engine reads it. `Demands` has
those of `check`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from tocsin import errors
from tocsin.algebra.units import MICROSECONDS, Limit, Unit, check_unit, parse_limit
from tocsin.analysis.rates import Rate, parse_rates
from tocsin.language.durations import microseconds
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.optimizer.statistics import Statistics

Check: TypeAlias = Callable[[str, Any], None]  # of the name and the value of an option

LOCAL, BATCH, STREAM, NOTHING = "local", "batch", "stream", "nothing"
# For each strategy, where it runs: `tocsin.plan.strategies.register` adds them.
STRATEGIES: dict[str, frozenset[str]] = {"auto": frozenset({LOCAL, BATCH, STREAM})}
STRATEGIES_OF_RULES = ("auto", "aggregate")
MOST_NUMBER = 2**63 - 1
MOST_TASK_MEMORY = "512MB"
FAIL = "fail"  # what a stream does with late events, other than to count or to show them


def strategies_in(place: str) -> tuple[str, ...]:
    """The strategies that run locally, on a batch or on a stream."""
    return tuple(name for name, places in STRATEGIES.items() if place in places)


# --- values: a check raises InvalidOptionError for a value that an option cannot have -------------


def _not(name: str, value: Any, expected: str, hint: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{name}={errors.shown(value)}` is not {expected}.", hint=hint)


def must_be(expected: str, holds: Callable[[Any], bool], hint: str) -> Check:
    """A check that something holds for a value; `{}` in the hint is the name of the option."""

    def check(name: str, value: Any) -> None:
        if not holds(value):
            raise _not(name, value, expected, hint.format(name))

    return check


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_name, value))


def _is_names_by_type(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_name, [*value.keys(), *value.values()]))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_time = must_be(
    "the name of a column, nor a mapping from event type to one",
    lambda value: _is_name(value) or _is_names_by_type(value),
    "write `time='at'`.",
)
_tie = must_be(
    "the name of a column, nor a list of such names",
    lambda value: value is None or _is_name(value) or _is_names(value),
    "write `tie='seq'`.",
)
_type = must_be("the name of a column", _is_name, "write `type='kind'`.")
_id = _optional(must_be("the name of a column", _is_name, "write `id='event_id'`."))
_number = must_be(
    "a positive integer of at most 64 bits",
    lambda value: _is_count(value) and value <= MOST_NUMBER,
    "write an `int`, or leave it out.",
)
_late = must_be(
    f"True, False or {FAIL!r}",
    lambda value: isinstance(value, bool) or (isinstance(value, str) and value == FAIL),
    f'write `late="{FAIL}"`.',
)
_statistics = _optional(
    must_be("statistics", lambda value: isinstance(value, Statistics), "write `statistics=pattern.analyze(inputs)`.")
)
_flag = must_be("True or False", lambda value: isinstance(value, bool), "write `{}=True`.")  # the text "no" would be on
check_name = _optional(must_be("a text", lambda value: isinstance(value, str), 'write `name="fraud.sase"`.'))
check_max_text = must_be(
    "a number of characters", _is_count, "write the most characters a text may have, as in `max_text=5_000_000`."
)
_live_keys = _optional(
    must_be(
        "a number of keys",
        _is_count,
        "write how many different keys have events while events are kept, as in `live_keys=100_000`.",
    )
)


def _one_of(*known: str) -> Check:
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


_form = _one_of("matches", "compact")


def _form_of_rules(name: str, value: Any) -> None:
    _form(name, value)
    if value == "compact":
        raise errors.InvalidOptionError(
            '`form="compact"` is not for rules: an automaton makes compact rows of one pattern, and rules are searched '
            "for together.",
            hint="leave out `form=`.",
        )


def _bytes(name: str, value: Any) -> None:
    limit = parse_limit(value, name)
    if limit.is_per_key or limit.bytes < 1:
        raise _not(name, value, "a number of bytes for one task", f'write `{name}="2GB"`.')


def _duration(name: str, value: Any) -> None:
    if value is not None:
        microseconds(value, name)


def _anything(name: str, value: Any) -> None:
    """Accept a value that is checked where the inputs are known."""


def untimed(name: str) -> errors.InvalidOptionError:
    """An event type that a mapping of time columns leaves out."""
    return errors.InvalidOptionError(
        f"`time=` names no time column for the event type `{name}`.", hint=f"add it: `time={{..., {name!r}: 'ts'}}`."
    )


# Options whose values a program of rules does not all have.
NOT_OF_RULES: Mapping[str, Check] = {"strategy": _strategy_of_rules, "form": _form_of_rules}


# --- the options of `match` -----------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option of `match`."""

    check: Check
    default: Any
    no_effect: Mapping[str, str]  # where a value other than the default would change nothing and is refused, and why

    def is_given(self, value: Any) -> bool:
        """Whether a value asks for more than the default does."""
        return value is not None if self.default is None else bool(value != self.default)


def _option(default: Any, check: Check, no_effect: Mapping[str, str] | None = None) -> Any:
    return field(default=default, metadata={"option": Option(check, default, no_effect or {})})


def _for_streams(why: str) -> dict[str, str]:
    return {LOCAL: why, BATCH: why, NOTHING: why}


_READS = {NOTHING: "it names a column of the inputs"}
_ONE_PLAN = {LOCAL: "it guides the choice of a plan on Spark, and the local engine has one plan"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The options of one query: those of `match` under their names, and two that users do not give.

    A value that an option cannot have raises InvalidOptionError here. Whether an option has an effect depends on the
    inputs too: `tocsin.engines.dispatch.check_options`.
    """

    time: str | Mapping[str, str] = _option("ts", _time)
    tie: str | Iterable[str] | None = _option(None, _tie, _READS)
    type: str = _option("type", _type, _READS)
    id: str | None = _option(None, _id, _READS)
    time_unit: str | None = _option(
        None, lambda _, value: check_unit(value), {NOTHING: "it is the unit of a column of the inputs"}
    )
    rates: Mapping[str, Any] | None = _option(None, _anything, _ONE_PLAN)
    strategy: str = _option("auto", _strategy)
    lateness: str | dt.timedelta | None = _option(None, _duration, _for_streams("only events of a stream come late"))
    statistics: Statistics | None = _option(None, _statistics, _ONE_PLAN)
    max_matches_per_start: int = _option(MOST_MATCHES_PER_START, _number)
    max_task_memory: int | str = _option(MOST_TASK_MEMORY, _bytes)
    engine: str = _option("spark", _one_of("spark", "local"))
    form: str = _option("matches", _form)
    shards: int | None = _option(None, _optional(_number), _for_streams("it splits the state of a stream"))
    emit: str = _option("auto", _one_of("auto", "watermark"), _for_streams("it says when a stream emits its matches"))
    heartbeats: Any = _option(None, _anything, _for_streams("they advance the watermark of a stream"))
    late: bool | str = _option(False, _late, _for_streams("only events of a stream come late"))
    idle_timeout: str | dt.timedelta | None = _option(
        None, _duration, _for_streams("it advances the watermark of a stream")
    )
    # The width of the time slices of a batch, in the unit of its times; by default 16 times the reach of the pattern.
    slice_us: int | None = None
    unit: Unit = MICROSECONDS  # of integer times, in which all lengths of time are given

    def __post_init__(self) -> None:
        """Check every value; all that is wrong is raised at once."""
        object.__setattr__(self, "tie", _kept(self.tie))
        problems: list[errors.TocsinError] = []
        for name, option in OPTIONS.items():
            with errors.collecting(problems):
                option.check(name, getattr(self, name))
        with errors.collecting(problems):
            _optional(_number)("slice_us", self.slice_us)
        errors.raise_all(problems)

    @classmethod
    def checked(cls, given: Mapping[str, Any], *, of_rules: bool = False) -> Options:
        """The options that are given, for a pattern or for a program of rules; all that is wrong is raised at once."""
        problems: list[errors.TocsinError] = []
        right = dict(given)
        for name in (name for name in NOT_OF_RULES if of_rules and name in right):
            value = right.pop(name)
            with errors.collecting(problems):
                NOT_OF_RULES[name](name, value)
                right[name] = value
        options = cls()
        with errors.collecting(problems):
            options = cls(**right)
        errors.raise_all(problems)
        return options

    def counting(self, unit: Unit) -> Options:
        """The options for times of another unit."""
        return replace(self, unit=unit)

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that order events of one instant."""
        return _names_in(self.tie)

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


OPTIONS: Mapping[str, Option] = {
    each.name: each.metadata["option"] for each in fields(Options) if "option" in each.metadata
}


def _kept(tie: Any) -> Any:
    """Columns that order events, as a tuple where an iterator has them."""
    return tuple(tie) if isinstance(tie, Iterable) and not isinstance(tie, str | bytes | Mapping) else tie


def _names_in(tie: Any) -> tuple[str, ...]:
    return (tie,) if isinstance(tie, str) else tuple(tie or ())


# --- the options of `check` -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Demands:
    """The options of `check`, and the demands on a live query among them."""

    rates: Mapping[str, Any] | None = None
    time: str | Mapping[str, str] = "ts"
    tie: str | Iterable[str] | None = None
    type: str = "type"
    time_unit: str | None = None
    lateness: str | dt.timedelta | None = None
    streaming: bool = False
    guarantees: bool = True
    max_state: str | int | None = None
    live_keys: int | None = None

    def __post_init__(self) -> None:
        """Check columns and switches, without which nothing else can be checked."""
        object.__setattr__(self, "tie", _kept(self.tie))
        problems: list[errors.TocsinError] = []
        for name, check in {"time": _time, "type": _type, "tie": _tie, "streaming": _flag, "guarantees": _flag}.items():
            with errors.collecting(problems):
                check(name, getattr(self, name))
        errors.raise_all(problems)

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that order events of one instant."""
        return _names_in(self.tie)

    def measures(self, problems: list[errors.TocsinError]) -> tuple[int, Limit | None]:
        """How much longer events are remembered, and the most that may be kept; all that is wrong is collected."""
        late_us, limit = 0, None
        with errors.collecting(problems):
            late_us = microseconds(self.lateness)
        with errors.collecting(problems):
            limit = None if self.max_state is None else parse_limit(self.max_state)
        with errors.collecting(problems):
            _live_keys("live_keys", self.live_keys)
        return late_us, limit
