"""What to say of a text that is not a program.

Reading stops somewhere; `report` asks the habits of the modules here, one by one, whether they recognise the mistake.
"""

from tocsin.language.partelang.messages.report import syntax_error

__all__ = ["syntax_error"]
