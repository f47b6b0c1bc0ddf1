"""Check the power of the tests: break the source in known ways, one at a time, and run tests that must notice.

`python tools/mutate.py` applies every mutation to a temporary copy of src, runs its tests there, and prints whether
they failed. It exits with 1 when a mutation survives, and with 2 when one cannot be applied or its tests do not run.

    python tools/mutate.py --list               names, files and tests
    python tools/mutate.py window policy        only mutations whose names contain one of these words
    python tools/mutate.py --fast               with the whole selection of `make test-fast` instead of the named tests

A mutation is found by its text, wherever in src it stands, so that moving code needs no change here. The text must
occur exactly once. Each mutation names the few tests that state the broken behavior, most of them properties against
the reference evaluator; they must pass on the unchanged source, which is checked first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
FORMULAS, LIMITS, MATCHES, TIES = (
    f"tests/engines/test_{name}.py" for name in ("counted_formulas", "limits", "distinct_matches", "ties")
)
BAG_PREDICATES = f"{FORMULAS}::test_bag_predicates_count_where_they_stand"
MADE = f"{MATCHES}::test_events_that_are_made_tell_matches_apart_by_value"
ALIKE = f"{MATCHES}::test_equal_events_make_matches_with_ids_of_their_own"
OWN_IDS = f"{MATCHES}::test_matches_of_sase_have_ids_of_their_own_on_every_engine"
REFUSED = f"{LIMITS}::test_engines_refuse_exactly_when_one_start_has_more_matches_than_allowed"
TIED = f"{TIES}::test_every_local_strategy_orders_ties_as_the_reference"
TIED_POLICIES = f"{TIES}::test_policies_order_ties_as_the_reference"
TIED_COUNTS = f"{TIES}::test_counts_order_ties_as_the_reference"
TIED_STREAMS = "tests/streaming/test_ties.py"
OPTIONS = "tests/api/test_options.py"
LEFT_OUT = f"{OPTIONS}::test_each_of_several_options_of_the_local_engine_has_an_effect"
WALK = f"{OPTIONS}::test_a_right_value_has_an_effect_or_is_refused_by_name"
# Where the places of events are computed, of one kernel.
PLACES = "order = _order(table, layout, "
FAST = "not spark and not compiled and not long and not slow"
PASSED, FAILED = 0, 1  # exit codes of pytest; all others mean that the tests did not run


@dataclass(frozen=True)
class Mutation:
    """A text of the source, what replaces it, and the tests that must fail then.

    `also` are further texts and what replaces them: the same mistake in the reference, so that a property cannot
    notice a difference and must notice the mistake itself.
    """

    name: str
    old: str
    new: str
    tests: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()

    @property
    def changes(self) -> tuple[tuple[str, str], ...]:
        """All texts and what replaces them."""
        return ((self.old, self.new), *self.also)


MUTATIONS = (
    # --- windows, order and bounds of the search ---
    Mutation(
        "window closed at its end",
        'latest = fresh("latest")\n            writer.line(f"{latest} = plus({low}, {window - 1})")',
        'latest = fresh("latest")\n            writer.line(f"{latest} = plus({low}, {window})")',
        ("tests/kernels/test_find.py",),
    ),
    Mutation(
        "longest iteration one instant too long",
        "events.window_ends(span_us)",
        "events.window_ends(span_us and span_us + 1)",
        ("tests/kernels/test_longest.py",),
    ),
    Mutation(
        "strict bound of an absence taken as closed",
        "(0 if not bound.strict else 1 if is_lower else -1)",
        "0",
        ("tests/kernels/test_find.py",),
    ),
    Mutation(
        "last instant of an absence left out",
        "ts_{number}[{at}] <= {high}:",
        "ts_{number}[{at}] < {high}:",
        ("tests/kernels/test_find.py",),
    ),
    Mutation(
        "flag set although a condition fails",
        "            passed &= truths_of(found)\n",
        "            truths_of(found)\n",
        ("tests/engines/test_local.py", "tests/semantics/test_cases.py"),
    ),
    Mutation(
        "tie columns ignored",
        "return replace(node, order=Order.TIES)",
        "return node",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored beside an absence",
        "return replace(bound, order=Order.TIES) if is_neighbour else bound",
        "return bound",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored by sequences",
        "case Sequence(order=Order.TIME) | Repeat(order=Order.TIME):",
        "case Repeat(order=Order.TIME):",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored by iterations",
        "case Sequence(order=Order.TIME) | Repeat(order=Order.TIME):",
        "case Sequence(order=Order.TIME):",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored by positions",
        "keys = [*groups, *_ties(table, layout)]",
        "keys = [*groups]",
        (TIED_POLICIES,),
    ),
    Mutation(
        "tie columns ignored by next",
        PLACES,
        PLACES.replace("layout", 'replace(layout, ties=()) if kernel.query.selection.value == "next" else layout'),
        (TIED_POLICIES,),
    ),
    Mutation(
        "tie columns ignored by contiguity",
        PLACES,
        PLACES.replace(
            "layout", 'replace(layout, ties=()) if "contiguous" in kernel.query.selection.value else layout'
        ),
        (TIED_POLICIES,),
    ),
    Mutation(
        "tie columns ignored after a match",
        PLACES,
        PLACES.replace(
            "layout", 'replace(layout, ties=()) if kernel.query.after_match.skip.name != "REUSE" else layout'
        ),
        (TIED_POLICIES,),
    ),
    Mutation(
        "tie columns ignored by what is reported of each start or end",
        PLACES,
        PLACES.replace("layout", 'replace(layout, ties=()) if kernel.query.output.name != "ALL" else layout'),
        (TIED_POLICIES,),
    ),
    Mutation(
        "tie columns ignored by loops",
        "        if rows.instants is None:\n            return self._found(",
        "        if rows is not None:\n            return self._found(",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored by automata",
        "if rows.instants is not None:  # tie columns are part of the time",
        "if rows is None:",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored by counts",
        "if self.by_position or rows.instants is not None:",
        "if self.by_position:",
        (TIED_COUNTS,),
    ),
    Mutation(
        "NULL in a tie column comes last",
        "np.where(mask, -1, ranked)",
        "np.where(mask, len(ranked), ranked)",
        (TIED,),
    ),
    Mutation(
        "tie columns ignored by rules",
        "queries = [ordered_by_ties(rule.query) if options.ties else rule.query for rule in written.rules]",
        "queries = [rule.query for rule in written.rules]",
        ("tests/rules/test_engines.py::test_repetitions_are_ordered_by_tie_columns",),
    ),
    Mutation(
        "tie columns ignored by Spark",
        "reader = Reader(kernel, needs, inputs.id, inputs.ties, with_digests, digests_id=not stream)",
        "reader = Reader(kernel, needs, inputs.id, (), with_digests, digests_id=not stream)",
        (f"{TIES}::test_spark_orders_ties_of_random_queries_as_the_reference",),
    ),
    Mutation(
        "a stream forgets the instant of a neighbor that ties",
        "return int(self.strict and self.order is Order.TIME)",
        "return int(self.strict)",
        (f"{TIED_STREAMS}::test_what_ties_with_the_first_event_is_remembered_as_long",),
    ),
    Mutation(
        "a stream takes events in order for events of two instants",
        'or getattr(node, "order", alg.Order.TIME) is not alg.Order.TIME',
        'or getattr(node, "order", alg.Order.TIME) is alg.Order.POSITION',
        (f"{TIED_STREAMS}::test_what_ties_with_the_first_event_is_remembered_as_long",),
    ),
    # --- three-valued logic and aggregates ---
    Mutation(
        "comparison with NULL is FALSE",
        "return _Truth(all_of(not_(null), text), all_of(not_(null), opposite), null)",
        'return _Truth(all_of(not_(null), text), not_(all_of(not_(null), text)), "False")',
        ("tests/kernels/test_expressions.py",),
    ),
    Mutation(
        "NULL counted by COUNT(x)",
        "number = bags.sizes if nulls is None else bags.summed((~nulls).astype(np.int64))",
        "number = bags.sizes",
        ("tests/kernels/test_ranges.py",),
    ),
    Mutation(
        "NaN below every number",
        "return a < b or (a == a and b != b)",
        "return a < b",
        ("tests/kernels/test_expressions.py",),
    ),
    Mutation(
        "SUM over matches forgets the number of matches",
        "before = times(n[one + shift + place], n[other + place], n[place], n[inverse + place])",
        "before = n[one + shift + place]",
        ("tests/kernels/test_trends.py",),
    ),
    # --- formulas: which events a filter compares, which matches are one ---
    Mutation(
        "filter inside an iteration compares the events of all copies",
        "if len(self.neighbours) > compared:",
        "if not node:",
        (BAG_PREDICATES,),
    ),
    Mutation(
        "filter of a part compares the events of the whole match",
        "if held != self.held_by(variable):",
        "if not held:",
        (BAG_PREDICATES,),
    ),
    Mutation(
        "equal values made at two events have one id",
        "return chain(of_made[numbers].view(np.uint64), digests[made.rows[numbers]]).view(np.int64)",
        "return of_made[numbers]",
        (MADE,),
    ),
    Mutation(
        "hidden events at the ends of a match are not part of its id",
        "[_Part(None, [gather(rows) for gather in gathers]) for rows in matches.edges or ()]",
        "[]",
        (MADE,),
    ),
    Mutation(
        "equal events of two variables are two",
        "held += block[: max(numbers.values())]",
        "held += block",
        (MADE,),
    ),
    Mutation(
        "an event type stands for all events of a name",
        "if len(names) > 1 or held != [leaf for leaf in self.leaves if leaf.stand_in in names]:",
        "if len(names) > 1:",
        (f"{FORMULAS}::test_counting_is_enumerating_and_adding_up",),
    ),
    Mutation(
        "which variable holds an event is not part of its id, anywhere",
        "found, is_bound = chain(found, counts), counts > 0",
        "is_bound = counts > 0",
        (ALIKE,),
        (("            fields.append(len(events))\n", ""),),
    ),
    Mutation(
        "variables are not part of an id",
        'shape = json.dumps(names, ensure_ascii=False, separators=(",", ":"))',
        'shape = "[]"',
        (OWN_IDS,),
    ),
    Mutation(
        "values of events that AGG makes are not part of an id, anywhere",
        "        found[known] = chain(found[known], known)\n",
        "",
        (MADE,),
        (
            (
                'found = _digest(salt, [event.type or ""], event.row)',
                'found = _digest(salt, [event.type or ""], event.row if event.type else dict.fromkeys(event.row, 0))',
            ),
        ),
    ),
    Mutation(
        "equal matches are not numbered",
        "            numbers[chosen] = ordinals(first, second) + before\n",
        "",
        (ALIKE,),
    ),
    Mutation(
        "equal matches with hidden events are not numbered",
        "    for rows in matches.edges or ():\n        found |= marked[rows]\n",
        "",
        (ALIKE,),
    ),
    Mutation(
        "equal matches of earlier steps are not numbered",
        "identify(take(some, ~is_given))",
        "pass",
        (ALIKE,),
    ),
    Mutation(
        "events are numbered by how they were made",
        "return (row, template.is_derived, sorted(zip(template.attributes, map(identity, held), strict=True)))",
        "return (row, template.is_derived, number)",
        (MADE,),
    ),
    Mutation(
        "the reference holds events of one position as they were made",
        "sorted(self.slots, key=lambda slot: (slot.event.local, *identity(slot.event)))",
        "sorted(self.slots, key=lambda slot: slot.event.local)",
        (MADE,),
    ),
    Mutation(
        "the reference takes each event that was made for another",
        'return (event.position, repr(event.row.origin), event.type or "", names, values)',
        'return (event.position, repr(event.row.origin), event.type or "", names, values, str(id(event.row)))',
        (MADE,),
    ),
    Mutation(
        "joins leave the number of events out of ids",
        "values += [held.count] if share is None else [held.count, share]",
        "values += [held.count] if share is None else [share]",
        ("tests/engines/test_joins.py::test_iterations_as_self_joins_equal_the_reference",),
    ),
    # --- limits and options ---
    Mutation(
        "limit on matches counts the ways to derived events",
        "UNLIMITED if is_compared else most, memory, jit)",
        "most, memory, jit)",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts what loops find",
        "return not (program.tables or has_product or self._drops or len(program.mains) > 1)",
        "return True",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts the rows of tables",
        "return not (program.tables or has_product or self._drops or len(program.mains) > 1)",
        "return not (has_product or self._drops or len(program.mains) > 1)",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts products by their first loop",
        "return not (program.tables or has_product or self._drops or len(program.mains) > 1)",
        "return not (program.tables or self._drops or len(program.mains) > 1)",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts what conditions and policies drop",
        "return not (program.tables or has_product or self._drops or len(program.mains) > 1)",
        "return not (program.tables or has_product or len(program.mains) > 1)",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts each alternative by itself",
        "return not (program.tables or has_product or self._drops or len(program.mains) > 1)",
        "return not (program.tables or has_product or self._drops)",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts walks that absences or policies drop",
        "return self.decides and not self.reach.query.ranks_matches and self.is_distinct",
        "return True",
        (REFUSED,),
    ),
    Mutation(
        "limit on matches counts time-outs",
        "return part.kept(part._runner(rows, limits, jit), rows, listed, counts=False)",
        "return part.kept(part._runner(rows, limits, jit), rows, listed)",
        (REFUSED,),
    ),
    Mutation(
        "option without effect accepted",
        "if place in OPTIONS[name].no_effect:",
        "if place == OPTIONS[name].no_effect:",
        (f"{OPTIONS}::test_whatever_is_asked_of_the_local_engine_is_done_or_refused",),
    ),
    Mutation(
        "bounds of row groups hide NaN",
        "    if pa.types.is_floating(bounds.type):  # NaN is above all numbers",
        "    if pa.types.is_null(bounds.type):",
        ("tests/engines/test_lazy_tables.py::test_a_row_group_is_read_unless_its_bounds_exclude_it",),
    ),
    Mutation(
        "row groups are skipped where every event counts",
        "    if not manifest.counts_every_event and isinstance(table, LazySlice)",
        "    if isinstance(table, LazySlice)",
        ("tests/engines/test_lazy_tables.py::test_where_every_event_counts_no_row_group_is_left_out",),
    ),
    Mutation(
        "local engine ignores id=",
        "Reader(search, needs, id, ties)]",
        "Reader(search, needs, None, ties)]",
        (LEFT_OUT,),
    ),
    Mutation(
        "local engine ignores tie=",
        "Reader(search, needs, id, ties)]",
        "Reader(search, needs, id)]",
        (LEFT_OUT,),
    ),
    Mutation(
        "local engine ignores type=",
        "of_each_type(table_of(inputs), named, type_column)",
        "of_each_type(table_of(inputs), named, 'type')",
        (LEFT_OUT,),
    ),
    Mutation(
        "local engine ignores time_unit=",
        "unit = unit_of(options.time_unit, types, times, (query,), warns=warns)",
        "unit = unit_of(None, types, times, (query,), warns=warns)",
        (LEFT_OUT,),
    ),
    Mutation(
        "shards of a local search do not see what lies behind them",
        "last = max(high, high + ahead) - 1",
        "last = high - 1",
        ("tests/engines/test_local.py",),
    ),
    Mutation(
        "digests of a shard are those of other rows",
        "return self.numbers[rows + self.shard.begin if places is None else places[rows]]",
        "return self.numbers[rows if places is None else places[rows]]",
        ("tests/engines/test_local.py",),
    ),
    Mutation(
        "events of one instant have no text to order them by",
        "alike = rows_alike([times, codes(arrays)]",
        "alike = times[:0] if len(times) else rows_alike([times, codes(arrays)]",
        ("tests/engines/test_local.py", "tests/engines/test_ties.py"),
    ),
    Mutation(
        "NaN is not above all numbers in columns",
        "return pc.or_(found, is_above)",
        "return found",
        ("tests/engines/test_vectors.py",),
    ),
    Mutation(
        "local engine ignores max_matches_per_start=",
        "task_of(member, width_us, most=options.max_matches_per_start, memory=options.task_bytes)",
        "task_of(member, width_us, memory=options.task_bytes)",
        (LEFT_OUT,),
    ),
    Mutation(
        "local engine ignores max_task_memory=",
        "task_of(member, width_us, most=options.max_matches_per_start, memory=options.task_bytes)",
        "task_of(member, width_us, most=options.max_matches_per_start, memory=1 << 40)",
        (LEFT_OUT,),
        (("_found(shipped, [search], task, options.task_bytes)", "_found(shipped, [search], task, 1 << 40)"),),
    ),
    Mutation(
        "local engine ignores strategy=",
        "run(plan_of(query, types, times, options, warns=warns, engine=LOCALLY), events)",
        'run(plan_of(query, types, times, replace(options, strategy="auto"), warns=warns, engine=LOCALLY), events)',
        (LEFT_OUT,),
    ),
    Mutation(
        "rules on the local engine ignore max_matches_per_start=",
        "return Task(groups, options.max_matches_per_start, options.task_bytes)",
        "return Task(groups, memory=options.task_bytes)",
        (LEFT_OUT,),
    ),
    Mutation(
        "rules on the local engine ignore id=",
        "ids = [one.plan.options.id for one in rules]",
        "ids = [None for one in rules]",
        (LEFT_OUT,),
    ),
    Mutation(
        "batches ignore max_matches_per_start=",
        "task = task_of(member, width, most=options.max_matches_per_start, memory=options.task_bytes)",
        "task = task_of(member, width, memory=options.task_bytes)",
        (WALK,),
    ),
    Mutation(
        "streams ignore emit=",
        '        options.emit == "auto",\n        options.max_matches_per_start,',
        "        True,\n        options.max_matches_per_start,",
        (WALK,),
    ),
    Mutation(
        "streams ignore shards=",
        "        options.shards,\n        options.emit",
        "        None,\n        options.emit",
        (WALK,),
    ),
    Mutation(
        "programs on streams ignore max_matches_per_start=",
        "            self.program.options.max_matches_per_start,\n            self.program.options.task_bytes,",
        "            10**9,\n            self.program.options.task_bytes,",
        (WALK,),
    ),
    # --- policies ---
    Mutation(
        "AFTER MATCH SKIP PAST LAST reuses the last event",
        "return view.last + 1",
        "return view.last",
        ("tests/kernels/test_policies.py",),
    ),
    Mutation(
        "OUTPUT per end chosen before the frontier moves",
        "if output in PER_END:",
        "if output not in PER_END:",
        ("tests/kernels/test_policies.py",),
    ),
    Mutation(
        "last match per start is the first",
        "return best(view, by_start, -view.end, view.last)",
        "return best(view, by_start, view.end, view.last)",
        ("tests/kernels/test_policies.py",),
    ),
    Mutation(
        "equal matches reported twice",
        "return np.delete(np.arange(len(matches), dtype=np.int64), doubtful[repeated])",
        "return np.arange(len(matches), dtype=np.int64)",
        ("tests/kernels/test_find.py", "tests/kernels/test_policies.py"),
    ),
    Mutation(
        "contiguous matches may have gaps",
        "kept: Mask = view.last - view.first + 1 == view.sizes",
        "kept: Mask = view.last - view.first + 1 >= view.sizes",
        ("tests/kernels/test_policies.py",),
    ),
    # --- analysis and rewriting ---
    Mutation(
        "strict distance taken as closed",
        'yield from _at_most(total, where, strict=op == "<")',
        "yield from _at_most(total, where, strict=False)",
        ("tests/analysis/test_temporal.py",),
    ),
    Mutation(
        "absence dropped under contiguity",
        "if query.selection in CONTIGUOUS or not is_plain(query):",
        "if not is_plain(query):",
        ("tests/optimizer/test_rules.py",),
    ),
    Mutation(
        "attribute never NULL under next",
        "if query.selection is Selection.NEXT or not is_plain(query):",
        "if not is_plain(query):",
        ("tests/optimizer/test_nulls.py",),
    ),
    Mutation(
        "NEXT skips at most one event",
        "            Step(skipping, skipping, other),\n",
        "",
        ("tests/automata/test_against_reference.py",),
    ),
    # --- streams ---
    Mutation(
        "event at the watermark counts as late",
        "is_late = integers(array_of(arrived, time)) < before",
        "is_late = integers(array_of(arrived, time)) <= before",
        ("tests/streaming/test_stepping.py",),
    ),
    Mutation(
        "match reported twice at the watermark",
        "return (due >= before) & (due < now)",
        "return (due >= before) & (due <= now)",
        ("tests/streaming/test_stepping.py",),
    ),
    Mutation(
        "event forgotten one microsecond too early",
        "|= (ts < max(watermark - life, BEFORE_ALL)).astype(np.int64) << place",
        "|= (ts <= max(watermark - life, BEFORE_ALL)).astype(np.int64) << place",
        ("tests/streaming/test_stepping.py",),
    ),
    Mutation(
        "nothing is ever forgotten",
        "return rows if live.all() else rows.filter(pa.array(live))",
        "return rows",
        ("tests/streaming/test_stepping.py", "tests/streaming/test_bounds.py"),
    ),
    # --- Spark ---
    Mutation(
        "time slice without the events after its end",
        "copied_back = (within < F.lit(sees.ahead_us))",
        "copied_back = (within < F.lit(0))",
        ("tests/engines/test_sliced.py::test_matches_that_straddle_slices_are_found_once_also_before_the_epoch",),
    ),
    Mutation(
        "join without the exact distance",
        "return (apart >= near.low_us) & (apart <= near.high_us)",
        "return (apart >= near.low_us) & (apart <= near.high_us + 1)",
        ("tests/engines/test_joins.py::test_a_distance_is_exact_to_the_microsecond",),
    ),
)


class BrokenMutationError(Exception):
    """A mutation that cannot be applied, or tests that do not run."""


def places_of(mutation: Mutation, source: Path = SOURCE) -> list[Path]:
    """For each text of a mutation, the only file that has it."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    found = []
    for old, _ in mutation.changes:
        places = [path for path, text in texts.items() for _ in range(text.count(old))]
        if len(places) != 1:
            shown = [str(path.relative_to(source)) for path in places] or "no file"
            raise BrokenMutationError(f"`{mutation.name}`: `{old}` must occur once, and occurs in {shown}")
        found += places
    return found


def apply(mutation: Mutation, source: Path) -> None:
    """Change a copy of the source."""
    for path, (old, new) in zip(places_of(mutation, source), mutation.changes, strict=True):
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def run(tests: Sequence[str], source: Path, *, first_only: bool = True) -> int:
    """Run tests on a source; the exit code of pytest."""
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-m", "not slow", *(["-x"] if first_only else [])]
    own = {"PYTHONPATH": str(source), "HYPOTHESIS_PROFILE": "unshrunk", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **own}, stdout=subprocess.DEVNULL, check=False
    ).returncode


def is_caught(mutation: Mutation, tests: Sequence[str]) -> bool:
    """Whether tests fail on the mutated source."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(shutil.copytree(SOURCE, Path(directory) / "src", ignore=shutil.ignore_patterns("__pycache__")))
        apply(mutation, source)
        code = run(tests, source)
    if code not in (PASSED, FAILED):
        raise BrokenMutationError(f"`{mutation.name}`: pytest ended with {code}, so that its tests did not run")
    return code == FAILED


def main() -> int:
    """Apply the mutations that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only mutations whose names contain one of these")
    parser.add_argument("--list", action="store_true", help="list the mutations and run nothing")
    parser.add_argument("--fast", action="store_true", help="run all tests that need no JVM")
    asked = parser.parse_args()
    chosen = [each for each in MUTATIONS if not asked.words or any(word in each.name for word in asked.words)]
    try:
        for each in chosen:
            places = places_of(each)
            if asked.list:
                print(each.name, *(place.relative_to(ROOT) for place in places), *each.tests, sep="\n    ")
        return 0 if asked.list else report(chosen, fast=asked.fast)
    except BrokenMutationError as problem:
        print(problem, file=sys.stderr)
        return 2


def report(chosen: Sequence[Mutation], *, fast: bool) -> int:
    """Print what becomes of each mutation; 1 when one survives."""
    everything = ["-n", "2", "--dist", "loadfile", "-m", FAST] if fast else None
    named = everything or sorted({test for each in chosen for test in each.tests})
    if run(named, SOURCE, first_only=False) != PASSED:
        raise BrokenMutationError("The tests fail on the unchanged source: mend that first.")
    survived = 0
    for each in chosen:
        begin = time.monotonic()
        caught = is_caught(each, everything or each.tests)
        survived += not caught
        print(f"{'caught  ' if caught else 'SURVIVED'}  {time.monotonic() - begin:5.0f} s  {each.name}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutations caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
