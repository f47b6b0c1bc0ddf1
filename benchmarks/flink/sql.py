"""Flink SQL: its tables, and what finds the matches of a sequence of two."""

from __future__ import annotations

from benchmarks.shapes import Shape, Step, duration

# Microseconds are kept in a column: a time attribute of Flink has milliseconds at most.
GIVEN = """\
CREATE TABLE given (
  id BIGINT, us BIGINT, `type` STRING, `key` INT, `value` DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(us / 1000, 3), WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')
"""
FOUND = "CREATE TABLE {name} (s BIGINT, e BIGINT, e1_id BIGINT, e2_id BIGINT, v DOUBLE) WITH ({options})"
NOWHERE = "'connector' = 'blackhole'"
FILES = "'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv'"


def views(shape: Shape) -> list[str]:
    """The events of either step, and of both; without a key all have the same."""
    key = "`key`" if shape.is_keyed else "1"
    columns = f"{key} AS k, id, us, ts, `type`, `value`"
    first, second = (f"({_kept(step)})" for step in shape.steps)
    kept = {"e1": first, "e2": second, "events": f"{first} OR {second}"}
    return [f"CREATE VIEW {name} AS SELECT {columns} FROM given WHERE {words}" for name, words in kept.items()]


def interval_join(shape: Shape) -> str:
    return (
        "SELECT e1.us, e2.us, e1.id, e2.id, e2.`value` FROM e1 JOIN e2 ON e1.k = e2.k "
        f"AND e2.ts BETWEEN e1.ts AND e1.ts + {_window(shape)} AND e2.us > e1.us AND e2.us < e1.us + {shape.window_us}"
    )


def match_recognize(shape: Shape) -> str:
    """The next event of the second step for each of the first: `X*?` passes over as few as possible."""
    first, second = shape.steps
    return f"""\
        SELECT s, e, e1_id, e2_id, v FROM events MATCH_RECOGNIZE (
          PARTITION BY k ORDER BY ts
          MEASURES A.us AS s, B.us AS e, A.id AS e1_id, B.id AS e2_id, B.`value` AS v
          ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
          PATTERN (A X*? B) WITHIN {_window(shape)}
          DEFINE A AS A.`type` = '{first.type}', B AS B.`type` = '{second.type}' AND B.us > A.us
        ) AS matched"""


def scan(shape: Shape) -> str:
    return "SELECT us, us, id, id, `value` FROM events"


def _window(shape: Shape) -> str:
    number, unit = duration(shape.window_us).split()
    return f"INTERVAL '{number}' {unit.removesuffix('S')}"


def _kept(step: Step) -> str:
    return f"`type` = '{step.type}' AND `value` > {step.above!r}"
