"""The shipped rules as SQL, written by hand for DuckDB: what the benchmark's matches are compared with."""

from __future__ import annotations

from pathlib import Path

import duckdb

FORTNIGHT = "INTERVAL 14 DAYS"

TABLES = """
CREATE TABLE routes AS SELECT * FROM read_parquet('{place}/routes/*.parquet');
CREATE TABLE sample AS SELECT unnest(?) AS account;
-- Whatever a match about an account of the sample may hold: transfers to it and from it.
CREATE TABLE transfers AS
  SELECT * FROM read_parquet('{place}/transfers/*.parquet')
  WHERE destination IN (SELECT account FROM sample) OR originator IN (SELECT account FROM sample);
CREATE TABLE claims AS SELECT * FROM read_parquet('{place}/claims/*.parquet');
CREATE TABLE uncommon AS SELECT t.* FROM transfers t ANTI JOIN routes USING (originator, destination);
CREATE TABLE incoming AS
  SELECT * FROM uncommon WHERE amount >= 100 AND destination IN (SELECT account FROM sample);
"""

QUERIES = {
    "FraudPassThrough": f"""
        SELECT i.destination, i.id, o.id
        FROM incoming i JOIN uncommon o ON o.originator = i.destination
        WHERE o.amount = i.amount AND o.ts BETWEEN i.ts AND i.ts + {FORTNIGHT}
    """,
    "FraudDiffusion": f"""
        SELECT i.destination, i.id, a.id, b.id, c.id
        FROM incoming i
        JOIN uncommon a ON a.originator = i.destination AND a.ts BETWEEN i.ts AND i.ts + {FORTNIGHT}
        JOIN uncommon b ON b.originator = i.destination AND b.ts BETWEEN i.ts AND i.ts + {FORTNIGHT} AND b.id > a.id
        JOIN uncommon c ON c.originator = i.destination AND c.ts BETWEEN i.ts AND i.ts + {FORTNIGHT} AND c.id > b.id
        WHERE a.amount + b.amount + c.amount BETWEEN i.amount * 0.9::DOUBLE AND i.amount * 1.1::DOUBLE
    """,
    "FraudDiffusionInAll": f"""
        SELECT i.destination, i.id, count(*), sum(o.amount)::BIGINT
        FROM incoming i JOIN uncommon o ON o.originator = i.destination AND o.ts BETWEEN i.ts AND i.ts + {FORTNIGHT}
        GROUP BY i.destination, i.id, i.amount
        HAVING count(*) >= 3 AND sum(o.amount) BETWEEN i.amount * 0.9::DOUBLE AND i.amount * 1.1::DOUBLE
    """,
    "FraudRefundScam": f"""
        SELECT i.destination, i.id, r.id
        FROM transfers i
        JOIN claims c ON c.transaction_id = i.id AND c.ts BETWEEN i.ts AND i.ts + {FORTNIGHT}
        JOIN transfers r ON r.originator = i.destination AND r.destination = i.originator
        WHERE i.destination IN (SELECT account FROM sample)
          AND r.ts BETWEEN i.ts AND i.ts + {FORTNIGHT}
          AND r.amount BETWEEN i.amount * 0.9::DOUBLE AND i.amount * 1.1::DOUBLE
          AND NOT EXISTS (
            FROM transfers x
            WHERE x.id <> i.id AND x.originator = i.originator AND x.destination = i.destination
              AND x.amount BETWEEN r.amount * 0.9::DOUBLE AND r.amount * 1.1::DOUBLE
              AND x.ts BETWEEN r.ts - {FORTNIGHT} AND r.ts
          )
    """,
}


def matches(rule: str, place: Path, accounts: list[int]) -> list[tuple[int, ...]]:
    """The matches of a rule about these accounts: the account, then ids; of what was gathered, the number and sum."""
    with duckdb.connect() as database:
        first, *others = (part for part in TABLES.format(place=place).split(";") if part.strip())
        database.execute(first)
        database.execute(others[0], [accounts])
        for statement in others[1:]:
            database.execute(statement)
        return sorted(tuple(map(int, row)) for row in database.execute(QUERIES[rule]).fetchall())
