"""Where a search gives up: an answer of its own is better than a task that never ends."""

from __future__ import annotations

from tocsin.errors import TooManyMatchesError, TooMuchSearchError

# Runs that differ in state or registers at one time, in compiled code and in plain Python.
MOST_RUNS, MOST_PLAIN_RUNS = 1 << 20, 1 << 16


def too_many_matches(most: int) -> TooManyMatchesError:
    """One start has more matches than allowed."""
    return TooManyMatchesError(
        f"From one event on, the pattern has more than {most:,} matches.",
        hint="a shorter window, a stricter condition or `@+` in place of `+` has fewer matches; "
        '`form="compact"` holds any number of them; `max_matches_per_start=` moves the limit.',
    )


def too_many_runs(most: int) -> TooMuchSearchError:
    """A FILTER has to know more than can be followed."""
    return TooMuchSearchError(
        f"At one event more than {most:,} partial matches differ in what a FILTER still has to know of them.",
        hint="a shorter window or a stricter condition has fewer of them; a condition on the result of an AGG over `+` "
        "must know every value that some of the events can have.",
    )
