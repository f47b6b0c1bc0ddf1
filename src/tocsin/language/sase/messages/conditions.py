"""Habits in conditions: operators without operands, comparisons, indices, CASE, functions."""

from __future__ import annotations

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.sase.messages.expected import ARITHMETIC
from tocsin.language.sase.messages.situation import Situation
from tocsin.language.sase.words import CLAUSES, RESERVED_IN_CONDITIONS, quoted

JOINING = {"AND", "OR", "∧", "∨"}
# What shows that an operand is not coming any more.
ENDING = JOINING | {")", "]", ",", ";", "THEN", "WHEN", "ELSE", "END", "AS"}
PATTERN_MATCHING = {"RLIKE", "ILIKE", "REGEXP", "REGEXP_LIKE", "MATCHES", "SIMILAR"}


def operand_missing(s: Situation) -> QuerySyntaxError | None:
    """`a.x > AND b.y = 3`, `WHERE AND a.x > 5`, `a.x + `."""
    if not s.expects_value or s.last is None:
        return None
    ends = s.found_clause or s.found.text in ENDING or s.found.upper in ENDING
    if s.last.type in {"COMPARISON", *ARITHMETIC} and (ends or s.found.kind == "sign"):
        return s.error(
            f"A value is missing between `{s.last}` and {s.found.describe()}.",
            f"write one there, as in `a.x {s.last} 5`.",
            at=s.last,
        )
    if s.last.type in {"AND", "OR", "NOT"} and ends:
        return s.error(
            f"A condition is missing between `{s.last}` and {s.found.describe()}.",
            f"write one there, or remove {s.last.upper()}.",
            at=s.last,
        )
    if s.found.upper in JOINING or s.found.text in JOINING:
        return s.error(
            f"A condition is missing before {s.found.text.upper()}.",
            "remove the word, or write what it joins.",
        )
    return None


def half_number(s: Situation) -> QuerySyntaxError | None:
    """`.5`."""
    if not s.expects_value or s.found.text != "." or s.after().kind != "number":
        return None
    return s.error(
        "A number begins with a digit.",
        f"write 0.{s.after().text}.",
        at=s.place(s.found, s.after()),
    )


def reserved_word(s: Situation) -> QuerySyntaxError | None:
    """`WHERE end > 5`: a keyword where a name could stand."""
    if not s.expects_value or s.found.upper not in RESERVED_IN_CONDITIONS or s.found.upper in CLAUSES:
        return None
    return s.error(
        f"`{s.found.text}` is a keyword and cannot begin a value.",
        f"as a name it stands in backquotes: `{s.found.text}`.",
    )


def chained_comparison(s: Situation) -> QuerySyntaxError | None:
    """`1 < a.x < 5`."""
    if s.found.kind != "sign" or s.found.text not in {"=", "!=", "<>", "<", "<=", ">", ">=", "≤", "≥", "≠"}:
        return None
    if not s.expects_operator or "COMPARISON" in s.accepts:
        return None
    return s.error(
        "Comparisons do not chain.",
        "write `1 < a.x AND a.x < 5`, or BETWEEN; to compare with a condition, put it in parentheses.",
    )


def is_something(s: Situation) -> QuerySyntaxError | None:
    """`a.x IS 5`."""
    if not (s.read("_IS") or s.read("_IS", "NOT")):
        return None
    wanted, sign = ("NULL after IS NOT", "!=") if s.read("NOT") else ("NULL or NOT NULL after IS", "=")
    is_constant = s.found.kind in {"number", "string"} or s.found.upper in {"TRUE", "FALSE"}
    return s.error(
        f"Expected {wanted}, {s.but_found}.",
        f"IS only asks for NULL; to compare, write `{sign} {s.found.text if is_constant else 5}`.",
    )


def in_something(s: Situation) -> QuerySyntaxError | None:
    """`a.x IN 5`, `a.x IN 1, 2`, `a.x IN [1, 2]`."""
    if not s.read("_IN"):
        return None
    values: list[str] = []
    while (value := s.after(2 * len(values))).kind in {"number", "string"} and len(values) < 10:
        values.append(value.text)
        if s.after(2 * len(values) - 1).text != ",":
            break
    return s.error("The values of IN stand in parentheses.", f"write IN ({', '.join(values) or '1, 2'}).")


def between_something(s: Situation) -> QuerySyntaxError | None:
    """`a.x BETWEEN 1, 2`, `BETWEEN 1 TO 2`."""
    if "AND" not in s.accepts or "COMPARISON" in s.accepts or "OR" in s.accepts:
        return None
    if not any(token.type == "_BETWEEN" for token in s.tokens):
        return None
    return s.error(
        f"Expected AND between the two ends of BETWEEN, {s.but_found}.",
        "write BETWEEN 1 AND 2; both ends are included.",
    )


def like_something(s: Situation) -> QuerySyntaxError | None:
    """`a.x LIKE b.y`, `a.x RLIKE '…'`."""
    if s.read("_LIKE"):
        return s.error(
            f"Expected a string after LIKE, {s.but_found}.",
            "write LIKE 'abc%'; % stands for any text, _ for one character.",
        )
    if s.expects_operator and s.found.upper in PATTERN_MATCHING:
        return s.error(
            f"There is no {s.found.upper}.",
            "write LIKE 'abc%'; for regular expressions add a column to the DataFrame beforehand.",
        )
    return None


def index(s: Situation) -> QuerySyntaxError | None:
    """`b[i+]`, `b[*]`, `b[..i-1]`, `b[1:3]`."""
    if not s.unclosed or s.unclosed[-1].text != "[" or s.clause == "PATTERN":
        return None
    if not s.accepts & {"INT", "RSQB"}:
        return None
    name = s.before_bracket(s.unclosed[-1])
    if name is None or name.upper in RESERVED_IN_CONDITIONS:
        return None
    b = name.text
    hint = f"write {b}[i], {b}[i-1], {b}[3], {b}[first] or {b}[last]; plain {b} means every event."
    if s.found.text == ".." or s.after().text == "..":
        hint = f"ranges of events are not supported; {hint}"
    if s.read("PLUS") or s.read("MINUS"):
        return s.error(f"A number is missing after `{s.last}`.", hint)
    if s.found.kind == "end":
        return s.error(f"The index of {b} is not closed.", hint)
    if s.found.kind in {"string", "double_quoted"}:
        attribute = s.found.text[1:-1]
        return s.error("An attribute follows its variable after a dot.", f"write {b}.{quoted(attribute)}.")
    return s.error(f"{s.found.describe()} cannot stand in an index.", hint)


def attribute_missing(s: Situation) -> QuerySyntaxError | None:
    """`b[i] > 5`, `NEXT(b) > 5`, `a.`."""
    if s.accepts == {"DOT"}:
        example = "b[i].x" if s.read("RSQB") else "NEXT(b).x"
        return s.error(f"An attribute is missing before {s.found.describe()}.", f"name one, as in {example}.")
    if s.read("DOT") and "WORD" in s.accepts:
        hint = "name one, as in a.x; a name that is no plain word stands in backquotes."
        if s.found.kind == "number":
            tail = s.after() if s.after().kind == "word" and s.after().start == s.found.end else s.found
            hint = f"a name that begins with a digit stands in backquotes: `{s.written(s.found, tail)}`."
        return s.error(f"Expected the name of an attribute after `.`, {s.but_found}.", hint)
    return None


def next_of_attribute(s: Situation) -> QuerySyntaxError | None:
    """`NEXT(b.x)`."""
    if len(s.tokens) < 3 or s.tokens[-3].type != "NEXT" or s.found.text != ".":
        return None
    variable, attribute = s.tokens[-1], s.after().text
    return s.error(
        "NEXT takes a variable; the attribute follows the parenthesis.",
        f"write NEXT({variable}).{attribute}.",
    )


def unfinished_case(s: Situation) -> QuerySyntaxError | None:
    """CASE without END, WHEN without THEN."""
    for word in ("_THEN", "_END", "_WHEN"):
        if word in s.accepts and (s.found_clause or s.found.upper in {"ELSE", "END", "WHEN", "THEN"}):
            missing = word.strip("_")
            return s.error(
                f"{missing} is missing before {s.found.describe()}.",
                "write CASE WHEN condition THEN value ELSE value END.",
            )
    return None


def cast(s: Situation) -> QuerySyntaxError | None:
    """`CAST(a.x AS int)`."""
    if s.found.upper != "AS" or not s.unclosed or "RPAR" not in s.accepts:
        return None
    head = s.before_bracket(s.unclosed[-1])
    if head is None or head.upper not in {"CAST", "TRY_CAST"}:
        return None
    return s.error("There are no casts in a pattern.", "prepare the column in the DataFrame.", at=head)


def literal_without_quotes(s: Situation) -> QuerySyntaxError | None:
    """`TIMESTAMP 2026-01-01`."""
    behind = s.before()
    if behind is None or s.found.kind != "number" or behind.upper not in {"TIMESTAMP", "DATE"}:
        return None
    example = "DATE '2026-01-31'" if behind.upper == "DATE" else "TIMESTAMP '2026-01-31 08:30:00'"
    return s.error(f"A {behind.text.lower()} stands in quotes.", f"write {example}.")


def subquery(s: Situation) -> QuerySyntaxError | None:
    """`(SELECT …)`."""
    behind = s.before()
    if behind is None or behind.upper != "SELECT" or not s.expects_operator:
        return None
    return s.error(
        "There are no subqueries in a pattern.",
        "for events that must not occur, write NOT B b inside SEQ.",
        at=behind,
    )


def underscore_in_number(s: Situation) -> QuerySyntaxError | None:
    """`1_000`."""
    if not s.read("NUMBER") or not s.found.text.startswith("_") or s.last is None:
        return None
    plain = s.written(s.last, s.found).replace("_", "")
    return s.error("Numbers are written without `_`.", f"write {plain}.", at=s.place(s.last, s.found))


def separated_thousands(s: Situation) -> QuerySyntaxError | None:
    """`10,000`."""
    if not s.read("NUMBER") or s.found.text != "," or s.last is None or s.last.end_pos != s.found.start:
        return None
    if s.after().kind != "number" or s.after().start != s.found.end or len(s.after().text) != 3:
        return None
    return s.error(
        "Numbers are written without separators.",
        f"write {s.last}{s.after().text}.",
        at=s.place(s.last, s.after()),
    )


def braces(s: Situation) -> QuerySyntaxError | None:
    """`WHERE skip_till_any_match(a, b) { … }`, as in SASE."""
    if s.found.text != "{" or not (s.expects_operator or s.expects_value):
        return None
    return s.error(
        "Conditions do not stand in braces.",
        "write them after WHERE, joined by AND, and the policy in its own clause: SEMANTICS any.",
    )


def lambda_arrow(s: Situation) -> QuerySyntaxError | None:
    """`a -> a.x`."""
    if s.found.text != "->":
        return None
    return s.error("There is no `->`.", "write a.x for an attribute.")


def nothing_between_values(s: Situation) -> QuerySyntaxError | None:
    """`a.x > 5 b.y < 3`: two values side by side."""
    if not s.expects_operator or s.found.kind not in {"word", "number", "string", "quoted"}:
        return None
    if s.found.upper in RESERVED_IN_CONDITIONS:
        return None
    is_condition = "COMPARISON" not in s.accepts
    near = None
    if s.found.kind == "word" and len(s.found.text) > 1 and s.after().text != ".":
        near = nearest(s.found.text, ["AND", "OR", "LIKE", "BETWEEN", "IN", "IS"])
    if near:
        hint = f"did you mean {near}?"
    elif "COMMA" in s.accepts and (s.found.kind != "word" or not s.unclosed):
        return s.error(f"A comma is missing before {s.found.describe()}.", "separate the values by commas.")
    elif is_condition:
        hint = "join conditions with AND or OR."
    else:
        hint = "compare with =, <, >, …; join conditions with AND or OR."
    missing = "AND or OR" if is_condition else "An operator"
    return s.error(f"{missing} is missing before {s.found.describe()}.", hint)


HABITS = (
    lambda_arrow,
    braces,
    separated_thousands,
    underscore_in_number,
    subquery,
    half_number,
    next_of_attribute,
    index,
    is_something,
    in_something,
    between_something,
    like_something,
    attribute_missing,
    unfinished_case,
    operand_missing,
    reserved_word,
    chained_comparison,
    cast,
    literal_without_quotes,
    nothing_between_values,
)
