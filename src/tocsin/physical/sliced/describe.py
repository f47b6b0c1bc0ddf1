"""The plan of a kernel in words: for the `== Strategy ==` section of `explain()`."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.analysis.durations import format_us
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Source
from tocsin.language.ast import Output, Selection, Skip
from tocsin.language.sase.printer import print_expression
from tocsin.physical.sliced.width import width_us


def describe(kernel: Kernel, slice_us: int | None = None) -> str:
    """What is filtered before the shuffle, how rows are split, and what the kernel does."""
    return "\n".join(["sliced kernel: one shuffle, then a compiled search", *_lines(kernel, slice_us)])


def describe_clustered(kernel: Kernel, slice_us: int | None = None) -> str:
    """The same where the input lies in order of time."""
    window, width = kernel.query.window_us or 0, width_us(kernel, slice_us) or 0
    return "\n".join(
        [
            "clustered kernel: a compiled search where the input lies",
            *_scans(kernel),
            "  search every partition of the input",
            f"  shuffle the matches, and the events less than {format_us(2 * window)} from an edge of a partition,",
            f"       by time slices of {format_us(width)}",
            f"  search across partitions; fail when two overlap by more than {format_us(window)}",
        ]
    )


def _scans(kernel: Kernel) -> Iterator[str]:
    positive_first = sorted(kernel.sources, key=lambda source: source.is_negated)
    yield from (f"  scan {_source(source)}" for source in positive_first)


def _lines(kernel: Kernel, slice_us: int | None) -> Iterator[str]:
    yield from _scans(kernel)
    if kernel.counts_every_event:
        yield "  every other event is read too: contiguity counts it"
    keys = ", ".join(kernel.query.partition.attributes)
    width = width_us(kernel, slice_us)
    by = [f"key {keys}"] if keys and not kernel.crosses_partitions else []
    by += [f"time slices of {format_us(width)}"] if width is not None else []
    yield f"  shuffle by {' and '.join(by)}" if by else "  one task: no key and no window splits the events"
    if width is not None and (kernel.ahead_us or kernel.back_us):
        reach = f"{format_us(kernel.ahead_us)} after" if kernel.ahead_us else ""
        back = f"{format_us(kernel.back_us)} before" if kernel.back_us else ""
        yield f"       with copies of events up to {' and '.join(filter(None, (back, reach)))} a slice"
    yield "  search" + "".join(f", {step}" for step in _steps(kernel))


def _source(source: Source) -> str:
    conditions = " AND ".join(map(print_expression, source.conditions))
    negated = "NOT " if source.is_negated else ""
    return f"{negated}{' | '.join(source.types)} {source.variable}" + (f"  where {conditions}" if conditions else "")


def _steps(kernel: Kernel) -> Iterator[str]:
    query = kernel.query
    if query.selection is not Selection.ANY:
        yield f"select {query.selection.value}"
    if query.after_match.skip is not Skip.REUSE:
        yield f"after a match skip {query.after_match.skip.value}"
    if query.output is not Output.ALL:
        yield f"report {query.output.value}"
