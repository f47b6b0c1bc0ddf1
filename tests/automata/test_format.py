"""Automata in writing, on Example 6 of 003."""

from __future__ import annotations

from tests.automata.test_paper_examples import example_6

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.automata.format import to_text
from tocsin.language import expressions as ex

# Figure 2 has the same states: one before each part of the sequence, and the end; the iteration waits where the last
# sale is awaited. It differs in its registers: the figure copies name and price of every event into registers to test
# and output them, ours reads them from the event, and the maximum begins when the first INTL sale is read, not
# with a 0 when the match begins.
EXAMPLE_6 = """\
6 transitions between 4 states, registers max(intel.price)
tests
  t0  name = 'MSFT'
  t1  price > 100
  t2  type = 'SELL'
  t3  name = 'INTL'
  t4  price < 2000
  t5  name = 'AMZN'
state 0 (start)
  → 1  t0 and t1 and t2 / SELL: event, msft: event
state 1
  → 1  any event
  → 2  t2 and t3 | max(intel.price) := MAX(price) / SELL: event, intel: event
state 2 knows max(intel.price)
  → 2  any event
  → 2  t2 and t3 | max(intel.price) max= price / SELL: event, intel: event
  → 3  t2 and t4 and t5 / SELL: event, amzn: event, M: [MAX = `max(intel.price)`]
state 3 (end)"""


def test_text() -> None:
    assert to_text(automata.automaton(example_6())) == EXAMPLE_6


def test_every_word_of_transitions_can_be_written() -> None:
    rising = alg.Filter(alg.Repeat(alg.Event("A", "A"), 1, None), ex.BagPredicate(ex.BagOrder.INCREASING, "A", ("x",)))
    totals = [
        alg.Derive(rising, "M", (alg.Fold("d", function, "A", path),))
        for function, path in (("max", ()), ("sum", ("place", "x")))
    ]
    text = to_text(automata.automaton(alg.Both(tuple(totals))))
    for word in ("is_later", "IDENTICAL(", "MAX(time)", "place.x", "`last(A.x)` < x"):
        assert word in text, text
