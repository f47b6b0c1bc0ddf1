"""Where and how the reading of a formula stopped."""

from __future__ import annotations

from functools import cached_property

from tocsin.language.sase.messages import situation

CLAUSES = ("WITHIN", "PARTITION", "RETURN", "GROUP", "HAVING", "EVERY")
EXAMPLE = "Login AS l ; Transfer+ AS t FILTER t[amount > 1000] WITHIN 10 MINUTES"


class Situation(situation.Situation):
    """The state of affairs at the first thing that cannot be read."""

    @cached_property
    def clause(self) -> str:
        """The clause reading stopped in, or `PATTERN` for the formula with its filters."""
        words = {"_" + word for word in CLAUSES}
        return next((token.type[1:] for token in reversed(self.tokens) if token.type in words), "PATTERN")

    @property
    def expects_element(self) -> bool:
        """Whether a formula could begin here."""
        return "_AGG" in self.accepts

    @property
    def expects_suffix(self) -> bool:
        """Whether a formula is complete here."""
        return "ADJACENT" in self.accepts

    @property
    def expects_atom(self) -> bool:
        """Whether a condition of FILTER could begin here."""
        return (
            "VARIABLE" in self.accepts
            and not self.expects_element
            and self.last_type in {"_FILTER", "AND", "OR", "LPAR"}
        )

    @property
    def ends_atom(self) -> bool:
        """Whether a condition of FILTER is complete here."""
        return "AND" in self.accepts and not self.expects_suffix and not self.expects_operator

    @property
    def expects_operator(self) -> bool:
        """Whether a value is complete here."""
        return "SLASH" in self.accepts

    @property
    def expects_clause(self) -> bool:
        """Whether a clause could begin here."""
        return "_WITHIN" in self.accepts

    @property
    def found_clause(self) -> bool:
        """Whether a clause begins or the query ends here instead of what was expected."""
        if self.found.kind == "end":
            return True
        follows = self.after()
        if self.found.upper in {"GROUP", "PARTITION"}:
            return follows.upper == "BY"
        return self.found.upper in CLAUSES and (follows.kind != "sign" or follows.text == "(")

    @property
    def last_type(self) -> str:
        """The grammar's name of the last token read; empty at the beginning."""
        return self.last.type if self.last is not None else ""
