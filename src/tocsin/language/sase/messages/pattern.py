"""Habits in the pattern: how events, sequences and repetitions are written elsewhere."""

from __future__ import annotations

import re

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.sase.messages.characters import EXAMPLE
from tocsin.language.sase.messages.situation import Piece, Situation
from tocsin.language.sase.words import CLAUSES

OPERATORS = {
    "SEQUENCE": "SEQ",
    "FOLLOWED_BY": "SEQ",
    "THEN": "SEQ",
    "PERMUTE": "AND",
    "ALL": "AND",
    "ALL_OF": "AND",
    "CONJ": "AND",
    "ANY": "OR",
    "ANY_OF": "OR",
    "EITHER": "OR",
    "DISJ": "OR",
    "KLEENE": "a quantifier, as in B+ b",
    "ITER": "a quantifier, as in B{3} b",
    "NSEQ": "SEQ(A a, NOT B b, C c)",
}


# What follows the first word of a text of the other language.
ACEL_SIGNS = {";", ":", "+", "@", "⊕"}
ACEL_WORDS = {"AS", "FILTER", "OR", "AND"}


def no_pattern(s: Situation) -> QuerySyntaxError | None:
    """A text that begins with something else than PATTERN."""
    if s.tokens or s.start != "query":
        return None
    found = s.found.describe()
    near = nearest(s.found.text, ["PATTERN"]) if s.found.kind == "word" else None
    if near:
        hint = "did you mean PATTERN?"
    elif s.found.upper in {"SEQ", "AND", "OR", "NOT"}:
        hint = f"write PATTERN before {s.found.upper}."
    elif s.found.upper in CLAUSES:
        hint = "clauses follow the pattern: PATTERN SEQ(A a, B b) WHERE …"
    elif s.found.upper in {"AGG", "PROJECT"} or s.after().text in ACEL_SIGNS or s.after().upper in ACEL_WORDS:
        hint = 'to write ACEL, say language="acel"; a query of SASE+ looks like this: ' + EXAMPLE
    else:
        hint = f"a query looks like this: {EXAMPLE}"
    return s.error(f"A query begins with PATTERN, not with {found}.", hint)


def pattern_twice(s: Situation) -> QuerySyntaxError | None:
    """A second PATTERN in one text."""
    if s.found.upper != "PATTERN" or not s.expects_clause:
        return None
    return s.error(
        "PATTERN is written twice.",
        "one text holds one query; for alternatives write OR(…).",
        also=("first written", s.place(s.tokens[0])),
    )


def pattern_left_out(s: Situation) -> QuerySyntaxError | None:
    """`PATTERN WHERE a.x`, `SEQ(A a, WITHIN 5 …`: a clause where an event type is due.

    The grammar takes the word for an event type, as it should where one is really called so, and stumbles
    later.
    """
    if s.clause != "PATTERN" or s.found.text in {",", ")"}:
        return None
    for back, token in enumerate(reversed(s.tokens[-2:]), start=1):
        if token.type == "WORD" and token.upper() in CLAUSES and _is_type(s, len(s.tokens) - back):
            before = s.tokens[-back - 1]
            return s.error(
                f"The pattern is missing between `{before}` and `{token}`."
                if before.type == "_PATTERN"
                else f"An element is missing between `{before}` and `{token}`.",
                f"write an event type and a variable, such as `Login a`; an event type that is really called "
                f"{token} stands in backquotes.",
                at=token,
            )
    return None


def word_between_type_and_name(s: Situation) -> QuerySyntaxError | None:
    """`A AS a`, `A AND B`, `A a AND B b`: infix words of SQL, Esper and FlinkCEP."""
    if s.clause != "PATTERN":
        return None
    if s.tokens[-1].type == "WORD" and s.tokens[-1].upper() in {"AS", "AND", "OR", "THEN"}:
        joint: Piece | None = s.before()
        left, right = s.before(2), s.found
    elif s.found.upper in {"AS", "AND", "OR", "THEN"}:
        joint, left, right = s.found, s.before(), s.after()
    else:
        return None
    assert joint is not None
    assert left is not None
    if joint.upper == "AS":
        name = right.text if right.kind in {"word", "quoted"} else "a"
        types = [token for number, token in enumerate(s.tokens) if _is_type(s, number)]
        hint = f"write `{s.written(types[-1], left)} {name}`." if types else "write `A a`."
        if s.found is joint and s.tokens[-1].type == "WORD" and not _is_type(s, len(s.tokens) - 1):
            return s.error(f"The element already has the name `{s.tokens[-1]}`.", "remove AS.", at=joint)
        if s.found is joint and s.tokens[-1].type == "RPAR":
            return s.error("A group has no name.", "name the events inside it.", at=joint)
        return s.error("The name of an event follows its type directly, without AS.", hint, at=joint)
    operator = "SEQ" if joint.upper == "THEN" else joint.upper
    return s.error(
        f"{operator} stands before its elements, not between them.",
        f"write {operator}(A a, B b).",
        at=joint,
    )


def unknown_operator(s: Situation) -> QuerySyntaxError | None:
    """`SEQUENCE(A a, B b)`, `ANY(…)`: a bracket behind a word that is no operator."""
    if s.clause != "PATTERN" or s.found.text not in {"(", "["}:
        return None
    word = s.before()
    if word is None or word.kind != "word":
        return None
    if word.upper in {"SEQ", "AND", "OR"}:
        return s.error(f"The elements of {word.upper} stand in parentheses.", f"write {word.upper}(A a, B b).")
    if not _is_type(s, len(s.tokens) - 1):
        return None
    if s.found.text == "[":
        times = _times(s, s.found.end)
        if times is not None:
            return s.error(NUMBER_IN_BRACES, f"write `{word.text}{times}`.")
        return s.error(
            "Conditions do not stand in the pattern.",
            f"write `{word.text} a` here and the condition in WHERE: a.x > 5.",
        )
    instead = OPERATORS.get(word.upper) or nearest(word.text, ["SEQ"])
    return s.error(
        f"There is no operator `{word.text}`.",
        (f"write {instead}; the " if instead else "the ") + "operators are SEQ(…), AND(…), OR(…) and NOT.",
        at=word,
    )


NUMBER_IN_BRACES = "The number of events follows the type, in braces."
# What may stand in square brackets for a number of events: `3]`, `2,3]`, `2..3]`, `2,]`.
_NUMBERS = re.compile(r"\s{0,9}(\d{1,9})\s{0,9}(?:(,|-|\.{2,3})\s{0,9}(\d{0,9})\s{0,9})?\]")


def _times(s: Situation, start: int) -> str | None:
    """The quantifier for numbers that stand in square brackets; None where something else does."""
    found = _NUMBERS.match(s.source.text, start)
    if found is None:
        return None
    least, joint, most = found.groups()
    return f"{{{least}}}" if joint is None else f"{{{least},{most}}}"


def condition_after_name(s: Situation) -> QuerySyntaxError | None:
    """`A a[x > 5]`, `A a[3]`."""
    if s.clause != "PATTERN" or s.accepts != {"RSQB"}:
        return None
    name, kind, times = s.before(2), s.before(3), _times(s, s.found.start)
    if times is not None and name is not None and kind is not None:
        return s.error(NUMBER_IN_BRACES, f"write `{kind.text}{times} {name.text}`.")
    return s.error(
        "Conditions do not stand in the pattern.",
        f"write the condition in WHERE: {name.text if name else 'a'}.x > 5.",
        at=s.before(),
    )


def bracket_for_sequence(s: Situation) -> QuerySyntaxError | None:
    """`PATTERN (A a, B b)`, `PATTERN [A a]`."""
    if not s.expects_element or s.found.text not in {"(", "[", "{"}:
        return None
    return s.error(f"Elements do not stand in bare `{s.found.text}`.", "write SEQ(A a, B b), AND(…) or OR(…).")


def no_bracket_after_operator(s: Situation) -> QuerySyntaxError | None:
    """`SEQ A a, B b`."""
    word = s.before()
    if s.clause != "PATTERN" or s.accepts != {"LPAR"} or word is None:
        return None
    return s.error(f"The elements of {word.upper} stand in parentheses.", f"write {word.upper}(A a, B b).")


def quantifier_after_name(s: Situation) -> QuerySyntaxError | None:
    """`B b+` instead of `B+ b`."""
    if s.clause != "PATTERN" or s.found.text not in {"+", "*", "?", "{"}:
        return None
    if not s.read("WORD") or _is_type(s, len(s.tokens) - 1):
        return None
    name, kind = s.before(), s.before(2)
    sign = s.found.text
    if sign == "{":
        closing = next((piece for piece in s.pieces if piece.text == "}" and piece.start > s.found.start), None)
        sign = s.written(s.found, closing) if closing else "{…}"
    hint = f"write `{kind.text}{sign} {name.text}`." if kind and name and kind.kind == "word" else None
    return s.error("The quantifier stands behind the type, before the variable.", hint)


def malformed_quantifier(s: Situation) -> QuerySyntaxError | None:
    """`T{2-3}`, `T{,3}`, `T{}`."""
    if s.clause != "PATTERN" or not s.unclosed or s.unclosed[-1].text != "{":
        return None
    behind = s.before()
    if behind is not None and behind.text == "{" and s.found.text == "," and s.after().kind == "number":
        return s.error("The least number is missing.", f"write {{0,{s.after().text}}}.")
    if behind is not None and behind.kind == "number" and s.after().kind == "number":
        return s.error(
            f"{s.found.describe()} cannot stand in a quantifier.",
            f"write {{{behind.text},{s.after().text}}}.",
        )
    return s.error(
        "A quantifier is {m}, {m,n} or {m,}, with whole numbers.",
        "{3} is exactly three, {2,5} two to five, {2,} two or more.",
    )


def name_that_needs_quotes(s: Situation) -> QuerySyntaxError | None:
    """`PM2.5 p`, `heart-rate h`, `1stEvent a`: names that are no plain words."""
    if s.clause != "PATTERN":
        return None
    if s.expects_element and s.found.kind == "number":
        last = s.after() if s.after().kind == "word" and s.after().start == s.found.end else s.found
        return s.error(
            "An event type does not begin with a digit.",
            f"put its name in backquotes: `{s.written(s.found, last)}`.",
            at=s.place(s.found, last),
        )
    behind, ahead = s.before(), s.after()
    if not s.read("WORD") or s.found.text not in {".", "-", ":", "/", "$", "@"} or behind is None:
        return None
    if behind.end == s.found.start and ahead.start == s.found.end and ahead.kind in {"word", "number"}:
        whole = behind.text + s.found.text + ahead.text
        return s.error(
            f"`{s.found.text}` cannot stand in a plain name.",
            f"put the name in backquotes: `{whole}`.",
            at=s.place(behind, ahead),
        )
    return None


def name_before_type(s: Situation) -> QuerySyntaxError | None:
    """`a : Login`."""
    if s.clause != "PATTERN" or s.found.text != ":" or not s.read("WORD"):
        return None
    name, kind = s.before(), s.after()
    hint = f"write `{kind.text} {name.text}`." if name and kind.kind == "word" else "write `A a`."
    return s.error("The type of an event comes first, then its name, without a colon.", hint)


def arrow(s: Situation) -> QuerySyntaxError | None:
    """`A a -> B b`, and `;` between the elements of a SEQ."""
    if s.clause != "PATTERN":
        return None
    if s.found.text in {"->", ".."}:
        return s.error("A sequence is not written with arrows.", "write SEQ(A a, B b).")
    if s.found.text == ";" and s.unclosed:
        return s.error("Elements are separated by commas.", "write `,` instead of `;`.")
    return None


def wildcard(s: Situation) -> QuerySyntaxError | None:
    """`SEQ(A a, * x)`."""
    if not s.expects_element or s.found.text not in {"*", ".", "?"}:
        return None
    return s.error("There is no wildcard for event types.", "name the types: OR(A x, B x) takes an event of either.")


def missing_comma(s: Situation) -> QuerySyntaxError | None:
    """`SEQ(A a B b)`, and a second element without SEQ."""
    if s.clause != "PATTERN" or s.found.kind not in {"word", "quoted"} or s.found.upper in CLAUSES:
        return None
    if "COMMA" in s.accepts:
        before = s.before()
        if before and before.text == ")" and s.after().text in {",", ")"}:
            return s.error("A group has no name.", "name the events inside it, or add the missing comma.")
        return s.error(f"A comma is missing before {s.found.describe()}.", "separate the elements by commas: A a, B b.")
    return None


def group_under_not(s: Situation) -> QuerySyntaxError | None:
    """`NOT(B b, C c)`, `NOT(B b)+`."""
    if s.clause != "PATTERN":
        return None
    if s.found.text == "," and s.unclosed:
        head = s.before_bracket(s.unclosed[-1])
        if head and head.upper == "NOT":
            return s.error(
                "NOT takes one event.",
                "write one NOT for each: SEQ(A a, NOT B b, NOT C c, D d).",
                at=s.place(head, s.unclosed[-1]),
            )
    if s.found.text in {"+", "*", "?", "{"} and s.read("RPAR"):
        return s.error("An absence is not repeated.", "remove the quantifier.")
    return None


def clause_word_for_name(s: Situation) -> QuerySyntaxError | None:
    """`SEQ(A after, B b)`: a variable called like a clause."""
    if s.clause != "PATTERN" or s.found.upper not in CLAUSES or s.found_clause or "WORD" not in s.accepts:
        return None
    return s.error(f"`{s.found.text}` is a keyword here.", f"as a name it stands in backquotes: `{s.found.text}`.")


def second_element(s: Situation) -> QuerySyntaxError | None:
    """`PATTERN A a, B b`, `PATTERN A a B b`."""
    if s.clause != "PATTERN" or not s.expects_clause or s.found.upper in CLAUSES:
        return None
    goes_on = s.after().kind in {"word", "quoted"} or s.after().text in {",", "+", "*", "?", "{", "("}
    if s.found.text != "," and not (s.found.kind in {"word", "quoted"} and goes_on):
        return None
    return s.error(
        f"The pattern is complete before {s.found.describe()}.",
        "several elements stand in an operator: SEQ(A a, B b), AND(A a, B b) or OR(A a, B b).",
    )


def _is_type(s: Situation, number: int) -> bool:
    """Whether the token of this number was read as an event type, not as a variable."""
    token = s.tokens[number]
    if token.type not in {"WORD", "QUOTED"} or number == 0:
        return False
    return s.tokens[number - 1].type in {"_PATTERN", "COMMA", "LPAR", "NOT"}


HABITS = (
    no_pattern,
    pattern_twice,
    pattern_left_out,
    word_between_type_and_name,
    unknown_operator,
    condition_after_name,
    bracket_for_sequence,
    no_bracket_after_operator,
    malformed_quantifier,
    quantifier_after_name,
    name_that_needs_quotes,
    name_before_type,
    arrow,
    wildcard,
    group_under_not,
    clause_word_for_name,
    missing_comma,
)
