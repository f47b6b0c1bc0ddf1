"""Public helpers for tests: case files, comparison of rows, Hypothesis strategies for queries and streams.

`strategies` and `formulas` need Hypothesis and are imported by name: `from tocsin.testing import strategies`.
"""

from tocsin.testing.cases import Case, assert_same_rows, load_cases

__all__ = ["Case", "assert_same_rows", "load_cases"]
