"""The workloads: those of "Bridging the Gap" (§5) and the uniform ones, each a stream and a shape without thresholds.

Thresholds are chosen by `calibrate`, so that matches ÷ events is the `selectivity` that a workload names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.shapes import Shape, Step
from benchmarks.streams import MILLISECOND, MINUTE, SECOND, Stream

UNIFORM, TRAFFIC, MERGED = Stream("uniform"), Stream("traffic"), Stream("merged")
ALL_TYPES = ("Q", "V", "PM10", "PM25", "Temp", "Hum")
LOW = 0.003 / 100  # the paper's usual share of matches
# A gap of d between neighbours keeps (1 − 2d)³ ÷ 6 of all triples of values that are uniform in [0, 1).
KEEPS_1_PERCENT = 0.304
KEEPS_1_PER_MILLE = 0.409
KEEPS_1_PERCENT_OF_PAIRS = 0.859  # (1 − d)² ÷ 2


@dataclass(frozen=True)
class Workload:
    """What to find where.

    Attributes
    ----------
    shape
        With thresholds missing where they are to be chosen.
    selectivity
        Matches ÷ events that is wanted; None: nothing is chosen.
    share
        Without `selectivity`: the share of its type's events that each step keeps.
    chosen_at_us
        The window for which thresholds are chosen, when it is another than the shape's.
    sweep, at
        Workloads of one sweep differ in one number, which is `at`.
    tags
        headline, dense, strong: what the targets speak of.
    """

    name: str
    title: str
    stream: Stream
    shape: Shape
    selectivity: float | None = None
    share: float | None = None
    chosen_at_us: int | None = None
    sweep: str | None = None
    at: float | None = None
    tags: frozenset[str] = frozenset()


def sequence(
    *types: str, window_us: int, keyed: bool = False, gap: float | None = None, absent: str | None = None
) -> Shape:
    """SEQ over the types; the second is negated when `absent` names it."""
    steps = tuple(
        Step(f"e{number}" if type != absent else "n", type, is_negated=type == absent)
        for number, type in enumerate(types, start=1)
    )
    return Shape(steps, window_us, gap=gap, is_keyed=keyed)


def iteration(type: str, times: int, *, window_us: int, gap: float | None = None, keyed: bool = False) -> Shape:
    return Shape((Step("v", type),) * times, window_us, gap=gap, is_keyed=keyed, is_iteration=True)


def workloads() -> tuple[Workload, ...]:
    """All of them, by name in `python -m benchmarks --list`."""
    return (*_uniform(), *_operators(), *_sweeps())


def _uniform() -> Iterator[Workload]:
    yield Workload(
        "seq2-sparse",
        "keyed SEQ(2), 2 events of each type a window",
        UNIFORM,
        sequence(*"AB", window_us=10 * SECOND, keyed=True, gap=KEEPS_1_PERCENT_OF_PAIRS),
    )
    yield Workload(
        "seq3-sparse",
        "keyed SEQ(3), 2 events of each type a window",
        UNIFORM,
        sequence(*"ABC", window_us=10 * SECOND, keyed=True, gap=KEEPS_1_PERCENT),
        tags=frozenset({"headline", "memory"}),
    )
    yield Workload(
        "seq3-dense",
        "keyed SEQ(3), 20 events of each type a window",
        UNIFORM,
        sequence(*"ABC", window_us=100 * SECOND, keyed=True, gap=KEEPS_1_PERCENT),
        tags=frozenset({"dense"}),
    )
    yield Workload(
        "seq3-strong",
        "keyed SEQ(3), filters keep 1 % of each type",
        UNIFORM,
        sequence(*"ABC", window_us=100 * SECOND, keyed=True),
        share=0.01,
        tags=frozenset({"strong"}),
    )
    yield Workload(
        "seq3-unkeyed",
        "SEQ(3) without a key, 10 events of each type a window",
        UNIFORM,
        sequence(*"ABC", window_us=50 * MILLISECOND, gap=KEEPS_1_PER_MILLE),
        tags=frozenset({"cores", "memory"}),
    )


def _operators() -> Iterator[Workload]:
    for percent in (0.003, 0.03, 0.3, 3, 27):
        yield Workload(
            f"seq2-{percent:g}%",
            f"SEQ1(2) without a key, selectivity {percent:g} %",
            TRAFFIC,
            sequence("Q", "V", window_us=15 * MINUTE),
            selectivity=percent / 100,
            sweep="selectivity",
            at=percent,
            tags=frozenset({"strong"} if percent == 0.003 else {"cores"} if percent == 27 else set()),
        )
    yield Workload(
        "iter3",
        "ITER^3 of one type, a threshold",
        TRAFFIC,
        iteration("V", 3, window_us=15 * MINUTE),
        selectivity=LOW,
    )
    yield Workload(
        "nseq",
        "NSEQ1: SEQ(Q, NOT PM10, V)",
        MERGED,
        sequence("Q", "PM10", "V", window_us=15 * MINUTE, absent="PM10"),
        selectivity=LOW,
    )


def _sweeps() -> Iterator[Workload]:
    for n in range(2, 7):
        yield Workload(
            f"seqn-{n}",
            f"SEQ_n, n = {n}",
            MERGED,
            sequence(*ALL_TYPES[:n], window_us=15 * MINUTE),
            selectivity=LOW,
            sweep="n",
            at=n,
        )
    for kind, gap, words in (
        ("increasing", 0.0, "each value above the one before"),
        ("threshold", None, "a threshold"),
    ):
        for m in (3, 5, 7, 9):
            yield Workload(
                f"iter-{kind}-{m}",
                f"ITER^m, m = {m}, {words}",
                TRAFFIC,
                iteration("V", m, window_us=15 * MINUTE, gap=gap),
                selectivity=LOW,
                sweep=f"m ({kind})",
                at=m,
            )
    for minutes in (30, 90, 180, 360):
        yield Workload(
            f"window-{minutes}",
            f"SEQ1(2), W = {minutes} minutes, the same filters",
            TRAFFIC,
            sequence("Q", "V", window_us=minutes * MINUTE),
            selectivity=LOW,
            chosen_at_us=30 * MINUTE,
            sweep="W",
            at=minutes,
        )
    for keys in (1, 8, 32, 128):
        yield Workload(
            f"keys-seq-{keys}",
            f"SEQ7(3) of {keys} key{'s'[: keys > 1]}, selectivity 1 %",
            Stream("merged", keys),
            sequence("Q", "V", "PM10", window_us=15 * MINUTE, keyed=True),
            selectivity=0.01,
            sweep="keys (SEQ)",
            at=keys,
        )
        yield Workload(
            f"keys-iter-{keys}",
            f"ITER4^4 of {keys} key{'s'[: keys > 1]}, selectivity 1 %",
            Stream("traffic", keys),
            iteration("V", 4, window_us=90 * MINUTE, keyed=True),
            selectivity=0.01,
            sweep="keys (ITER)",
            at=keys,
        )
