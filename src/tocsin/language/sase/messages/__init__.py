"""Syntax errors in the words of the person who wrote the query.

`syntax_error` finds out how far the parser came and what it could have read there (`situation`), lets the
habits of people coming from SQL, FlinkCEP, Esper or Python recognise themselves (`characters`, `pattern`,
`clauses`, `conditions`), and otherwise says what was expected and what was found (`expected`). Terminals of
the grammar never show.
"""

from tocsin.language.sase.messages.report import syntax_error

__all__ = ["syntax_error"]
