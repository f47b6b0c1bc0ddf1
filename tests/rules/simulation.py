"""A live engine in miniature, for bounds: stores per variable that forget an event when it is stale, and never before.

It takes events in any order of arrival, decides matches by the reference on what its stores hold, hands on what rules
emit, and notes how much it ever kept. With `most` it evicts by count as well, which is what no engine should do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

import tocsin
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule
from tocsin.analysis.rules.arrivals import Delay, delays
from tocsin.reference import programs as reference

NEVER = 1 << 40
Row = dict[str, Any]


def own_types(node: alg.Node) -> alg.Node:
    """The pattern with a type of its own for each variable, called like it: each reads its own store."""
    match node:
        case alg.Event():
            return replace(node, type=node.variable)
        case alg.Around():
            return replace(node, part=own_types(node.part), type=node.variable)
        case alg.All():
            return replace(node, parts=tuple(map(own_types, node.parts)))
        case alg.Filter() | alg.Within():
            return replace(node, part=own_types(node.part))
    raise AssertionError(f"not a pattern of a rule: {node}")


@dataclass
class LiveRule:
    """One rule with its stores."""

    rule: Rule
    lifetimes: Mapping[str, int | None]
    lag_us: int
    most: int | None = None
    stores: dict[str, list[Row]] = field(default_factory=dict)
    largest: Counter[str] = field(default_factory=Counter)  # by variable
    reported: set[Any] = field(default_factory=set)
    matches: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds = {name: kind.types[0] or "" for name, kind in self.rule.query.variables.items()}
        self.kinds |= {each.variable: each.type for each in alg.around_in(self.rule.query.pattern)}
        self.around = list(alg.around_in(self.rule.query.pattern))
        self.stores = {name: [] for name in self.kinds}
        pattern = own_types(self.rule.query.pattern)
        emits = tuple(replace(emit, part=pattern) for emit in self.rule.emits)
        own = replace(self.rule, query=replace(self.rule.query, pattern=pattern), emits=emits)
        self.program = Program((own,))

    def step(self, arrived: Mapping[str, list[Row]], watermark: int) -> dict[str, list[Row]]:
        """Take events, report matches that are decided, forget what is stale; what it emits comes back."""
        own_watermark = watermark - self.lag_us
        for name, kind in self.kinds.items():
            self.stores[name] += arrived.get(kind, [])
            if self.most is not None:
                self.stores[name] = self.stores[name][-self.most :]
        emitted = self._decide(own_watermark)
        for name, rows in self.stores.items():
            lifetime = self.lifetimes[name]
            assert lifetime is not None
            self.stores[name] = [row for row in rows if row["ts"] + lifetime >= own_watermark]
        for name, rows in self.stores.items():
            self.largest[name] = max(self.largest[name], len(rows))
        return emitted

    def _decide(self, watermark: int) -> dict[str, list[Row]]:
        found, events = reference.run(self.program, self.stores, time="ts", tie=(), type_column="type")
        matches = found[self.rule.name]
        emitted: dict[str, list[Row]] = {}
        for place, match in enumerate(matches):
            bound = {name: match[name] for name in self.kinds if match.get(name) is not None}
            positive = {name: row for name, row in bound.items() if isinstance(row, dict)}
            identity = tuple(sorted((name, str(row["uid"])) for name, row in positive.items()))
            decided = max([row["ts"] for row in positive.values()] + [deadline(each, positive) for each in self.around])
            if identity in self.reported or (self.around and decided >= watermark):
                continue
            self.reported.add(identity)
            self.matches.append(bound)
            for emit in self.rule.emits:
                row = events[emit.type][place] | {"uid": (self.rule.name, identity)}
                emitted.setdefault(emit.type, []).append(row)
        return emitted


def deadline(around: alg.Around, match: Mapping[str, Row]) -> int:
    """When the last event that could lie in a window has come."""
    ends = []
    for bound in around.upper:
        assert not isinstance(bound.anchor, alg.Whole)
        (anchor,) = bound.anchor.variables
        ends.append(match[anchor]["ts"] + bound.offset_us)
    return min(ends)


@dataclass
class Live:
    """A whole program."""

    rules: list[LiveRule]
    largest: Counter[tuple[int, str]] = field(default_factory=Counter)  # by stratum and event type

    @classmethod
    def of(cls, program: tocsin.Rules, *, most: int | None = None) -> Live:
        """Start with empty stores."""
        report = program.check()
        when = delays(program.program)
        return cls(
            [
                LiveRule(
                    each.rule,
                    each.lifetimes.us,
                    max(when.get(name, Delay()).late_us for name in each.rule.reads),
                    most,
                )
                for each in report.rules
            ]
        )

    def run(self, batches: list[dict[str, list[Row]]], lateness: int) -> None:
        """Take batches of events, with a watermark that lags behind the newest, and then the end of time."""
        newest = -NEVER
        for batch in [*batches, {}]:
            newest = max([newest, *(row["ts"] for rows in batch.values() for row in rows)])
            watermark = newest - lateness if batch else NEVER
            known = dict(batch)
            for rule in self.rules:
                for kind, rows in rule.step(known, watermark).items():
                    known[kind] = known.get(kind, []) + rows
            held: dict[tuple[int, str], set[Any]] = {}
            for rule in self.rules:
                for name, rows in rule.stores.items():
                    shared = held.setdefault((rule.rule.stratum, rule.kinds[name]), set())
                    shared |= {row["uid"] for row in rows}
            for store, events in held.items():
                self.largest[store] = max(self.largest[store], len(events))

    def found(self) -> dict[str, Counter[Any]]:
        """The matches of each rule, by times and ids."""
        return {live.rule.name: Counter(map(seen, live.matches)) for live in self.rules}


def seen(match: Mapping[str, Any]) -> tuple[Any, ...]:
    """A match by what a user sees of its events."""

    def bag(value: Any) -> tuple[Any, ...]:
        rows = value if isinstance(value, list) else [value]
        return tuple(sorted((row["ts"], row["id"]) for row in rows))

    return tuple(sorted((name, bag(value)) for name, value in match.items() if name not in ("start", "end") and value))


def expected(program: tocsin.Rules, batches: list[dict[str, list[Row]]]) -> dict[str, Counter[Any]]:
    """What the reference finds in all events."""
    rows: dict[str, list[Row]] = {}
    for batch in batches:
        for kind, some in batch.items():
            rows.setdefault(kind, []).extend({key: row[key] for key in row if key != "uid"} for row in some)
    return {name: Counter(map(seen, found)) for name, found in tocsin.reference.evaluate(program, rows).items()}


# --- random programs and streams ------------------------------------------------------------------

TEMPLATES = "".join(f"template {name} {{ id : Integer, k : Integer }}\n" for name in "ABCXY")


@st.composite
def programs(draw: st.DrawFn, *, layered: bool = True) -> str:
    """Rules with offsets, negative distances, `no`, `all`, and events that other rules read."""
    texts = [draw(_rule("R0", "ABC", "X" if layered else ""))]
    if draw(st.booleans()):
        texts.append(draw(_rule("R1", "ABC", "")))
    if layered and draw(st.booleans()):
        texts.append(draw(_rule("R2", "XAX", "Y")))
        if draw(st.booleans()):
            texts.append(draw(_rule("R3", "YX", "")))
    return TEMPLATES + "\n".join(texts)


@st.composite
def _rule(draw: st.DrawFn, name: str, reads: str, emits: str) -> str:
    count = draw(st.integers(1, 3))
    patterns, distances, positive = [], [], []
    for place in range(count + draw(st.integers(0, 1))):
        variable = f"v{place}"
        sort = "" if place < count else draw(st.sampled_from(["no ", "all "]))
        kind = reads[0] if place == 0 else draw(st.sampled_from(reads))
        anchors = positive if sort else positive[-2:]
        same = f" {{ k = {draw(st.sampled_from(anchors))}.k }}" if anchors and draw(st.booleans()) else ""
        patterns.append(f"{sort}{variable} : {kind}{same}")
        for anchor in draw(st.lists(st.sampled_from(anchors), min_size=1, max_size=2, unique=True)) if anchors else []:
            low = draw(st.integers(-3, 3))
            distances.append(f"{sort}{variable} in {anchor} [{low} us, {low + draw(st.integers(0, 3))} us]")
        if not sort:
            positive.append(variable)
    first, last = positive[0], positive[-1]
    at = draw(
        st.sampled_from(
            [
                f"{first}.timestamp",
                f"{last}.timestamp + 2 us",
                f"{last}.timestamp - 1 us",
                f"max({first}.timestamp, {last}.timestamp)",
                f"min({first}.timestamp, {last}.timestamp + 1 us)",
                f"avg({first}.timestamp, {last}.timestamp)",
            ]
        )
    )
    emit = f"then emit {emits} at {at} with {{ id = {first}.id, k = {last}.k }}" if emits else ""
    return f"rule {name} where {' '.join(patterns)} when {' '.join(distances)} {emit}"


@dataclass(frozen=True)
class Stream:
    """Events that keep their rates, cut into batches in the order of their arrival."""

    rates: dict[str, str]
    batches: list[dict[str, list[Row]]]
    lateness: int


@st.composite
def streams(draw: st.DrawFn, *, length: int = 9, types: str = "ABC", most: int = 2) -> Stream:
    """As many events as the rates allow, but for a few; up to `lateness` out of order."""
    lateness = draw(st.sampled_from([0, 0, 1, 3]))
    rates, rows = {}, []
    for kind in types:
        events, stretch, spaced = draw(st.integers(1, most)), draw(st.integers(1, 3)), draw(st.booleans())
        rates[kind] = f"{events} per {stretch} us" + " spaced" * spaced
        times: list[int] = []
        skipped = draw(st.sets(st.integers(0, length), max_size=2))
        for time in sorted([*range(length)] * events):
            if spaced:
                ready = not times or (time - times[-1]) * events >= stretch
            else:
                ready = len(times) < events or times[-events] + stretch <= time
            if ready and time not in skipped:
                times.append(time)
        rows += [{"ts": time, "id": number, "type": kind} for number, time in enumerate(times)]
    keys = draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    waits = draw(st.lists(st.integers(0, lateness), min_size=len(rows), max_size=len(rows)))
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["ts"] + waits[at], at))
    batches: list[dict[str, list[Row]]] = []
    for place, at in enumerate(order):
        if not batches or place % draw(st.integers(1, 4)) == 0:
            batches.append({})
        row = rows[at] | {"k": keys[at], "uid": (rows[at]["type"], at)}
        batches[-1].setdefault(row.pop("type"), []).append(row)
    return Stream(rates, batches, lateness)
