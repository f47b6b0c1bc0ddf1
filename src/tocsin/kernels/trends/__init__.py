"""Aggregates over all matches, counted without building a match.

`SEQ(A a, B+ b, C c)` over n events of B has about 2ⁿ matches. Their number, and the sum of `b.x` over all of them, take
one pass over the events:

step                                                         module
----                                                         ------
read the query: can it be counted, what does it request?     `request`, which rewrites ACEL formulas
make its deterministic automaton: a match is a path          `machine`
read the rows of a task: symbols, weights, keys              `trend_count`
choose numbers: int64, doubles, or residues modulo primes    `task`
add up over all paths                                        `blocks`; `chains` where neighbours are compared
operations on numbers, as semirings                          `semirings`
add up over tasks, round once, answer                        `totals`

code        meaning
----        -------
symbol      a variable and an event type; an event can be several symbols
path        a match: events, each as a symbol, that lead from the start of the automaton to a final state
label       the group of a match, decided by its first event

Both searches are written once: numba compiles their source, and small tasks run it as plain Python. They are the same
for all queries, which are tables to them, so that numba compiles each once; conditions between neighbours are text.
"""
