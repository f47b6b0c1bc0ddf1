"""The kernels' back end of the expression tree: source text over numbers.

`slots` finds what a condition needs of each event, `code` writes it as Python that Numba can compile. What numbers
cannot decide, `tocsin.expressions.interpret` evaluates on the events themselves.
"""
