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
    f"tests/physical/test_{name}.py" for name in ("counted_formulas", "limits", "distinct_matches", "ties")
)
FAST = "not spark and not compiled and not long and not slow"
PASSED, FAILED = 0, 1  # exit codes of pytest; all others mean that the tests did not run


@dataclass(frozen=True)
class Mutation:
    """A text of the source, what replaces it, and the tests that must fail then."""

    name: str
    old: str
    new: str
    tests: tuple[str, ...]


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
        "if all(condition({variable: (row,)}) for condition in conditions):",
        "if any(condition({variable: (row,)}) for condition in conditions) or not conditions:",
        ("tests/physical/test_local.py", "tests/semantics/test_cases.py"),
    ),
    Mutation(
        "tie columns ignored",
        "return replace(node, order=Order.TIES)",
        "return node",
        (f"{TIES}::test_every_local_strategy_orders_ties_as_the_reference",),
    ),
    Mutation(
        "tie columns ignored beside an absence",
        "return replace(bound, order=Order.TIES) if is_neighbour else bound",
        "return bound",
        (f"{TIES}::test_every_local_strategy_orders_ties_as_the_reference",),
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
        "number = bags.sizes if nulls is None else bags.sums(lambda rows: (~nulls[rows]).astype(np.int64))",
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
        "if len(self.neighbours) > before:",
        "if not node:",
        (f"{FORMULAS}::test_bag_predicates_count_where_they_stand",),
    ),
    Mutation(
        "filter of a part compares the events of the whole match",
        "if held != [leaf for leaf in self.leaves if predicate.variable in leaf.names]:",
        "if not held:",
        (f"{FORMULAS}::test_bag_predicates_count_where_they_stand",),
    ),
    Mutation(
        "equal values made at two events have one id",
        "return chain(of_made[numbers].view(np.uint64), digests[made.rows[numbers]]).view(np.int64)",
        "return of_made[numbers]",
        (f"{MATCHES}::test_events_that_are_made_tell_matches_apart_by_value",),
    ),
    Mutation(
        "hidden events at the ends of a match are not part of its id",
        "    for rows in matches.edges or ():\n        found = chain(found, digests(rows))\n",
        "",
        (f"{MATCHES}::test_events_that_are_made_tell_matches_apart_by_value",),
    ),
    Mutation(
        "equal events of two variables are two",
        "held += block[: max(numbers.values())]",
        "held += block",
        (f"{MATCHES}::test_events_that_are_made_tell_matches_apart_by_value",),
    ),
    # --- limits and options ---
    Mutation(
        "limit on matches counts the ways to derived events",
        "UNLIMITED if is_compared else most, memory, jit)",
        "most, memory, jit)",
        (f"{LIMITS}::test_engines_refuse_exactly_when_one_start_has_more_matches_than_allowed",),
    ),
    Mutation(
        "limit on matches counts what loops find",
        "return not (program.tables or has_product or self._drops or len(program.mains) > 1)",
        "return True",
        (f"{LIMITS}::test_engines_refuse_exactly_when_one_start_has_more_matches_than_allowed",),
    ),
    Mutation(
        "option without effect accepted",
        "and place in option.no_effect:",
        "and place == option.no_effect:",
        ("tests/api/test_options.py::test_whatever_is_asked_of_the_local_engine_is_done_or_refused",),
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
        "if output.is_per_end:",
        "if not output.is_per_end:",
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
        "first = first_of_equals(view)",
        "first = np.arange(len(view))",
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
        "copied_back = (within < F.lit(kernel.ahead_us))",
        "copied_back = (within < F.lit(0))",
        ("tests/physical/test_sliced.py::test_matches_that_straddle_slices_are_found_once_also_before_the_epoch",),
    ),
    Mutation(
        "join without the exact distance",
        "return minus(time, anchor).between(near.low_us, near.high_us)",
        "return minus(time, anchor).between(near.low_us, near.high_us + 1)",
        ("tests/physical/test_joins.py::test_a_distance_is_exact_to_the_microsecond",),
    ),
)


class BrokenMutationError(Exception):
    """A mutation that cannot be applied, or tests that do not run."""


def place_of(mutation: Mutation, source: Path = SOURCE) -> Path:
    """The only file with the text of a mutation."""
    found = {path: path.read_text(encoding="utf-8").count(mutation.old) for path in sorted(source.rglob("*.py"))}
    places = [str(path.relative_to(source)) for path, number in found.items() for _ in range(number)]
    if len(places) != 1:
        raise BrokenMutationError(f"`{mutation.name}`: its text must occur once, and occurs in {places or 'no file'}")
    return source / places[0]


def apply(mutation: Mutation, source: Path) -> Path:
    """Change a copy of the source."""
    path = place_of(mutation, source)
    path.write_text(path.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    return path


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
            place = place_of(each)
            if asked.list:
                print(f"{each.name}\n    {place.relative_to(ROOT)}\n    {' '.join(each.tests)}")
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
