"""Habits of spelling: quotes, comments, signs of other languages; commas and brackets."""

from __future__ import annotations

from tocsin.errors import QuerySyntaxError
from tocsin.language.sase.messages.situation import OPENING, Situation
from tocsin.language.sase.words import CLAUSES, RESERVED_IN_CONDITIONS
from tocsin.source import Place

EXAMPLE = "PATTERN SEQ(Login a, Transfer b) WHERE a.user = b.user WITHIN 10 MINUTES"

# Signs other languages have, and what Tocsin writes instead.
FOREIGN = {
    "==": ("Equality is written with a single `=`.", "write `=`."),
    "===": ("Equality is written with a single `=`.", "write `=`."),
    "!==": ("Inequality is written `!=`.", "write `!=` or `<>`."),
    "<=>": ("There is no `<=>`.", "write `a.x = b.x OR (a.x IS NULL AND b.x IS NULL)`."),
    "&&": ("Conditions are joined by a word.", "write AND."),
    "&": ("Conditions are joined by a word.", "write AND."),
    "|": ("Conditions are joined by a word.", "write OR."),
    "!": ("Negation is written as a word.", "write NOT."),
    "=>": ("There is no `=>`.", "write `>=` for greater or equal."),
    "=<": ("There is no `=<`.", "write `<=` for less or equal."),
    ":=": ("There is no `:=`.", "compare with `=`; name a RETURN column with AS."),
    "::": ("There are no casts in a pattern.", "prepare the column in the DataFrame."),
    "^": ("There is no operator `^`.", "write POWER(x, 2)."),
    "~": ("There is no operator `~`.", "write LIKE with % and _, or NOT for negation."),
    "$": ("Names do not carry a `$`.", "leave it out, or put the whole name in backquotes."),
    "@": (
        "`@` means nothing here.",
        "a name with other signs than letters, digits and _ stands in backquotes.",
    ),
    "//": ("Comments do not begin with `//`.", "begin a comment with `--`, or put it in /* … */."),
    "#": ("Comments do not begin with `#`.", "begin a comment with `--`, or put it in /* … */."),
}


def nothing_written(s: Situation) -> QuerySyntaxError | None:
    """An empty text, or comments only."""
    if len(s.pieces) > 1:
        return None
    if s.start != "query":
        return s.error("The expression is empty.", "write a condition such as a.x > 5.")
    return s.error("The query is empty.", f"a query looks like this: {EXAMPLE}")


def unclosed_comment(s: Situation) -> QuerySyntaxError | None:
    """`/*` without `*/`."""
    if s.found.kind != "unclosed_comment":
        return None
    opening = Place(s.source, s.found.start, s.found.start + 2)
    return s.error("The comment is not closed.", "close it with `*/`.", at=opening)


def unclosed_string(s: Situation) -> QuerySyntaxError | None:
    """`'abc`: the quote has no partner, or takes one that was meant to open another string."""
    if s.found.kind == "unclosed_string":
        return s.error("The string is not closed.", "close it with `'`; a quote inside a string is doubled: 'it''s'.")
    behind = s.before()
    if behind and behind.kind == "string" and behind.end == s.found.start and s.found.kind in {"word", "number"}:
        return s.error(
            f"{s.found.describe()} follows directly on a string.",
            "is a quote missing or too many? A quote inside a string is doubled: 'it''s'.",
            at=s.place(behind, s.found),
        )
    return None


def unclosed_name(s: Situation) -> QuerySyntaxError | None:
    """A backquote without partner, or nothing between two."""
    if s.found.kind != "unclosed_backquote":
        return None
    if s.found.text.startswith("``"):
        both = Place(s.source, s.found.start, s.found.start + 2)
        return s.error("There is no name between the backquotes.", "write the name: `PM2.5`.", at=both)
    return s.error("The name is not closed.", "close it with a backquote, on the same line.")


def double_quotes(s: Situation) -> QuerySyntaxError | None:
    """`"abc"` for a string or a name."""
    if s.found.kind != "double_quoted" or (s.read("LSQB") and "INT" in s.accepts):
        return None  # b["x"] is a habit of its own
    content = s.found.text.strip('"')
    if s.expects_value or "STRING" in s.accepts:
        hint = f"write '{content}' for a string, `{content}` for a name."
    else:
        hint = f"write `{content}`, in backquotes, for a name."
    return s.error("Double quotes mean nothing here.", hint)


def curly_quotes(s: Situation) -> QuerySyntaxError | None:
    """Quotes that a word processor has bent."""
    if s.found.kind != "curly_quote":
        return None
    return s.error(f"{s.found.text} is a typographic quote.", "write strings in straight single quotes: 'abc'.")


def foreign_sign(s: Situation) -> QuerySyntaxError | None:
    """Operators of other languages."""
    if s.found.kind != "sign" or s.found.text not in FOREIGN:
        return None
    message, hint = FOREIGN[s.found.text]
    if s.clause == "PATTERN" and s.found.text in {"&&", "&", "|"}:
        operator = "OR" if s.found.text == "|" else "AND"
        message, hint = "Patterns are joined by an operator before them.", f"write {operator}(A a, B b)."
    elif s.found.text == "!" and s.expects_element:
        hint = f"write NOT {s.after().text if s.after().kind == 'word' else 'B b'}."
        if s.after().kind == "word" and s.after(2).kind == "word":
            hint = f"write NOT {s.after().text} {s.after(2).text}."
    return s.error(message, hint)


HABITS = (
    nothing_written,
    unclosed_comment,
    unclosed_string,
    unclosed_name,
    double_quotes,
    curly_quotes,
    foreign_sign,
)


# --- commas and brackets, when nothing else explains the mistake ----------------------------------


def comma_too_many(s: Situation) -> QuerySyntaxError | None:
    """`A a, , B b`, `A a,)`, `RETURN a.x, WITHIN …`: a comma with nothing behind it."""
    behind = s.before()
    if behind is None or not (s.expects_element or s.expects_value or s.accepts & {"NAME", "WORD"}):
        return None
    if behind.text == "," and (s.found_clause or s.found.text in {",", ")", "]", ";"}):
        comma = behind
    elif behind.text == "(" and s.found.text == ",":
        comma = s.found
    else:
        return None
    return s.error(
        f"Nothing stands between `{behind.text}` and {s.found.describe()}.",
        "remove the comma, or write what is missing.",
        at=comma,
    )


def nothing_in_brackets(s: Situation) -> QuerySyntaxError | None:
    """`SEQ()`, `()`."""
    behind = s.before()
    if behind is None or behind.text != "(" or s.found.text != ")":
        return None
    head = s.before_bracket(behind)
    if s.expects_element and head:
        return s.error(f"{head.upper}() has no elements.", f"write {head.upper}(A a, B b).", at=s.place(head, s.found))
    hint = "write at least one value: IN (1, 2)." if head and head.upper == "IN" else None
    return s.error("Nothing stands between the parentheses.", hint, at=s.place(behind, s.found))


def stray_closing_bracket(s: Situation) -> QuerySyntaxError | None:
    """A closing bracket that closes nothing, or another one."""
    if s.found.kind != "sign" or s.found.text not in OPENING.values():
        return None
    if not s.unclosed:
        return s.error(f"This `{s.found.text}` closes nothing.", f"remove the `{s.found.text}`.")
    opening = s.unclosed[-1]
    if OPENING[opening.text] != s.found.text:
        return s.error(
            f"`{s.found.text}` cannot close `{opening.text}`.",
            f"write `{OPENING[opening.text]}`.",
            also=("opened", s.place(opening)),
        )
    return None


def unclosed_bracket(s: Situation) -> QuerySyntaxError | None:
    """A clause or the end of the query inside parentheses."""
    if not s.found_clause or not s.unclosed:
        return None
    opening = s.unclosed[-1]
    closing = OPENING[opening.text]
    if {")": "RPAR", "]": "RSQB", "}": "RBRACE"}[closing] not in s.accepts:
        return None
    head = s.before_bracket(opening)
    # AND before a parenthesis is an operator of patterns, but joins conditions.
    if head and head.upper in RESERVED_IN_CONDITIONS and not (s.clause == "PATTERN" and head.upper in {"AND", "OR"}):
        head = None
    first = head or opening
    words = f"{head.text}{opening.text}" if head else opening.text
    until = "before the query ends" if s.found.kind == "end" else f"before {s.found.upper}"
    return s.error(
        f"`{words}` is not closed {until}.",
        f"write `{closing}` here.",
        also=("opened", s.place(first, opening)),
    )


def comma_between_conditions(s: Situation) -> QuerySyntaxError | None:
    """`WHERE a.x > 5, b.y < 3`."""
    if s.found.text != "," or s.clause not in {"WHERE", "HAVING"} or s.unclosed or not s.expects_operator:
        return None
    return s.error("Conditions are joined by AND, not by a comma.", "write AND instead of `,`.")


def text_after_the_end(s: Situation) -> QuerySyntaxError | None:
    """Anything behind the closing `;`."""
    if not s.read("SEMICOLON"):
        return None
    behind = s.before()
    hint = "remove the `;`, or what follows it: one text holds one query."
    if s.clause == "PATTERN" and s.found.upper not in CLAUSES:
        hint = "for a sequence, write SEQ(A a, B b); a `;` may only end the query."
    return s.error(f"The query ends at `;`, but {s.found.describe()} follows.", hint, at=behind)


BRACKETS = (
    comma_too_many,
    nothing_in_brackets,
    stray_closing_bracket,
    unclosed_bracket,
    comma_between_conditions,
    text_after_the_end,
)
