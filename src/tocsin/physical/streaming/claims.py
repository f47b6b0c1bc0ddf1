"""What streams run, and what they refuse: asked before any DataFrame is touched."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.physical.claims import unsupported

STRATEGIES = ("auto", "kernel", "automaton", "trend", "join", "aggregate")


def refused_on_streams(query: alg.Query, strategy: str) -> UnsupportedError | None:
    """The first thing that does not run on a stream, or None."""
    refusal = unsupported(query)
    if refusal is not None:
        return refusal
    if strategy not in STRATEGIES:
        return OptionRefusedError(
            f"The strategy `{strategy}` does not run on a stream.", hint="leave out `strategy=`: a kernel runs it."
        )
    if query.over_all_matches and query.every_us is None:
        where = next((returned.expression.where for returned in query.returns), None)
        return UnsupportedError(
            "An aggregate over all matches of a stream is never complete: a stream has no end.",
            gap=Gaps.STREAM_TOTALS,
            where=where,
            hint="report it per window of time: `EVERY 10 MINUTES`.",
        )
    if strategy == "aggregate" and query.every_us is not None and query.window_us is None:
        return OptionRefusedError(
            "EVERY without WITHIN is never known on a stream: a match that starts in a window may end at any time.",
            where=query.places.get("every", query.pattern.where),
            hint="write WITHIN.",
        )
    return None
