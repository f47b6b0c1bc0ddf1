"""Queries in Python: the same trees as SASE+ text, checked by the same analyser, pointing at your own lines.

>>> from tocsin.language.builder import absent, col, count, event, seq
>>> query = (
...     seq(event("Login", "a"), absent(event("Logout", "n")), event("Transfer", "b").plus())
...     .partition_by("user")
...     .where(col("b.amount") > 1000, col("n.device") == col("a.device"))
...     .within(minutes=15)
...     .returns("a.user", transfers=count("b"))
... )
>>> print(query)
PATTERN SEQ(Login a, NOT Logout n, Transfer+ b)
PARTITION BY user
WHERE b.amount > 1000
  AND n.device = a.device
WITHIN 15 MINUTES
RETURN a.user, COUNT(b) AS transfers

Everything is immutable: each call gives a new object and leaves the old one as it was. `query.query` is the
tree.

A string is text of the language where a condition or a reference is asked for (`where`, `returns`,
`group_by`, `having`, `count`, …), and a string constant where a value is compared or computed with
(`col("a.k") == "x"`).
"""

from tocsin.language.builder.drafts import Draft, Element, absent, all_of, any_of, event, seq
from tocsin.language.builder.operands import (
    Value,
    avg,
    call,
    col,
    collect,
    count,
    count_distinct,
    expr,
    first,
    last,
    lit,
    max_,
    min_,
    range_,
    same,
    stddev,
    sum_,
    when,
)

__all__ = [
    "Draft",
    "Element",
    "Value",
    "absent",
    "all_of",
    "any_of",
    "avg",
    "call",
    "col",
    "collect",
    "count",
    "count_distinct",
    "event",
    "expr",
    "first",
    "last",
    "lit",
    "max_",
    "min_",
    "range_",
    "same",
    "seq",
    "stddev",
    "sum_",
    "when",
]
