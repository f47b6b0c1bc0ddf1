"""Programs matched together: the same matches as each rule alone and as the reference, whatever rules share."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.rules.support import ABC, S, compiled, rows, understood, with_streams
from tests.rules.test_engines import plain, tables_of
from tests.rules.test_properties import TEMPLATES, drawn_rule

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import bind
from tocsin.kernels import run
from tocsin.kernels.model import Rows
from tocsin.kernels.nested_loops import kernel
from tocsin.kernels.shared import SharedLoops, common
from tocsin.optimizer.shared_prefixes import Prefix, prefixes
from tocsin.plan.prepare import bounded
from tocsin.reference import evaluate
from tocsin.testing.streams import Streams

DERIVED = "template E { k : String, x : Integer, v : Double }\ntemplate F { x : Integer }\n"


def drawn_program(seed: int) -> str:
    """Rules that begin alike, with other names and other ends; some emit events, which two more rules read."""
    choose = Random(seed)
    base = drawn_rule(choose.randrange(2**32))
    while understood(base.text) is None:
        base = drawn_rule(choose.randrange(2**32))
    names = list(base.positive)
    written = []
    for number in range(choose.randint(2, 4)):
        size = choose.randint(1, len(names))
        known = set(names[:size])
        patterns = [text for text in base.patterns if _variables(text) <= known]
        when = [text for text in base.when if _variables(text) <= known]
        if choose.random() < 0.7:
            kind = choose.choice("ABC")
            is_absent = choose.random() < 0.3
            no = "no " if is_absent else ""
            patterns.append(f"{no}z : {kind} {{ x {choose.choice(('=', '<', '>='))} p0.x }}")
            least = choose.choice((-3, 0, 1))
            when.append(f"{no}z in p0 [{least} s, {least + choose.choice((0, 2, 5))} s]")
        then = ""
        if number == 0 or choose.random() < 0.5:
            last = choose.choice(names[:size])
            then = f"emit E at {last}.timestamp with {{ k = {last}.k, x = p0.x, v = {last}.v }}"
        if choose.random() < 0.3:
            then += " emit F at p0.timestamp + 1 second with { x = p0.x }"
        text = f"rule R{number} where {', '.join(patterns)} when {' '.join(when)} then {then}"
        letter = choose.choice("pq")
        written.append(re.sub(r"\bp(\d)", rf"{letter}\1", text))
    written.append(
        "rule S where e : E a : A { x = e.x } when a in e [-2 s, 4 s] then emit F at a.timestamp with { x = 0 }"
    )
    written.append(
        "rule T where e : E b : A { x = e.x } no c : B { x = e.x } when b in e [-2 s, 4 s] no c in e [0 s, 2 s]"
    )
    written.append("rule U where f : F no g : F { x > f.x } when no g in f [-2 s, 2 s]")
    choose.shuffle(written)
    return TEMPLATES + DERIVED + "\n".join(written)


def _variables(text: str) -> set[str]:
    return set(re.findall(r"\b[pn]\d\b", text))


def by_rule(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The matches of each rule as `matches` gives them; the columns of other rules must be NULL."""
    rules = [name for name in (found[0] if found else {}) if name not in ("rule", "match_id", "start", "end")]
    split: dict[str, list[dict[str, Any]]] = {name: [] for name in rules}
    for row in found:
        assert all(row[name] is None for name in rules if name != row["rule"])
        split[row["rule"]].append({name: row[name] for name in ("match_id", "start", "end")} | row[row["rule"]])
    return split


@settings(max_examples=18)
@given(**with_streams(drawn_program, max_events=9))
def test_programs_matched_together_are_as_the_reference_and_as_each_rule_alone(text: str, stream: Streams) -> None:
    program = compiled(text)
    inputs: Any = tables_of(stream)
    found = by_rule(program.match(inputs, engine="local").to_pylist())
    for name, wanted in evaluate(program, stream).items():
        own = found.get(name, [])
        assert Counter(map(plain, own)) == Counter(map(plain, wanted)), name
        if name.startswith("R"):  # the others would search for all that they read once more
            alone = program.matches(name, inputs, engine="local").to_pylist()
            assert Counter(row["match_id"] for row in own) == Counter(row["match_id"] for row in alone), name


@settings(max_examples=18)
@given(**with_streams(drawn_program, max_events=9))
def test_some_rules_of_a_program_are_as_in_all_of_it(text: str, stream: Streams) -> None:
    program = compiled(text)
    inputs: Any = tables_of(stream)
    every = by_rule(program.match(inputs, engine="local").to_pylist())
    some = program.match(inputs, rules=["S", "R0"], engine="local")
    assert some.column_names[:4] == ["rule", "match_id", "start", "end"]
    assert sorted(some.column_names[4:]) == ["R0", "S"]
    found = by_rule(some.to_pylist())
    for name in ("S", "R0"):
        assert Counter(map(plain, found.get(name, []))) == Counter(map(plain, every.get(name, [])))


# --- prefixes -------------------------------------------------------------------------------------

LISTING_5_1 = """
    template A { x : Integer } template B { x : Integer } template C { x : Integer } template E { x : Integer }
    template D { x : Integer } template F { x : Integer } template G { x : Integer }
    rule First  where a : A b : B { x = a.x } c : C when b in a [0 s, 2 s] c in b [0 s, 3 s]
      then emit D at c.timestamp with { x = a.x }
    rule Second where one : A other : B { x = one.x } e : E when other in one [0 s, 2 s] e in other [0 s, 9 s]
      then emit F at e.timestamp with { x = one.x }
    rule Third  where c : C no d : D { x = c.x } when no d in c [0 s, 5 s] then emit G at c.timestamp with { x = c.x }
"""


def queries(text: str) -> list[alg.Query]:
    return [bounded(rule.query) for rule in compiled(text).program.rules]


def test_what_rules_begin_with_in_common() -> None:
    assert prefixes(queries(LISTING_5_1)) == [Prefix(2, (0, 1))]


@pytest.mark.parametrize(
    "other",
    [
        "where p : A q : B { x = p.x } r : D when q in p [0 s, 3 s] r in p [0 s, 4 s]",  # another distance
        "where p : A q : B { x > p.x } r : D when q in p [0 s, 2 s] r in p [0 s, 4 s]",  # another condition
        "where p : A { x > 1 } q : B { x = p.x } r : D when q in p [0 s, 2 s] r in p [0 s, 4 s]",  # on one event
        "where p : B q : A { x = p.x } r : D when q in p [0 s, 2 s] r in p [0 s, 4 s]",  # other types
        "where p : A q : B+ { x = p.x } r : D when q in p [0 s, 2 s] q in q [0 s, 1 s] r in p [0 s, 4 s]",
    ],
)
def test_what_differs_is_not_shared(other: str) -> None:
    one = "rule R where a : A b : B { x = a.x } c : C when b in a [0 s, 2 s] c in b [0 s, 3 s]"
    assert prefixes(queries(f"{ABC} {one} rule S {other}")) == []


def test_a_longer_beginning_goes_on_from_a_shorter() -> None:
    begin = "where a : A b : B { x = a.x } c : C { x > b.x }"
    when = "when b in a [0 s, 2 s] c in b [0 s, 3 s]"
    found = prefixes(
        queries(
            f"{ABC} rule R {begin} {when} rule S {begin} d : D {when} d in a [0 s, 9 s] "
            "rule T where a : A b : B { x = a.x } d : D when b in a [0 s, 2 s] d in b [0 s, 3 s]"
        )
    )
    assert found == [Prefix(2, (0, 1, 2)), Prefix(3, (0, 1), before=0)]


class Calls:
    """What generated functions are called, and how many times each variable's list is looped over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        monkeypatch.setattr(run.compile, "plain", self._plain(run.compile.plain))

    def _plain(self, real: Any) -> Any:
        def plain(text: str) -> Any:
            self.texts.append(text)
            return real(text)

        return plain


def test_requirement_43_a_common_beginning_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing 5.1: `a, b` is one table, which the two rules go on from; alone each of them searches for it."""
    program = compiled(LISTING_5_1)
    choose = Random(5)
    stream: Any = {
        name: [{"ts": choose.randrange(100) * S // 2, "x": choose.randrange(3)} for _ in range(40)] for name in "ABCE"
    }
    calls = Calls(monkeypatch)
    found = by_rule(program.match(stream, rules=["First", "Second"], engine="local").to_pylist())
    loops = [sorted(re.findall(r"while \w+ < z_(\w+):", text)) for text in calls.texts]
    # One function loops over `a` and `b`; two over its rows and one more variable.
    assert sorted(map(len, loops)) == [2, 2, 2]
    assert sum("t0" in names for names in loops) == 2
    calls.texts.clear()
    alone = {name: program.matches(name, stream, engine="local").to_pylist() for name in found}
    loops = [re.findall(r"while \w+ < z_(\w+):", text) for text in calls.texts]
    assert sorted(map(len, loops)) == [3, 3]
    for name, own in found.items():
        assert len(own) > 5
        assert Counter(map(plain, own)) == Counter(map(plain, alone[name]))


def test_requirement_43_equal_conditions_are_one_flag_and_one_sorted_list() -> None:
    one = "rule R where a : A { x > 1 } b : B { x = a.x } when b in a [0 s, 2 s]"
    other = "rule S where p : A { x > 1 } q : A q2 : B when q in p [0 s, 5 s] q2 in p [0 s, 1 s]"
    schemas = {name: {"ts": "bigint", "x": "bigint"} for name in "AB"}
    kernels = [kernel(bind(query, schemas, time="ts")) for query in timed(ABC + one + other)]
    sources, changed = common(kernels)
    # `a` and `p` are the same candidates; `b` needs a value of x, and `q2` does not.
    assert [source.bit for source in changed[0].sources] == [0, 1]
    assert [source.bit for source in changed[1].sources] == [0, 2, 3]
    assert len(sources) == 4


def timed(text: str) -> list[alg.Query]:
    """The queries of a program as engines run them, on data whose time column is `ts`."""
    program = compiled(text).program
    rules = tuple(replace(rule, query=bounded(rule.query)) for rule in program.rules)
    return [rule.query for rule in replace(program, rules=rules).timed("ts").rules]


def test_a_beginning_with_too_many_matches_is_searched_by_each_rule() -> None:
    """The limit is on matches of rules; what they begin with may have more."""
    begin = "where a : A b : B"
    when = "when b in a [0 s, 9 s]"
    text = f"{ABC} rule R {begin} c : C {when} c in b [0 s, 1 s] rule S {begin} d : D {when} d in b [0 s, 1 s]"
    schemas = {name: {"ts": "bigint", "x": "bigint"} for name in "ABCD"}
    sources, kernels = common([kernel(bind(query, schemas, time="ts")) for query in timed(text)])
    together = SharedLoops(kernels, sources)
    bits = {source.types[0]: 1 << source.bit for source in sources}
    times = [(0, "A"), *((second * S, "B") for second in range(9)), (8 * S, "C"), (8 * S, "D")]
    given = Rows(np.array([ts for ts, _ in times]), np.array([bits[name] for _, name in times]))
    clocks = [_with_times(one.carried, given) for one in kernels]
    few = {number: len(matches) for number, matches in together.find(clocks, most=4, jit=False)}
    assert few == {0: 2, 1: 2}
    with pytest.raises(errors.TooManyMatchesError):
        list(together.find(clocks, most=1, jit=False))


def _with_times(carried: Any, given: Rows) -> Rows:
    return replace(given, columns=tuple((given.ts, None) for _ in carried))


# --- the result -----------------------------------------------------------------------------------


def test_names_that_cannot_be_columns_are_refused() -> None:
    program = compiled(f"{ABC} rule Start where a : A rule r where a : A rule R where b : B")
    stream: Any = rows(A="0", B="0")
    with pytest.raises(errors.QueryErrors) as caught:
        program.match(stream, engine="local")
    assert [str(one.condition) for one in caught.value.errors] == ["INVALID_OPTION", "INVALID_OPTION"]
    assert program.match(stream, rules=["r"], engine="local").column_names[4:] == ["r"]
    with pytest.raises(errors.UnknownRuleError, match="no rule `Q`"):
        program.match(stream, rules=["Q"], engine="local")


def test_rules_without_matches_have_their_columns() -> None:
    program = compiled(f"{ABC} rule R where a : A {{ x > 5 }} rule S where b : B")
    found = program.match(rows(A="0:1", B=""), engine="local")  # type: ignore[arg-type]
    assert found.num_rows == 0
    assert found.schema.field("R").type == pa.struct([("a", pa.struct([("ts", pa.int64()), ("x", pa.int64())]))])


def test_random_programs_share_beginnings() -> None:
    """So that the properties above say something about them."""
    drawn = [prefixes(queries(drawn_program(seed))) for seed in range(40)]
    assert sum(map(bool, drawn)) >= 12
    assert any(one.before is not None for found in drawn for one in found)
