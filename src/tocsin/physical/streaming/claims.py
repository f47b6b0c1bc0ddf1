"""What streams run, and what they refuse: asked before any DataFrame is touched."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.errors import UnsupportedError
from tocsin.language.ast import Output, Skip
from tocsin.physical.claims import unsupported

STRATEGIES = ("auto", "kernel", "automaton")
HINT = "read the same data as a batch, with `spark.read` instead of `spark.readStream`."


def refused_on_streams(query: alg.Query, strategy: str) -> UnsupportedError | None:
    """The first thing that does not run on a stream, or None."""
    refusal = unsupported(query)
    if refusal is not None:
        return refusal
    if strategy not in STRATEGIES:
        return UnsupportedError(
            f"The strategy `{strategy}` does not run on a stream.", hint="leave out `strategy=`: a kernel runs it."
        )
    if query.over_all_matches:
        where = next((returned.expression.where for returned in query.returns), None)
        return UnsupportedError(
            "Aggregation over all matches (COUNT(*), GROUP BY) does not run on a stream yet: it has no end.",
            where=where,
            hint="return the matches, and aggregate them with Spark.",
        )
    if query.after_match.skip is not Skip.REUSE and query.output in (Output.FIRST_PER_END, Output.LAST_PER_END):
        return UnsupportedError(
            f"AFTER MATCH SKIP {query.after_match.skip.value.upper()} together with OUTPUT {query.output.value} "
            "does not run on a stream yet.",
            where=query.places.get("output"),
            hint=HINT,
        )
    return None
