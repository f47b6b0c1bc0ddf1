"""Heartbeats: streams of times for silent inputs. Nothing older than a heartbeat will come from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from tocsin import errors
from tocsin.physical.compat import is_dataframe, is_streaming, schema_of
from tocsin.physical.inputs import Inputs
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select
from tocsin.physical.values import Kind, kind_of, micros_of
from tocsin.plan import layout as names


@dataclass(frozen=True)
class Heartbeat:
    """A stream of times: all events of some types before them have come, but for lateness."""

    frame: DataFrame
    time: str
    kind: Kind
    types: tuple[str, ...]


def beats(heartbeat: Heartbeat, columns: Sequence[str], sources: Sequence[tuple[str, ...]]) -> DataFrame:
    """The rows of a heartbeat, with the columns of events: a time for each of its sources, and nothing else."""
    numbers = [number for number, types in enumerate(sources) if set(types) & set(heartbeat.types)]
    known = {
        names.BITS: F.bigint(0),
        names.CLOCK: micros_of(F.col(heartbeat.time), heartbeat.kind),
        names.SOURCE: F.explode(F.array(*map(F.lit, numbers))),
    }
    nothing = F.lit(None)
    return select(heartbeat.frame, *(known.get(name, nothing).alias(name) for name in columns))


def heartbeats_of(given: Any, inputs: Inputs) -> tuple[Heartbeat, ...]:
    """The user's heartbeats: one stream for all inputs, or some by event type.

    Raises `InvalidInputError`, `UnknownEventTypeError`, `MissingColumnError` or `TimeTypeError` for other values.
    """
    if given is None:
        return ()
    streams = {**inputs.streams, **inputs.others}
    if is_dataframe(given):
        given = {None: given}
    if not isinstance(given, Mapping) or not all(map(is_dataframe, given.values())):
        raise errors.InvalidInputError(
            "`heartbeats` is neither a DataFrame nor a mapping from event types to DataFrames.",
            hint="pass a streaming DataFrame with a time column, or `{'Login': beats}`.",
        )
    found = []
    for name, frame in given.items():
        if name is not None and name not in streams:
            raise errors.UnknownEventTypeError(
                f"`heartbeats` names `{name}`, which is no input.",
                hint=errors.did_you_mean(str(name), streams, "inputs"),
            )
        first = streams[name] if name is not None else next(iter(streams.values()))
        schema = schema_of(frame)
        if first.time not in schema.names:
            raise errors.MissingColumnError(
                f"There is no time column `{first.time}` in the heartbeats.",
                hint=errors.did_you_mean(first.time, schema.names, "their columns"),
            )
        kind = kind_of(schema[first.time].dataType)
        if kind is not first.time_kind or not is_streaming(frame):
            raise errors.TimeTypeError(
                f"The heartbeats are no stream of times such as those of `{first.type}`.",
                hint=f"pass a streaming DataFrame whose `{first.time}` has the type of the events'.",
            )
        found.append(Heartbeat(frame, first.time, kind, tuple(streams) if name is None else (name,)))
    return tuple(found)
