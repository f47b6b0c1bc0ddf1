"""Habits in the condition of a FILTER."""

from __future__ import annotations

from tocsin.errors import QuerySyntaxError
from tocsin.language.acel.messages.situation import Situation
from tocsin.language.expressions import BagOrder
from tocsin.language.sase.messages.situation import Piece

EXAMPLE = "write x[price > 100]: the variable, and in brackets what holds for each of its events."


def atom_missing(s: Situation) -> QuerySyntaxError | None:
    """`A FILTER`, `A FILTER A[x > 1] AND`, `FILTER price > 100`, `FILTER NOT A[…]`."""
    if not s.expects_atom:
        return None
    if s.found.upper == "NOT" or s.found.text in {"¬", "!"}:
        return s.error(
            "NOT stands inside a predicate, not before one.",
            "write x[NOT price > 100], which holds for every event of x.",
        )
    behind = str(s.last) if s.last is not None else "FILTER"
    if s.found_clause or s.found.text in {")", "]", ";", ":"} or s.found.upper in {"AND", "OR", "FILTER"}:
        return s.error(f"A condition is missing after `{behind}`, {s.but_found}.", EXAMPLE, at=s.last)
    return s.error(f"Expected a condition such as x[price > 100], {s.but_found}.", EXAMPLE)


def atom_without_brackets(s: Situation) -> QuerySyntaxError | None:
    """`A FILTER A.price > 100`, `A FILTER price > 100`."""
    if s.accepts != {"LSQB"} or s.last is None:
        return None
    if len(s.tokens) > 1 and s.tokens[-2].type == "_AGG":
        return None
    name = str(s.last)
    if s.found.text == ".":
        attribute = s.after().text if s.after().kind == "word" else "price"
        rest = _comparison(s, 2)
        return s.error("A predicate stands in brackets behind its variable.", f"write {name}[{attribute}{rest}].")
    if s.found.kind == "sign" and s.found.text in {"=", "!=", "<>", "<", "<=", ">", ">=", "≤", "≥", "≠", "=="}:
        return s.error(
            f"`{name}` does not say whose attribute it is.",
            f"write x[{name}{_comparison(s, 0)}], with the variable for x.",
        )
    if s.found.text == "(" and name.lower() in {order.value for order in BagOrder}:
        attribute = s.after().text if s.after().kind == "word" else "name"
        return s.error(f"`{name}` stands in the brackets of a variable.", f"write x[{name}({attribute})].", at=s.last)
    if s.found.text == "(":
        return s.error("A predicate stands in square brackets.", f"write {name}[price > 100], or {name}[same(name)].")
    what = "`{name}` has no predicate" if s.found_clause else "Expected a predicate in brackets after `{name}`"
    end = "." if s.found_clause else f", {s.but_found}."
    return s.error(
        what.format(name=name) + end,
        f"write {name}[price > 100]; a formula beside one with FILTER needs parentheses: (A FILTER A[x > 1]) OR B.",
    )


def _comparison(s: Situation, start: int) -> str:
    """The comparison written from some pieces on, when it is a plain one."""
    pieces: list[Piece] = [s.after(start + step) if start + step else s.found for step in range(2)]
    if pieces[0].text in {"=", "!=", "<", "<=", ">", ">="} and pieces[1].kind in {"number", "string", "double_quoted"}:
        return f" {pieces[0].text} {pieces[1].text}"
    return " > 100"


def empty_predicate(s: Situation) -> QuerySyntaxError | None:
    """`A FILTER A[]`."""
    if s.last_type != "LSQB" or s.found.text != "]" or not s.expects_value:
        return None
    return s.error("Nothing stands between the brackets.", EXAMPLE)


def comma_in_predicate(s: Situation) -> QuerySyntaxError | None:
    """`A FILTER A[x > 1, y < 2]`."""
    in_brackets = bool(s.unclosed) and s.unclosed[-1].text == "["
    if s.found.text != "," or not in_brackets or not s.expects_operator:
        return None
    return s.error("Conditions are joined by AND, not by a comma.", "write AND instead of `,`.")


def predicates_side_by_side(s: Situation) -> QuerySyntaxError | None:
    """`A FILTER A[x > 1] B[y < 2]`, `A FILTER A[x > 1], B[y < 2]`."""
    if not s.ends_atom or s.last_type not in {"RSQB", "RPAR"}:
        return None
    if s.found.text in {",", "&", "&&"} or (s.found.kind in {"word", "quoted"} and s.after().text == "["):
        return s.error(f"AND or OR is missing before {s.found.describe()}.", "join the conditions with AND or OR.")
    return None


def unclosed_string(s: Situation) -> QuerySyntaxError | None:
    """`x[name = "INTL]`."""
    if s.found.kind != "double_quoted":
        return None
    if s.expects_value:
        return s.error("The string is not closed.", 'close it with `"`; a quote inside a string is doubled.')
    return s.error("A name is not text.", "a name that is no plain word stands in backquotes.")


HABITS = (
    unclosed_string,
    atom_missing,
    atom_without_brackets,
    empty_predicate,
    comma_in_predicate,
    predicates_side_by_side,
)
