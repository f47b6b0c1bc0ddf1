"""The plan of one rule: what runs, and why. It is data: engines render it, `explain` prints it.

Input    a bound rule, the options, and what is known of the inputs
Output   the strategy and its reason, the search or the joins, the width of time slices
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.algebra.tree_text import to_text
from tocsin.algebra.units import counting
from tocsin.analysis.schema import BoundQuery, unit_of
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.choose import Choice, choose
from tocsin.optimizer.query_parts import is_filter
from tocsin.optimizer.routes import Routes, crossed_keys, is_connected
from tocsin.options import Options
from tocsin.plan.codec import decode, encode, reading
from tocsin.plan.describe import describe_stream
from tocsin.plan.joins.build import common_clock
from tocsin.plan.joins.build import plan as join_plan
from tocsin.plan.prepare import Attributes, BoundRule, prepare, rewritten
from tocsin.plan.strategies import JOIN, KERNEL, STRATEGIES, TREND, Strategy, searching, weighed
from tocsin.plan.strategies.join import Join
from tocsin.plan.strategies.trend import ADDS_OTHERS, cannot_count
from tocsin.plan.strategy import ON_SPARK, Form

if TYPE_CHECKING:
    from tocsin.kernels.nested_loops import Kernel
    from tocsin.kernels.reach import Search
    from tocsin.kernels.trends.trend_count import Trend
    from tocsin.plan.joins.model import Plan as JoinPlan


@dataclass(frozen=True, eq=False)
class Plan:
    """How a rule runs."""

    rule: BoundRule  # the rule, bound and rewritten
    options: Options  # the options, in the unit of the times
    times: Mapping[str, str]  # the time column of each event type
    # one_input, shared_input: whether all events come from one DataFrame; whether it has a type column
    one_input: bool = True
    shared_input: bool = False
    is_streaming: bool = False  # whether the inputs are streams
    engine: str = ON_SPARK  # where it runs, in words

    @property
    def query(self) -> alg.Query:
        """The rewritten query."""
        return self.rule.query

    @property
    def written(self) -> BoundQuery:
        """The query as it is written, with its types: compact rows enumerate its matches."""
        return replace(self.rule.bound, query=self.rule.written)

    @cached_property
    def choice(self) -> Choice:
        """The strategy that was chosen, and why."""
        wanted = self.options.strategy
        known = weighed(self.query, wanted, one_input=self.one_input)
        if self.rule.types is not None and self.trend is None:
            known = [each for each in known if each[0] != TREND.name]
        return choose(
            self.query,
            self.rule.network,
            known,
            self.options.known,
            strategy=wanted,
            shared_input=self.shared_input,
            time=common_clock(self.times.values()),
            most_matches_per_start=self.options.max_matches_per_start,
        )

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy that runs: the one asked for, or what "auto" chooses."""
        if self.is_streaming:
            return TREND if self.is_counted else self._on_a_stream
        if self.options.strategy != "auto":
            return STRATEGIES[self.options.strategy]
        if self.options.known is None and not self.query.over_all_matches and not is_filter(self.query):
            return searching(self.query)  # what `choice` finds, without weighing what nobody asks
        return STRATEGIES[self.choice.strategy or KERNEL.name]

    @property
    def warning(self) -> str | None:
        """Advice against too many matches, where statistics lead to expect them."""
        return None if self.options.known is None else self.choice.warning

    @property
    def _on_a_stream(self) -> Strategy:
        wanted = self.options.strategy
        return STRATEGIES[wanted] if wanted in STRATEGIES and wanted != TREND.name else searching(self.query)

    @property
    def is_counted(self) -> bool:
        """Whether the aggregates of a stream are counted, without finding a match."""
        return self.query.over_all_matches and self.options.strategy in ("auto", TREND.name) and self.trend is not None

    # --- how events are split ---------------------------------------------------------------------

    @cached_property
    def routes(self) -> Routes | None:
        """The keys of different names that split the events for loops; None: there are none, or others run it."""
        # A stream is read once, and every row of it advances the watermark.
        if self.strategy is not KERNEL or self.is_streaming or self.rule.types is None:
            return None
        chosen = crossed_keys(self.query, self.rule.bound.schemas)
        return None if chosen is None else Routes(self.query, chosen)

    @cached_property
    def routed(self) -> Plan:
        """The plan of the query that is split by them; without them this plan."""
        if self.routes is None:
            return self
        types = self.routes.split(self.rule.bound)
        options = replace(self.options, strategy=KERNEL.name, slice_us=self.slice_us)
        return replace(self, rule=replace(self.rule, query=types.query, types=types), options=options)

    @property
    def is_only_joined_by_keys(self) -> bool:
        """Whether no key splits the events for loops, and equalities connect all variables, as joins need them."""
        split = self.routed.query.partition.attributes
        return not split and JOIN.refuses(self.query) is None and is_connected(self.query, self.rule.bound.schemas)

    # --- what runs --------------------------------------------------------------------------------

    @cached_property
    def trend(self) -> Trend | None:
        """The query compiled for counting without building matches; None when it cannot be."""
        from tocsin.kernels.trends.trend_count import trend

        return None if TREND.refuses(self.query) is not None else trend(self.rule.bound)

    @property
    def counted(self) -> Trend:
        """The query compiled for counting, or the reason why it is not."""
        if self.trend is None:
            raise TREND.refuses(self.query) or cannot_count(self.query, ADDS_OTHERS)
        return self.trend

    @cached_property
    def search(self) -> Search:
        """The search, or the reason why there is none."""
        strategy = self.strategy if self.strategy.form in (Form.SEARCH, Form.CLUSTERED) else searching(self.query)
        strategy.requires(self.query, engine=self.engine, one_input=self.one_input)
        return strategy.search(self.rule.bound)

    @property
    def loops(self) -> Kernel:
        """The search, where it is nested loops."""
        from tocsin.kernels.nested_loops import Kernel

        assert isinstance(self.search, Kernel)
        return self.search

    @cached_property
    def joins(self) -> JoinPlan:
        """The joins, in the order that statistics suggest, or the reason why there are none."""
        self.strategy.requires(self.query)
        is_sliding = isinstance(self.strategy, Join) and self.strategy.is_sliding
        orders = None if self.options.known is None else self.choice.join_orders
        return join_plan(
            self.query,
            self.rule.network.closure,
            order=None if orders is None else lambda names: orders.get(frozenset(names), ()),
            prefilter=None if orders is None or is_sliding else self.choice.prefilter,
            sliding=is_sliding,
        )

    @property
    def slice_us(self) -> int | None:
        """The width of time slices; None: as wide as the search makes them."""
        return self.strategy.slice_us(self)

    # --- text -------------------------------------------------------------------------------------

    def describe(self) -> str:
        """What runs, in words; before there are inputs, as far as the query alone shows it, or nothing."""
        if self.rule.types is None:
            is_shown = self.strategy.form in (Form.SEARCH, Form.JOINS) and self.strategy.refuses(self.query) is None
            return self.strategy.describe(self) if is_shown else ""
        if self.is_streaming:
            return self._describe_stream()
        text = self.strategy.describe(self.routed)
        return text if self.routes is None else self.routes.named(text)

    def _describe_stream(self) -> str:
        from tocsin.plan.due import due_of

        if self.strategy.form is Form.JOINS:
            return f"joins of streams, whose state is Spark's\n{self.strategy.describe(self)}"
        search = self.counted.kernel if self.is_counted else self.search
        due = due_of(search, self.rule.network, eager=self.options.emit == "auto", counts=self.is_counted)
        return describe_stream(search, due, search.query.partition.attributes, counts=self.is_counted)

    def to_dict(self) -> dict[str, Any]:
        """The plan for tools and snapshots: plain values that JSON holds; `made_of` is what `from_dict` reads."""
        is_bound = self.rule.types is not None
        has_search = is_bound and self.strategy.form in (Form.SEARCH, Form.CLUSTERED, Form.TREND)
        search = (self.counted.kernel if self.strategy is TREND else self.search) if has_search else None
        facts = [self.rule.written, self.rule.facts, self.options, self.times]
        return {
            "made_of": dict(zip(("query", "facts", "options", "times"), map(encode, facts), strict=True))
            | {name: getattr(self, name) for name in ("one_input", "shared_input", "is_streaming", "engine")}
            | {"is_bound": is_bound},
            "query": to_text(self.query),
            "rewrites": [rule.name for rule in self.rule.rewrites],
            "strategy": self.strategy.name,
            "form": self.strategy.form.value,
            "choice": self.choice.to_dict() if not self.is_streaming else None,
            "scan": None if search is None else [_source(source) for source in search.sources],
            "exchange": None if search is None else _exchange(search, self.slice_us),
            "result": {
                "kind": "groups" if self.query.over_all_matches else self.options.form,
                "columns": [[name, dtype.exact] for name, dtype in self.rule.bound.columns] if is_bound else None,
            },
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Plan:
        """The plan that `to_dict` showed, planned anew from what it was made of.

        Raises
        ------
        InvalidOptionError
            When these are not the values of a plan, or it has functions of the user.
        """
        with reading(stored) as given:
            query, facts, options, times = (decode(given.pop(name)) for name in ("query", "facts", "options", "times"))
            with counting(options.unit.microseconds):
                if given.pop("is_bound"):
                    types = {name: schema.attributes for name, schema in facts.schemas.items()}
                    rule = prepare(query, types, facts.time)
                else:
                    rule = rewritten(query, facts.time, facts.schemas, integer_time=facts.integer_time)
            return cls(rule, options, times, **given)

    def __eq__(self, other: object) -> bool:
        """Whether two plans run the same."""
        return isinstance(other, Plan) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """By the query and the strategy."""
        return hash((to_text(self.query), self.strategy.name))


def plan_of(
    query: alg.Query,
    types: Attributes,
    times: Mapping[str, str],
    options: Options,
    *,
    warns: bool = False,
    **inputs: Any,
) -> Plan:
    """Plan a query for its inputs; everything wrong with it is raised here, contradictory distances too.

    Its durations, and those of the options, are converted to the unit of integer times (R42). With `warns`, integer
    times without a unit are warned of. `inputs` are fields of `Plan` that describe the inputs.
    """
    query = ordered_by_ties(query) if options.ties else query
    unit = unit_of(options.time_unit, types, times, (query,), warns=warns)
    with counting(unit.microseconds):
        rule = prepare(unit.query(query), types, options.time)
        _ = rule.network
    return Plan(rule, options.counting(unit), times, **inputs)


def unbound_plan(query: alg.Query, options: Options) -> Plan:
    """Plan a query before there are inputs: what runs and why, as far as the query shows it."""
    types = alg.event_types(query.pattern)
    given = dict.fromkeys(types, options.time) if isinstance(options.time, str) else options.time
    times = {name: given[name] for name in types if name in given}
    return Plan(rewritten(query, common_clock(times.values())), options, times)


def _source(source: Any) -> dict[str, Any]:
    return {
        "variable": source.variable,
        "types": list(source.types),
        "negated": source.is_negated,
        "conditions": [print_expression(condition) for condition in source.conditions],
    }


def _exchange(search: Search, slice_us: int | None) -> dict[str, Any]:
    from tocsin.kernels.reach import width_us

    return {
        "keys": list(search.query.partition.attributes),
        "slice_us": width_us(search, slice_us),
        "back_us": search.back_us,
        "ahead_us": search.ahead_us,
        "every_event": search.counts_every_event,
    }
