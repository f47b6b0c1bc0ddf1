"""The kernels' back ends of the expression tree: source text over numbers, and closures over Python values.

`slots` says what a condition needs of each event, `code` writes it as Python that Numba can compile, `numeric` holds
the functions such code calls; `interpret` evaluates what numbers cannot decide, on the events themselves.
"""
