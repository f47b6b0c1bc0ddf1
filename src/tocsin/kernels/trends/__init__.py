"""Aggregation over all matches without building them (SEMANTICS §9): dynamic programming over words."""
