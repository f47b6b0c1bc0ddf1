"""Expressions of Spark as SQL text, made in Python and handed to Spark whole.

Every operation on a Column of PySpark is several calls to the JVM, or on Connect a message that grows; a plan makes
thousands. A `Column` here is text until a DataFrame gets it, by one call for all columns of a `select`.

`column` has operators and methods of a Column, and `functions` Spark's functions, under PySpark's names and with their
meaning; `column` also applies Columns to a DataFrame. No other module writes SQL. Text is composed of operands that
need no parentheses around them.
"""

from tocsin.engines.spark.sql.column import Column

__all__ = ["Column"]
