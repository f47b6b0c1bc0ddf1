"""Syntax errors of ACEL in the words of the person who wrote the formula.

As for SASE+ (`tocsin.language.sase.messages`), whose habits of spelling, windows, values and brackets are used again:
first the mistakes that recognise themselves (`formulas`, `conditions`), then what was expected and what was found.
"""

from tocsin.language.acel.messages.report import syntax_error

__all__ = ["syntax_error"]
