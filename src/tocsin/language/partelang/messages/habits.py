"""What people write in rules, and what they should write instead."""

from __future__ import annotations

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.partelang.messages.situation import CLAUSES, DECLARATIONS, EXAMPLE, Situation
from tocsin.source import Place

UNITS = ("ms", "seconds", "minutes", "hours", "days")
CLOSING = {"(": ")", "[": "]", "{": "}"}


def nothing_written(s: Situation) -> QuerySyntaxError | None:
    """An empty text, or comments only."""
    if len(s.pieces) > 1:
        return None
    return s.error("There is no rule.", f"a rule looks like this: {EXAMPLE}")


def keyword_in_capitals(s: Situation) -> QuerySyntaxError | None:
    """`RULE`, `WHERE`."""
    word = s.found.text.lower()
    if s.found.kind != "word" or s.found.text == word or f"_{word.upper()}" not in s.accepts:
        return None
    return s.error(f"Keywords of rules are in lower case, {s.but_found}.", f"write `{word}`.")


def sase_text(s: Situation) -> QuerySyntaxError | None:
    """`PATTERN SEQ(…)`."""
    if s.tokens or s.found.upper not in {"PATTERN", "SELECT"} or s.found.text == "pattern":
        return None
    return s.error(
        "This is not a program of rules.", "a query in SASE+ is compiled by `tocsin.pattern`; " + f"a rule: {EXAMPLE}"
    )


def unknown_declaration(s: Situation) -> QuerySyntaxError | None:
    """`rul R where …`, and anything else at the top."""
    if not s.expects_declaration or s.unclosed or s.found.kind != "word" or s.clause in {"when", "then", "select"}:
        return None
    if s.clause == "where" and s.tokens and s.last_type != "RBRACE" and s.found.text in CLAUSES:
        return None
    words = DECLARATIONS if s.clause not in CLAUSES else (*CLAUSES, *DECLARATIONS)
    near = nearest(s.found.text, words)
    if s.clause in CLAUSES and near is None:
        return None
    return s.error(
        f"{s.found.describe()} begins no declaration.",
        f"did you mean `{near}`?" if near else "a program has `template`, `pattern`, `rule` and `use`.",
    )


def name_missing(s: Situation) -> QuerySyntaxError | None:
    """`rule where`, `template {`, `emit at`."""
    what = {
        "_RULE": ("A rule has a name", "rule Fraud where …"),
        "_TEMPLATE": ("A template has a name", "template Transfer { amount : Amount }"),
        "_PATTERN": ("A named pattern has a name", "pattern Large : Transfer { amount >= 100 }"),
        "_EMIT": ("`emit` names a template", "emit Alert at a.timestamp with { account = a.account }"),
    }.get(s.last_type)
    if what is None:
        return None
    return s.error(f"{what[0]}, {s.but_found}.", f"write `{what[1]}`.")


def where_missing(s: Situation) -> QuerySyntaxError | None:
    """`rule R a : A`."""
    if s.accepts != {"_WHERE"}:
        return None
    return s.error(f"Expected `where` after the name of the rule, {s.but_found}.", f"write {EXAMPLE}.")


def no_pattern(s: Situation) -> QuerySyntaxError | None:
    """`rule R where when …`."""
    if s.last_type != "_WHERE" or not s.found_clause:
        return None
    return s.error("The rule has no pattern.", "write at least one: `where a : A { x > 5 }`.")


def colon_missing(s: Situation) -> QuerySyntaxError | None:
    """`a A { … }`, `amount Integer`."""
    if s.accepts != {"COLON"} and not (s.clause == "pattern" and "COLON" in s.accepts and s.found.kind == "word"):
        return None
    assert s.last is not None
    name = s.last
    if s.clause == "template" and name in DECLARATIONS and s.unclosed:
        opened = Place(s.source, s.unclosed[-1].start, s.unclosed[-1].end)
        return s.error(f"`{{` is not closed before `{name}`.", "write `}` here.", at=name, also=("opened", opened))
    if s.clause == "template":
        kind = s.found.text if s.found.kind == "word" else "Integer"
        return s.error(f"Expected `:` and a type after `{name}`, {s.but_found}.", f"write `{name} : {kind}`.")
    if s.clause == "where" and s.found.text == "in":
        return s.error(
            f"Expected `:` and a template after `{name}`, {s.but_found}.",
            "distances stand in `when`, after the patterns.",
        )
    kind = s.found.text if s.found.kind == "word" else "A"
    if s.found.text == ".":
        return s.error(
            f"Expected `:` and a template after `{name}`, {s.but_found}.",
            "conditions stand in braces, behind the pattern of the last variable that they speak of.",
        )
    return s.error(f"Expected `:` and a template after `{name}`, {s.but_found}.", f"write `{name} : {kind}`.")


def keyword_as_name(s: Situation) -> QuerySyntaxError | None:
    """`when : A`."""
    words = (*CLAUSES, *DECLARATIONS, "emit", "at", "with", "no", "in")
    if s.found.text not in words or s.after().text != ":" or "IDENT" not in s.accepts:
        return None
    return s.error(
        f"`{s.found.text}` is a keyword, and cannot be a name as it is.", f"write ``{s.found.text}`` in backquotes."
    )


def hyphen(s: Situation) -> QuerySyntaxError | None:
    """`rule fraud-1 where`."""
    if s.found.text != "-" or s.last_type != "IDENT" or s.last is None or s.last.end_pos != s.found.start:
        return None
    whole = f"{s.last}-{s.after().text}"
    return s.error(
        "A name has no hyphen.", f"write `{whole.replace('-', '_')}`, or put the name in backquotes.", at=s.last
    )


def use_of_nothing(s: Situation) -> QuerySyntaxError | None:
    """`use`, `use 'types.parte'`."""
    if s.found.text != "use" or not s.expects_declaration:
        return None
    return s.error("`use` names a module.", "write `use bank`, for the file `bank.parte`.")


def type_name(s: Situation) -> QuerySyntaxError | None:
    """`tags : [String]`, `x : `, `a : { … }`."""
    if s.clause == "template" and s.unclosed and s.unclosed[-1].text == "[":
        kind = next((token for token in reversed(s.tokens) if token.type == "WORD"), "String")
        return s.error(f"An array has a type and a length, {s.but_found}.", f"write `[{kind}; 3]`.")
    if s.clause == "template" and s.last_type == "WORD" and s.found.text in {"<", "[", "("} and s.last is not None:
        if s.found.text == "(" or s.last.upper() not in {"ARRAY", "LIST", "STRING", "INTEGER"}:
            return s.error(f"A type is a name, or an array, {s.but_found}.", "write `Amount`, or `[Amount; 3]`.")
        kind = s.after().text if s.found.text == "<" else s.last
        return s.error(f"An array is written in brackets, {s.but_found}.", f"write `[{kind}; 3]`.")
    if s.last_type == "COLON" and s.clause == "template":
        return s.error(f"Expected a type, {s.but_found}.", "write `amount : Amount`, or `tags : [String; 3]`.")
    if s.last_type == "COLON":
        return s.error(f"Expected the name of a template, {s.but_found}.", "write `a : A { x > 5 }`.")
    return None


def negation(s: Situation) -> QuerySyntaxError | None:
    """`not b : B`, `! b : B`."""
    if s.read("IDENT") and str(s.last).lower() == "not" and s.accepts <= {"COLON", "_IN"} and s.last is not None:
        return s.error("Absence is written `no`.", f"write `no {s.found.text}`.", at=s.last)
    if not (s.expects_pattern or s.expects_constraint) or s.found.text not in {"!", "¬"}:
        return None
    rest = s.after().text if s.after().kind == "word" else "b"
    return s.error("Absence is written `no`.", f"write `no {rest}`.")


def condition_outside(s: Situation) -> QuerySyntaxError | None:
    """`a : A, a.x > 5`, `when a.x > 5`."""
    if s.clause == "when" and s.accepts == {"_IN"}:
        name = s.last or "b"
        if s.found.text in {".", ">", "<", "=", ">=", "<=", "!="}:
            return s.error(
                "`when` holds distances in time, no other conditions.",
                "write the condition in the braces of a pattern: `b : B { x > a.x }`.",
            )
        if s.found.upper in {"WITHIN", "AFTER", "BEFORE"}:
            return s.error(
                f"A distance is written with `in`, {s.but_found}.", f"write `{name} in a [0 seconds, 10 seconds]`."
            )
        return s.error(f"Expected `in` after `{name}`, {s.but_found}.", f"write `{name} in a [0 seconds, 10 seconds]`.")
    return None


def anchor(s: Situation) -> QuerySyntaxError | None:
    """`b in [0 s, 5 s]`."""
    if s.clause != "when" or s.last_type != "_IN":
        return None
    return s.error(
        f"A distance is seen from another variable, {s.but_found}.", "write `b in a [0 seconds, 10 seconds]`."
    )


def bounds(s: Situation) -> QuerySyntaxError | None:
    """`[5, 10]`, `[0 days, inf]`, `[0 days]`, `[0 days; 5 days]`, `(0 s, 5 s)`."""
    if s.clause != "when":
        return None
    example = "write `[0 seconds, 10 seconds]`."
    if s.accepts == {"LSQB"}:
        opened = {"(": "both ends belong to a distance; "}.get(s.found.text, "")
        return s.error(f"Expected `[` and two lengths of time, {s.but_found}.", opened + example)
    if not s.unclosed or s.unclosed[-1].text != "[":
        return None
    closed = "a distance has two finite ends (S8); "
    if s.accepts == {"UNIT"}:
        if s.found.kind == "word":
            near = nearest(s.found.text, UNITS)
            return s.error(
                f"{s.found.describe()} is no unit of time.",
                (f"did you mean `{near}`? " if near else "") + "units: ms, seconds, minutes, hours, days.",
            )
        number = s.last or "5"
        return s.error(f"`{number}` has no unit.", f"write `{number} seconds`, or ms, minutes, hours, days.")
    if s.found.upper.startswith("INF") or s.found.text in {"∞", "*", "_"} or s.found.text == "]":
        return s.error(f"Expected a length of time, {s.but_found}.", closed + example)
    if s.accepts == {"COMMA"}:
        return s.error(f"Expected `,` and the other end of the distance, {s.but_found}.", closed + example)
    return s.error(f"Expected a length of time, {s.but_found}.", closed + example)


def semicolon(s: Situation) -> QuerySyntaxError | None:
    """`a : A;`."""
    if s.found.text != ";":
        return None
    return s.error("`;` ends nothing here.", "put a comma between patterns or conditions, or nothing at all.")


def conditions_joined(s: Situation) -> QuerySyntaxError | None:
    """`{ x > 5 y < 3 }`: a comma is missing."""
    in_braces = bool(s.unclosed) and s.unclosed[-1].text == "{"
    if not in_braces or not s.expects_operator or s.found.kind not in {"word", "quoted"} or s.found_clause:
        return None
    if s.clause == "then":
        return s.error(f"Expected `,` before {s.found.describe()}.", "put a comma between the values of an event.")
    return s.error(f"Expected `,` before {s.found.describe()}.", "put a comma between conditions.")


def assignment(s: Situation) -> QuerySyntaxError | None:
    """`with { amount : a.amount }`, `with { a.amount }`."""
    if s.accepts != {"EQUAL"}:
        return None
    variable, name = (s.last, s.after().text) if s.found.text == "." else ("a", s.last)
    return s.error(
        f"Expected `=` and a value after `{s.last}`, {s.but_found}.",
        f"write `{name} = {variable}.{name}`: the attribute of the emitted event, then its value.",
    )


def emission(s: Situation) -> QuerySyntaxError | None:
    """`emit A with { … }`, `emit A at a.timestamp { … }`."""
    if s.accepts == {"_AT"}:
        return s.error(
            f"An emitted event has a time, {s.but_found}.", f"write `emit {s.last} at a.timestamp with {{ … }}`."
        )
    if s.clause == "then" and "_WITH" in s.accepts:
        return s.error(f"Expected `with` and the values of the event, {s.but_found}.", "write `with { x = a.x }`.")
    if s.last_type == "_WITH":
        return s.error(f"The values of an event stand in braces, {s.but_found}.", "write `with { x = a.x }`.")
    if s.expects_reaction and s.clause == "then" and s.found.kind == "word" and s.found.text not in DECLARATIONS:
        near = nearest(s.found.text, ["emit"])
        return s.error(
            f"Expected `emit` in `then`, {s.but_found}.",
            f"did you mean `{near}`?" if near else "write `emit Alert at a.timestamp with { x = a.x }`.",
        )
    if s.clause == "then" and s.last_type == "NAME" and s.accepts == {"LPAR"}:
        near = nearest(str(s.last), ["emit"])
        return s.error(
            f"Expected `emit` in `then`, but found `{s.last}`.",
            f"did you mean `{near}`?" if near else "write `emit Alert at a.timestamp with { x = a.x }`.",
            at=s.last,
        )
    return None


def clause_out_of_order(s: Situation) -> QuerySyntaxError | None:
    """`then … when …`, `when` twice."""
    if s.found.text not in CLAUSES or s.unclosed or f"_{s.found.text.upper()}" in s.accepts or not s.tokens:
        return None
    if not (s.expects_declaration or s.clause in CLAUSES):
        return None
    return s.error(
        f"`{s.found.text}` cannot stand here.", "a rule has `where`, `when`, `select`, `then`, in this order."
    )


def unclosed(s: Situation) -> QuerySyntaxError | None:
    """A clause or the end inside brackets."""
    if not s.found_clause or not s.unclosed:
        return None
    opening = s.unclosed[-1]
    until = "before the text ends" if s.found.kind == "end" else f"before `{s.found.text}`"
    opened = Place(s.source, opening.start, opening.end)
    return s.error(
        f"`{opening.text}` is not closed {until}.", f"write `{CLOSING[opening.text]}` here.", also=("opened", opened)
    )


def quantifier(s: Situation) -> QuerySyntaxError | None:
    """`b : B*`, `b : B?`, `b : B[]`, `b : B{2,3}`."""
    if s.clause != "where":
        return None
    example = "write `B+`, `B[3]` or `B[2..5]`."
    if "LSQB" in s.accepts and s.found.text in {"*", "?"}:
        return s.error(f"`{s.found.text}` is no repetition here: a rule binds at least one event.", example)
    if (
        s.unclosed
        and s.unclosed[-1].text == "["
        and s.last_type in {"LSQB", "INT", "_UP_TO"}
        and "INT" in s.accepts | {"INT" if s.last_type == "INT" else ""}
    ):
        return s.error(f"A repetition has one number, or two with `..` between, {s.but_found}.", example)
    return None


HABITS = (
    nothing_written,
    sase_text,
    keyword_in_capitals,
    keyword_as_name,
    hyphen,
    use_of_nothing,
    name_missing,
    where_missing,
    no_pattern,
    unclosed,
    negation,
    semicolon,
    colon_missing,
    type_name,
    anchor,
    bounds,
    condition_outside,
    quantifier,
    clause_out_of_order,
    emission,
    assignment,
    conditions_joined,
    unknown_declaration,
)
