"""How wide time slices are, and which rare variable may thin out the others before they are sent."""

from __future__ import annotations

from tocsin.optimizer.estimate import Estimate

DEFAULT_SPANS = 16  # without statistics a slice is this many spans wide: a halo of 6 %
WIDEST_SPANS = 64  # wider slices save no more than a hundredth of the rows
NARROWEST_SPANS = 10  # a halo of 10 %
SLICES_PER_CORE = 4
RARE = 0.01
SPARSE = 0.1


def slice_width_us(span_us: int | None, estimate: Estimate | None = None, *, cores: int = 2) -> int | None:
    """The width of the time slices of a pattern whose matches need so long a view; None when it cannot be sliced.

    At least four slices per core keep all cores busy; a halo of at most a tenth keeps the copies few. When the input is
    too short for both, keys give the cores work, if there are enough of them; otherwise the cores come first.

    >>> slice_width_us(10_000_000)
    160000000
    """
    if span_us is None:
        return None
    span = max(span_us, 1)
    if estimate is None:
        return DEFAULT_SPANS * span
    widest = max(estimate.statistics.duration_us // (SLICES_PER_CORE * max(cores, 1)), 1)
    if widest >= NARROWEST_SPANS * span:
        return min(WIDEST_SPANS * span, widest)
    if is_spread_by_key(estimate, cores):
        return DEFAULT_SPANS * span
    return max(2 * span, widest)


def is_spread_by_key(estimate: Estimate, cores: int) -> bool:
    """Whether the partition keys alone keep all cores busy: many, and none much heavier than a core's share."""
    keys = estimate.statistics.keys
    if not estimate.query.partition.attributes or keys is None:
        return False
    return keys.distinct >= SLICES_PER_CORE * cores and keys.share_of_heaviest <= 1 / (2 * cores)


def prefilter(estimate: Estimate, span_us: int | None) -> str | None:
    """A variable in every match, so rare that the events near its own are a small part of all others.

    Its candidates are below a hundredth of the others', and the time within one span of them below a tenth of all: then
    sending only what lies there is worth a small extra pass.
    """
    if span_us is None:
        return None
    sure = [name for name, kind in estimate.query.variables.items() if not kind.optional]
    counts = {name: estimate.candidates(name) for name in sure}
    if not counts:
        return None
    rare = min(counts, key=lambda name: counts[name])
    others = estimate.rows - counts[rare]
    covered = counts[rare] * 2 * span_us / estimate.statistics.duration_us
    return rare if counts[rare] < RARE * others and covered < SPARSE else None
