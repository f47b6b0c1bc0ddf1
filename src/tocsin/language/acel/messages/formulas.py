"""Habits in formulas: operators without operands, brackets, and how patterns are written elsewhere."""

from __future__ import annotations

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.acel.messages.situation import CLAUSES, EXAMPLE, Situation
from tocsin.source import Place

OPERATORS = {"SEMICOLON": ";", "COLON": ":", "OR": "OR", "AND": "AND"}
JOINING = {";", ":", "OR", "AND", "∨", "∧"}
QUANTIFIERS = {
    "*": "Every formula of ACEL binds an event: there is no `*`.",
    "?": "Every formula of ACEL binds an event: there is no `?`.",
    "{": "ACEL does not count repetitions.",
}
# Clauses of other languages.
INSTEAD = {
    "WINDOW": "write WITHIN 10 MINUTES.",
    "DURING": "write WITHIN 10 MINUTES.",
    "FOR": "write WITHIN 10 MINUTES.",
    "SELECT": "write RETURN behind the formula.",
    "EMIT": "write RETURN behind the formula.",
    "MEASURES": "write RETURN behind the formula.",
    "IF": "write FILTER x[price > 100].",
    "WHEN": "write FILTER x[price > 100].",
    "ON": "a pattern does not name its inputs; they are given to it.",
    "FROM": "a pattern does not name its inputs; they are given to it.",
    "ORDER": "a pattern orders its events, not its result.",
    "LIMIT": "take the rows you need from the result.",
}


def nothing_written(s: Situation) -> QuerySyntaxError | None:
    """An empty text, or comments only."""
    if len(s.pieces) > 1:
        return None
    return s.error("The query is empty.", f"a formula looks like this: {EXAMPLE}")


def sase_text(s: Situation) -> QuerySyntaxError | None:
    """`SEQ(A a, B b)`, `A a ; B b`, `WHERE`: the other language."""
    other = 'to write SASE+, say language="sase".'
    behind = s.before()
    if s.found.text == "(" and s.expects_suffix and behind and behind.upper in {"SEQ", "NSEQ", "ITER"}:
        return s.error(f"There is no {behind.upper} in ACEL.", f"a sequence is written A ; B; {other}", at=behind)
    if s.expects_element and s.found.upper in {"AND", "OR"} and s.after().text == "(":
        sign = s.found.upper
        return s.error(f"{sign} stands between formulas, not before them.", f"write A {sign} B; {other}")
    if s.found.upper == "WHERE" and (s.expects_suffix or s.expects_clause):
        return s.error("There is no WHERE in ACEL.", f"write FILTER x[price > 100] behind the formula; {other}")
    if s.found.upper in {"SEMANTICS", "AFTER", "OUTPUT", "WITH"} and (s.expects_suffix or s.expects_clause):
        return s.error(
            f"There is no clause {s.found.upper} in ACEL.",
            f"the clauses are WITHIN, PARTITION BY, RETURN, GROUP BY and HAVING; {other}",
        )
    return None


def operand_missing(s: Situation) -> QuerySyntaxError | None:
    """`A ;`, `A ; ; B`, `OR A`, `(A OR )`."""
    if not s.expects_element:
        return None
    ends = s.found_clause or s.found.text in {")", ","} or s.found.text.upper() in JOINING or s.found.upper == "FILTER"
    if s.last_type in OPERATORS and ends:
        sign = OPERATORS[s.last_type]
        return s.error(
            f"A formula is missing between `{sign}` and {s.found.describe()}.",
            f"write one there, or remove the `{sign}`.",
            at=s.last,
        )
    if s.found.text.upper() in JOINING or s.found.upper in {"FILTER", "AS"} or s.found.text in {"+", "@", "⊕"}:
        return s.error(
            f"A formula is missing before {s.found.describe()}.", "write what it belongs to, as in A ; B or A+."
        )
    if s.found_clause:
        where = "The formula is missing" if s.last is None else f"A formula is missing after `{s.last}`"
        return s.error(f"{where}.", f"a formula looks like this: {EXAMPLE}")
    if s.found.text == ")" and s.last_type == "LPAR":
        return s.error("Nothing stands between the parentheses.", "write a formula there: (A ; B)+.")
    return None


def square_brackets(s: Situation) -> QuerySyntaxError | None:
    """`[A ; B]+`."""
    if not s.expects_element or s.found.text not in {"[", "{"}:
        return None
    return s.error("Formulas are grouped by parentheses.", f"write `(` instead of `{s.found.text}`: (A ; B)+.")


def negation(s: Situation) -> QuerySyntaxError | None:
    """`A AND NOT B`, `NOT B`."""
    if not s.expects_element or not (s.found.upper == "NOT" or s.found.text in {"¬", "!"}):
        return None
    return s.error(
        "ACEL has no negation of formulas.",
        "NOT stands inside a predicate, x[NOT price > 100]; for events that must not occur write SASE+: "
        "SEQ(A a, NOT B b, C c).",
    )


def quantifier(s: Situation) -> QuerySyntaxError | None:
    """`A*`, `A?`, `A{2,3}`."""
    if not s.expects_suffix or s.found.text not in QUANTIFIERS:
        return None
    return s.error(
        QUANTIFIERS[s.found.text],
        "A+ is once or more, A@+ the same without other events between; for a choice write A OR B.",
    )


def lone_sign(s: Situation) -> QuerySyntaxError | None:
    """`A @ B`, `A , B`, `A -> B`, `A & B`, `A | B`, `A → B`."""
    if not s.expects_suffix or s.found.kind != "sign":
        return None
    match s.found.text:
        case "@":
            return s.error("`@` alone means nothing.", "A@+ repeats A without other events between.")
        case "," | "->" | "→":
            return s.error(
                f"Formulas are not joined by `{s.found.text}`.",
                "write A ; B for one after the other, A : B for direct neighbours.",
            )
        case "&" | "&&":
            return s.error("Formulas are joined by words.", "write AND; it keeps what both formulas find.")
        case "|" | "||":
            return s.error("Formulas are joined by words.", "write OR.")
        case "[" if (name := s.before()) is not None and name.kind in {"word", "quoted"}:
            return s.error("A predicate belongs to FILTER.", f"write {name.text} FILTER {name.text}[…].")
        case _:
            return None


def second_name(s: Situation) -> QuerySyntaxError | None:
    """`SELL s`: the variable of SASE+; `A B`: an operator left out."""
    behind = s.before()
    if not s.expects_suffix or s.found.kind not in {"word", "quoted", "string"} or behind is None:
        return None
    if s.found.upper in CLAUSES or s.last_type not in {"VARIABLE", "QUOTED"}:
        return None
    if s.tokens[-2:-1] and s.tokens[-2].type == "_AS":
        return s.error(
            f"An operator is missing before {s.found.describe()}.",
            "write ; between formulas that follow one another, : between neighbours, OR between choices.",
        )
    return s.error(
        f"{s.found.describe()} cannot follow the event type `{behind.text}`.",
        f"to name its events write {behind.text} AS {s.found.text}; between two formulas write ; or : or OR.",
    )


def unknown_clause(s: Situation) -> QuerySyntaxError | None:
    """`WINDOW 5 MINUTES`, `WITHN 5 MINUTES`; a `;` behind a clause."""
    if not s.expects_clause or s.unclosed:
        return None
    if s.found.text == ";" and s.clause != "PATTERN":
        return s.error("A query does not end with `;`.", "remove the `;`.")
    if s.found.upper in INSTEAD:
        return s.error(f"There is no clause `{s.found.text}`.", INSTEAD[s.found.upper])
    words = ("FILTER", *CLAUSES) if s.clause == "PATTERN" else CLAUSES
    near = nearest(s.found.text, words) if s.found.kind == "word" and len(s.found.text) > 3 else None
    if near and near != s.found.upper:
        return s.error(f"There is no clause `{s.found.text}`.", f"did you mean {near}?")
    return None


def name_missing(s: Situation) -> QuerySyntaxError | None:
    """`A AS`, `A AS 'x'`, `A AS filter`."""
    if s.last_type != "_AS" or s.clause != "PATTERN":
        return None
    if s.found.kind in {"string", "double_quoted"}:
        return s.error(
            "A name is not text.", f"write AS {s.found.text[1:-1]}, in backquotes unless it is a plain word."
        )
    if s.found.kind == "word" and not s.found_clause:
        return s.error(f"`{s.found.text}` is a keyword.", f"as a name it stands in backquotes: AS `{s.found.text}`.")
    return s.error(f"Expected a name after AS, {s.but_found}.", "write A AS x.")


def keyword_as_type(s: Situation) -> QuerySyntaxError | None:
    """`A ; GROUP`: a reserved word where an event type is due."""
    if not s.expects_element or s.found.upper not in CLAUSES:
        return None
    return s.error(f"`{s.found.text}` is a keyword.", f"as an event type it stands in backquotes: `{s.found.text}`.")


def project(s: Situation) -> QuerySyntaxError | None:
    """`PROJECT x (p)`, `PROJECT(x)(p)`, `PROJECT[x.a](p)`, `PROJECT[x]`."""
    example = "write PROJECT[x, y](…) to keep variables, PROJECT[x(a, b)](…) to keep attributes of one."
    if s.last_type == "_PROJECT":
        return s.error(f"The variables of PROJECT stand in square brackets, {s.but_found}.", example)
    if _opened_by(s, "[", "PROJECT"):
        if s.last_type == "LSQB" and s.found.text == "]":
            return s.error("PROJECT keeps nothing.", example, at=s.place(s.before() or s.found, s.found))
        if s.found.text == "." and s.last is not None:
            attribute = s.after().text if s.after().kind == "word" else "a"
            return s.error("Attributes of a variable stand in parentheses.", f"write {s.last}({attribute}).")
        return s.error(f"Expected a variable, `,` or `]` in PROJECT[…], {s.but_found}.", example)
    if len(s.unclosed) > 1 and s.accepts == {"RPAR", "COMMA"} and s.unclosed[-2].text == "[":
        return s.error(f"Expected `,` or `)` behind an attribute of PROJECT[…], {s.but_found}.", example)
    if s.last_type == "RSQB" and s.accepts == {"LPAR"} and _closed_by(s, "PROJECT"):
        return s.error(f"The formula of PROJECT stands in parentheses, {s.but_found}.", example)
    return None


def aggregation(s: Situation) -> QuerySyntaxError | None:
    """AGG without variable, brackets, `<-`, aggregate, argument or formula."""
    example = "write AGG y[total <- sum(x.price), n <- count(x)](…)."
    if s.last_type == "_AGG":
        return s.error(f"Expected a variable after AGG, {s.but_found}.", f"name the new events: {example[6:]}")
    if len(s.tokens) > 1 and s.tokens[-2].type == "_AGG":
        return s.error(f"The values of AGG stand in square brackets, {s.but_found}.", example)
    if s.last_type == "RSQB" and s.accepts == {"LPAR"}:
        return s.error(f"The formula of AGG stands in parentheses, {s.but_found}.", example)
    if "_ARROW" in s.accepts and s.last is not None:
        if s.found.text in {"=", ":=", ":", "->", "<", "→"}:
            return s.error(
                f"A value of AGG is given by `<-`, not by `{s.found.text}`.", f"write {s.last} <- sum(x.price)."
            )
        if s.found.text == "(":
            call = f"{s.last}(x.price)"
            return s.error("A value of AGG needs a name.", f"write total <- {call}.", at=s.place(s.last, s.found))
        return s.error(f"Expected `<-` after `{s.last}`, {s.but_found}.", example)
    if s.last_type == "_ARROW" or (s.accepts == {"LPAR"} and s.tokens[-2:-1] and s.tokens[-2].type == "_ARROW"):
        found = s.found if s.last_type == "_ARROW" else s.last
        return s.error("A value of AGG is an aggregate of a variable.", "write sum(x.price) or count(x).", at=found)
    if _inside_call(s):
        return _argument(s)
    if s.last_type in {"LSQB", "COMMA"} and s.accepts <= {"WORD", "QUOTED"}:
        return s.error(f"Expected the name of a value in AGG, {s.but_found}.", example)
    return None


def _argument(s: Situation) -> QuerySyntaxError:
    """What is wrong between the parentheses of an aggregate."""
    function = _function_of(s)
    if s.last_type == "LPAR" and s.found.text == ")":
        return s.error(
            f"`{function}` has nothing to aggregate.", f"name a variable and an attribute: {function}(x.price)."
        )
    if s.last_type == "LPAR" and s.found.text == "*":
        return s.error("AGG aggregates the events of a variable.", "write count(x); RETURN COUNT(*) counts matches.")
    if s.found.text == "(" and s.last is not None:
        attribute = s.after().text if s.after().kind == "word" else "price"
        return s.error("An attribute follows its variable after a dot.", f"write {function}({s.last}.{attribute}).")
    if s.found.kind == "sign" and s.found.text in {"+", "-", "*", "/", ","}:
        return s.error("An aggregate takes one attribute.", "compute others as columns of the input first.")
    return s.error(
        f"Expected an attribute of a variable in `{function}(…)`, {s.but_found}.", f"write {function}(x.price)."
    )


def _inside_call(s: Situation) -> bool:
    """Whether the innermost open bracket is that of an aggregate of AGG."""
    return any(token.type == "_ARROW" for token in s.tokens[-6:]) and bool(s.unclosed) and s.unclosed[-1].text == "("


def _function_of(s: Situation) -> str:
    head = s.before_bracket(s.unclosed[-1])
    return head.text if head is not None else "sum"


def _opened_by(s: Situation, bracket: str, word: str) -> bool:
    """Whether the innermost open bracket is of this kind and stands behind this word."""
    if not s.unclosed or s.unclosed[-1].text != bracket:
        return False
    head = s.before_bracket(s.unclosed[-1])
    return head is not None and head.upper == word


def _closed_by(s: Situation, word: str) -> bool:
    """Whether the brackets that were just closed stand behind this word."""
    depth = 0
    for place in range(len(s.tokens) - 1, -1, -1):
        depth += {"RSQB": 1, "LSQB": -1}.get(s.tokens[place].type, 0)
        if depth == 0:
            return place > 0 and s.tokens[place - 1].type == f"_{word}"
    return False


def next_of(s: Situation) -> QuerySyntaxError | None:
    """`NEXT(A ; B)`, `NEXT()`."""
    kinds = [token.type for token in s.tokens[-3:]]
    if "NEXT" not in kinds or s.clause != "PATTERN":
        return None
    return s.error(f"NEXT takes one event type, {s.but_found}.", "write NEXT(A): the first A from here on.")


def filter_goes_on(s: Situation) -> QuerySyntaxError | None:
    """`A FILTER A[x > 1] ; B`, `A FILTER A[x > 1] OR B`: FILTER binds looser than all operators."""
    behind_atom = s.ends_atom and s.last_type == "RSQB"
    if behind_atom and (s.found.text in {";", ":", "+", "@", "⊕"} or s.found.upper == "AS"):
        return s.error(
            f"{s.found.describe()} cannot follow a FILTER, which takes all that stands before it.",
            "put the formula with its FILTER in parentheses: (A FILTER A[x > 1]) ; B.",
        )
    return None


def filter_after_clause(s: Situation) -> QuerySyntaxError | None:
    """`A WITHIN 5 MINUTES FILTER A[x > 1]`."""
    if s.found.upper != "FILTER" or s.clause == "PATTERN":
        return None
    return s.error(f"FILTER belongs to the formula, before {s.clause}.", "write A FILTER A[x > 1] WITHIN 5 MINUTES.")


def unclosed(s: Situation) -> QuerySyntaxError | None:
    """`(A ; B`: a clause or the end inside parentheses."""
    if not s.found_clause or not s.unclosed:
        return None
    opening = s.unclosed[-1]
    closing = {"(": ")", "[": "]", "{": "}"}[opening.text]
    if {")": "RPAR", "]": "RSQB", "}": "RBRACE"}[closing] not in s.accepts:
        return None
    until = "before the query ends" if s.found.kind == "end" else f"before {s.found.upper}"
    opened = Place(s.source, opening.start, opening.end)
    return s.error(f"`{opening.text}` is not closed {until}.", f"write `{closing}` here.", also=("opened", opened))


HABITS = (
    nothing_written,
    sase_text,
    negation,
    square_brackets,
    name_missing,
    project,
    aggregation,
    next_of,
    operand_missing,
    keyword_as_type,
    quantifier,
    filter_after_clause,
    filter_goes_on,
    lone_sign,
    unknown_clause,
    second_name,
    unclosed,
)
