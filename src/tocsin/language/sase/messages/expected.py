"""What could have stood at a place, in words; and the message when no habit explains the mistake."""

from __future__ import annotations

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.sase.messages.situation import Situation
from tocsin.language.sase.words import CLAUSES

VALUES = frozenset(
    {
        "NAME",
        "QUOTED",
        "NUMBER",
        "STRING",
        "TRUE",
        "FALSE",
        "NULL",
        "_TIMESTAMP",
        "_DATE",
        "_INTERVAL",
        "NEXT",
        "_CASE",
        "LSQB",
        "LPAR",
        "MINUS",
        "NOT",
    }
)
ARITHMETIC = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT"})
OPERATORS = ARITHMETIC | {"COMPARISON", "AND", "OR", "NOT", "_IS", "_IN", "_BETWEEN", "_LIKE"}
# What may continue a value that is complete without it: not worth a mention beside the operators.
CONTINUATIONS = frozenset({"DOT", "LSQB", "LPAR", "UNIT"})
FIRST_WORDS = frozenset("_" + word for word in CLAUSES)

SIGNS = {
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "SEMICOLON": "`;`",
    "QMARK": "`?`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "STAR": "`*`",
    "INT": "a whole number",
    "STRING": "a string such as 'abc'",
    "UNIT": "a unit of time",
    "ANY_MATCH": "any",
    "NEXT_MATCH": "next",
    "CONTIGUOUS": "contiguous",
    "PARTITION_CONTIGUOUS": "partition-contiguous",
    "ALL": "all",
    "FIRST": "first",
    "LAST": "last",
    "LONGEST": "longest",
    "COUNT": "count",
}

SELECTION_SPELLINGS = (
    "any",
    "next",
    "contiguous",
    "partition-contiguous",
    "skip-till-any-match",
    "skip-till-next-match",
    "strict-contiguity",
    "partition-contiguity",
)


def unexpected(s: Situation) -> QuerySyntaxError:
    """Expected this, but found that."""
    wanted = one_of(expected(s))
    behind = s.before()
    after = f" after `{behind.text}`" if behind and behind.kind in {"word", "sign", "number"} else ""
    hint = None
    near = nearest(s.found.text, keywords(s)) if s.found.kind == "word" else None
    if near:
        hint = f"did you mean {near}?"
    elif s.found.kind == "string" and s.accepts & {"WORD", "NAME"}:
        hint = f"a name is not a string; write `{s.found.text[1:-1]}`, in backquotes unless it is a plain word."
    return s.error(f"Expected {wanted}{after}, {s.but_found}.", hint)


def expected(s: Situation) -> list[str]:
    """Everything that could stand here, as phrases."""
    left, phrases = set(s.accepts), []
    if s.expects_value:
        phrases.append("a condition" if _wants_condition(s) else "a value")
        left -= VALUES
        left -= {"_DISTINCT", "STAR"}
    elif s.expects_element:
        phrases.append("an event type, SEQ(…), AND(…), OR(…) or NOT")
        left -= {"SEQ", "AND", "OR", "NOT", "WORD", "QUOTED", "LPAR"}
    elif "_INTERVAL" in left:
        phrases.append("a duration such as 15 MINUTES")
        left -= {"NUMBER", "_INTERVAL", "MINUS", "LPAR"}
    elif left & {"WORD", "NAME"}:
        phrases.append(_kind_of_name(s))
        left -= {"WORD", "NAME", "QUOTED"}
    if s.expects_operator:
        phrases.append("an operator")
        left -= OPERATORS | CONTINUATIONS
    clauses = left & FIRST_WORDS
    if clauses:
        # Nobody who ends an element here meant to go on with it.
        left -= {"LSQB", "LBRACE", "PLUS", "STAR", "QMARK", "WORD", "QUOTED"}
    ends = left & {"$END", "SEMICOLON"}
    left -= clauses | ends
    phrases += sorted(SIGNS.get(name, name.strip("_")) for name in left)
    if clauses:
        phrases.append("a clause such as WHERE or WITHIN")
    if ends:
        phrases.append("the end of the query")
    return phrases


def one_of(phrases: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(phrases[:-1]), phrases[-1]]) if len(phrases) > 1 else phrases[0]


def _wants_condition(s: Situation) -> bool:
    return s.last is None or s.last.type in {"_WHERE", "_HAVING", "AND", "OR", "NOT", "_WHEN"}


def _kind_of_name(s: Situation) -> str:
    match s.last.type if s.last else "":
        case "DOT":
            return "the name of an attribute"
        case "_AS":
            return "the name of a column"
        case "FIRST" | "LAST":
            return "the name of a variable"
        case "_BY":
            return "the name of an attribute"
        case "LSQB":
            return "a letter, first or last" if "INT" in s.accepts else "the name of an attribute"
        case _:
            return "a name"


def keywords(s: Situation) -> list[str]:
    """The keywords that could stand here, as they are usually written."""
    words = []
    for name in s.accepts:
        word = SIGNS.get(name, name.strip("_"))
        if word.isalpha():
            words.append(word)
        if name.endswith(("_MATCH", "CONTIGUOUS")):
            words.extend(SELECTION_SPELLINGS)
    return words
