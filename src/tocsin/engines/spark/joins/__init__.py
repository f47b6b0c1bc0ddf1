"""Patterns as joins of Spark: `frames` builds the DataFrame of a plan (`tocsin.plan.joins`).

`counts` answers `COUNT(*)` over an iteration without building a match (002, O2).
"""
