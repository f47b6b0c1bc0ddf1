"""The SQL of a workload for DuckDB: several plans, of which the fastest counts.

join
    The self join that the query says literally: the key, and ranges of times. Without a key DuckDB runs an IEJoin.
buckets
    Equi-joins on (key, time bucket of the first event); later events are copied into the buckets that may need them.
wide buckets
    The same with buckets of four windows: fewer copies, more pairs to look at.
asof
    Two ASOF joins for each step find the first and the last event that may follow; those between are joined by number.

Positions and lists of what may follow, made by window functions, took from 1.2 to 20 times as long as buckets.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa

from benchmarks.race import StoppedError
from benchmarks.shapes import Shape, Step

WIDE = 4
Plan = Callable[[Shape], str]
Table = Callable[[Step, int], str]  # the SELECT of a step at its place


def answer(
    sql: str, events: pa.Table | str, *, threads: int, time: str = "timestamp", timeout_s: float = 600.0
) -> pa.Table:
    """The rows of a query over `events`: an Arrow table, or a call that reads files, such as read_parquet('a/*')."""
    with duckdb.connect(config={"threads": threads, "temp_directory": tempfile.gettempdir()}) as database:
        database.execute("SET TimeZone = 'UTC'")
        if isinstance(events, str):
            database.execute(f"CREATE VIEW given AS FROM {events}")
        else:
            database.register("given", events)
        to_micros, from_micros = ("epoch_us(ts)", "make_timestamptz(t)") if time == "timestamp" else ("ts", "t")
        database.execute(f"CREATE VIEW events AS SELECT {to_micros} AS t, id, type, value AS v, key FROM given")
        database.execute(f"CREATE MACRO clock(t) AS {from_micros}")
        timer = threading.Timer(timeout_s, database.interrupt)
        timer.start()
        try:
            return database.sql(sql).to_arrow_table()
        except duckdb.InterruptException as error:
            raise StoppedError(f"after {timeout_s:g} s") from error
        finally:
            timer.cancel()


def join(shape: Shape) -> str:
    return _joined(shape, _plain(shape))


def buckets(shape: Shape, wide: int = 1) -> str:
    width = wide * shape.window_us

    def table(step: Step, place: int) -> str:
        return _events(shape, step, _copies(shape, width) if place else f"t // {width} AS bucket")

    return _joined(shape, table, "bucket")


def wide_buckets(shape: Shape) -> str:
    return buckets(shape, WIDE)


def _joined(shape: Shape, table: Table, *on: str) -> str:
    """Joins of the steps in order, each on the key, on `on` and on its ranges."""
    names = (*_keys(shape), *on)
    lines = [f"SELECT {_outputs(shape)}", f"FROM ({table(shape.positives[0], 0)}) e0"]
    for place, step in enumerate(shape.positives[1:], start=1):
        conditions = [*_same(f"e{place}", names), *_range(shape, place), *_gap(shape, place)]
        lines.append(f"JOIN ({table(step, place)}) e{place} ON {' AND '.join(conditions)}")
    return "\n".join([*lines, *_absent(shape, table, names)])


def asof(shape: Shape) -> str:
    keys = _keys(shape)
    number = f"row_number() OVER ({_by(shape)}ORDER BY t) AS n"
    tables, lines = [], [f"SELECT {_outputs(shape)}", f"FROM ({_events(shape, shape.positives[0])}) e0"]
    for place, step in enumerate(shape.positives[1:], start=1):
        tables.append(f"s{place} AS MATERIALIZED ({_events(shape, step, number)})")
        # Events of one time are either all in a range or none.
        columns = ", ".join(("t", *keys))
        tables.append(f"d{place} AS (SELECT {columns}, min(n) AS a, max(n) AS b FROM s{place} GROUP BY {columns})")
        first, last, event = f"first{place}", f"last{place}", f"e{place}"
        after, before = f"{first}.t > e{place - 1}.t", f"{last}.t < e0.t + {shape.window_us}"
        lines += [
            f"ASOF JOIN d{place} {first} ON {' AND '.join((*_same(first, keys), after))}",
            f"ASOF JOIN d{place} {last} ON {' AND '.join((*_same(last, keys), before))}",
            f"CROSS JOIN unnest(range({first}.a, {last}.b + 1)) u{place}(n)",
            f"JOIN s{place} {event}",
            f"ON {' AND '.join((*_same(event, keys), f'{event}.n = u{place}.n', *_gap(shape, place)))}",
        ]
    return "\n".join([f"WITH {', '.join(tables)}", *lines, *_absent(shape, _plain(shape), keys)])


def _absent(shape: Shape, table: Table, names: tuple[str, ...]) -> Iterator[str]:
    """The negated steps."""
    word = "WHERE"
    for place in range(1, len(shape.positives)):
        for step in shape.negated_before(place):
            between = (*_same("n", names), f"n.t > e{place - 1}.t", f"n.t < e{place}.t")
            yield f"{word} NOT EXISTS (FROM ({table(step, place)}) n WHERE {' AND '.join(between)})"
            word = "AND"


def count(shape: Shape, wide: int = 1) -> str:
    """How many matches a sequence of three has when its middle step is an iteration.

    Every pair of a first and a last event has 2^n − 1, with n events of the middle step between the two. The times of
    events must differ, as they do in the uniform stream.
    """
    width, names = wide * shape.window_us, _keys(shape)
    first, middle, last = (step.type for step in shape.steps)
    # CASE, because FILTER takes a hundred times as long without a key.
    counted = (
        f"count(CASE WHEN type = '{middle}' THEN 1 END) OVER ({_by(shape)}ORDER BY t ROWS UNBOUNDED PRECEDING) AS n"
    )
    columns = ", ".join(("t", "type", *names))
    return "\n".join(
        [
            f"WITH c AS (SELECT {columns}, {counted} FROM events WHERE type IN ('{first}', '{middle}', '{last}'))",
            "SELECT coalesce(sum((1::BIGINT << (e1.n - e0.n)) - 1), 0)::BIGINT AS n",
            f"FROM (SELECT *, t // {width} AS bucket FROM c WHERE type = '{first}') e0",
            f"JOIN (SELECT *, {_copies(shape, width)} FROM c WHERE type = '{last}') e1",
            f"ON {' AND '.join((*_same('e1', (*names, 'bucket')), *_range(shape, 1)))}",
        ]
    )


def wide_count(shape: Shape) -> str:
    return count(shape, WIDE)


def _plain(shape: Shape) -> Table:
    return lambda step, place: _events(shape, step)


def _events(shape: Shape, step: Step, *more: str) -> str:
    above = "" if step.above is None else f" AND v > {step.above!r}"
    return f"SELECT {', '.join(('t', 'id', 'v', *_keys(shape), *more))} FROM events WHERE type = '{step.type}'{above}"


def _copies(shape: Shape, width: int) -> str:
    """A row for each bucket of a first event that is earlier than this one, and less than a window earlier."""
    return f"unnest(range((t - {shape.window_us - 1}) // {width}, (t - 1) // {width} + 1)) AS bucket"


def _keys(shape: Shape) -> tuple[str, ...]:
    return ("key",) if shape.is_keyed else ()


def _by(shape: Shape) -> str:
    return "PARTITION BY key " if shape.is_keyed else ""


def _same(table: str, names: tuple[str, ...]) -> Iterator[str]:
    return (f"{table}.{name} = e0.{name}" for name in names)


def _range(shape: Shape, place: int) -> Iterator[str]:
    yield f"e{place}.t > e{place - 1}.t"
    yield f"e{place}.t < e0.t + {shape.window_us}"


def _gap(shape: Shape, place: int) -> Iterator[str]:
    if shape.gap is not None:
        yield f"e{place}.v > e{place - 1}.v + {shape.gap!r}"


def _outputs(shape: Shape) -> str:
    last = len(shape.positives) - 1
    ids = [f"e{place}.id" for place in range(last + 1)]
    columns = ['clock(e0.t) AS "start"', f'clock(e{last}.t) AS "end"']
    if shape.is_iteration:
        return ", ".join((*columns, f"[{', '.join(ids)}] AS ids", f"e{last}.v AS value"))
    columns += [f"{id} AS {step.variable}_id" for id, step in zip(ids, shape.positives, strict=True)]
    return ", ".join((*columns, f"e{last}.v AS value", *(f"e0.{name} AS {name}" for name in _keys(shape))))


# Those that find all matches, and those that count them.
PLANS: dict[str, Plan] = {"join": join, "buckets": buckets, "wide buckets": wide_buckets, "asof": asof}
COUNTS: dict[str, Plan] = {"buckets": count, "wide buckets": wide_count}
