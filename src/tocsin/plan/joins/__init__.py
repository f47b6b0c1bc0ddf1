"""Patterns as joins, the mapping of paper 002 with its optimizations O1 and O3, as data: no Spark."""
