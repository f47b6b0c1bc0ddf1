"""Patterns as joins of Spark: the mapping of paper 002 with its optimisations O1 and O3.

`claims` says what joins can run, `plan` decides how on the algebra alone, `frames` builds the DataFrame, `describe`
tells the plan in words; `counts` answers `COUNT(*)` over an iteration without building a match (O2).
"""
