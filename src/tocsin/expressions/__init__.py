"""Expressions on Python values: what numbers cannot decide, and what decides it alike in automata, kernels and engines.

module           what it holds
------           -------------
interpret        expressions as closures over the events of a match
objects          order, arithmetic and functions of Python values
monoids          aggregates of bags of them, and value by value
rule_functions   the functions that only rules write
numeric          arithmetic and order of 64-bit integers and doubles, which numba compiles too
"""
