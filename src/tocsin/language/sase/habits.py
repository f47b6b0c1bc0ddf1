"""Habits of people who come to SASE+ from SQL, FlinkCEP, Esper or Python; `messages.Habit` explains the columns."""

from __future__ import annotations

import re

from tocsin.errors import nearest
from tocsin.language import habits as shared
from tocsin.language.messages import Fields, Habit, Piece
from tocsin.language.sase.words import CLAUSES, RESERVED_IN_CONDITIONS, SELECTIONS, Situation

EXAMPLE = "PATTERN SEQ(Login a, Transfer b) WHERE a.user = b.user WITHIN 10 MINUTES"


# --- the pattern --------------------------------------------------------------------------------------------------

# Operators of other languages.
_OPERATORS_INSTEAD = {
    "SEQUENCE": "SEQ", "FOLLOWED_BY": "SEQ", "THEN": "SEQ",
    "PERMUTE": "AND", "ALL": "AND", "ALL_OF": "AND", "CONJ": "AND",
    "ANY": "OR", "ANY_OF": "OR", "EITHER": "OR", "DISJ": "OR",
    "KLEENE": "a quantifier, as in B+ b", "ITER": "a quantifier, as in B{3} b", "NSEQ": "SEQ(A a, NOT B b, C c)",
}  # fmt: skip
_INFIX = {"AS", "AND", "OR", "THEN"}
# What may stand in square brackets for a number of events: `3]`, `2,3]`, `2..3]`, `2,]`.
_NUMBERS = re.compile(r"\s{0,9}(\d{1,9})\s{0,9}(?:(,|-|\.{2,3})\s{0,9}(\d{0,9})\s{0,9})?\]")


def _empty(s: Situation) -> Fields | bool:
    instead = f"a query looks like this: {EXAMPLE}" if s.start == "query" else "write a condition such as a.x > 5."
    return not s.tokens and {"instead": instead}


def _clause_for_type(s: Situation) -> Fields | bool:
    """A clause where an event type is due: the grammar takes its word for a type, and stumbles later."""
    for back in (1, 2):
        number = len(s.tokens) - back
        if s.was_type(number) and s.tokens[number].type == "WORD" and s.tokens[number].upper() in CLAUSES:
            left = s.tokens[number - 1]
            what = "The pattern" if left.type == "_PATTERN" else "An element"
            return {"what": what, "left": left, "right": s.tokens[number]}
    return False


def _infix(s: Situation, words: set[str]) -> Fields | bool:
    """A word between elements, or between an event type and its name; it may have been read as a name."""
    is_read = s.last_type == "WORD" and s.before().upper in _INFIX
    joint, left, right = (s.before(), s.before(2), s.found) if is_read else (s.found, s.before(), s.after())
    types = [token for number, token in enumerate(s.tokens) if s.was_type(number)]
    name = right.text if right.kind in {"word", "quoted"} else "a"
    element = f"{s.written(types[-1], left)} {name}" if types else "A a"
    operator = "SEQ" if joint.upper == "THEN" else joint.upper
    return joint.upper in words and {"joint": joint, "element": element, "operator": operator}


def _times(s: Situation, start: int) -> Fields | bool:
    """The quantifier for numbers that stand in square brackets."""
    found = _NUMBERS.match(s.source.text, start)
    return found is not None and {"times": f"{{{found[1]},{found[3]}}}" if found[2] else f"{{{found[1]}}}"}


def _unknown_operator(s: Situation) -> Fields | bool:
    instead = _OPERATORS_INSTEAD.get(s.before().upper) or nearest(s.before().text, ["SEQ"])
    return s.is_type and {"instead": f"write {instead}; the" if instead else "the"}


def _quantifier(s: Situation) -> Fields | bool:
    """The quantifier behind a variable, and the element as it should be written."""
    sign = s.found.text
    if sign == "{":
        closing = next((piece for piece in s.pieces if piece.text == "}" and piece.start > s.found.start), None)
        sign = s.written(s.found, closing) if closing else "{…}"
    kind, name = s.before(2), s.before()
    return not s.is_type and {"instead": f"write `{kind}{sign} {name}`." if kind.kind == "word" else ""}


EMPTY = (
    Habit("", "-- only a comment", clause="query expression", found="<end>", when=_empty,
          message="The {clause} is empty.", hint="{instead}"),
)  # fmt: skip

QUOTES = (
    Habit('PATTERN A a WHERE a.x = "abc"', found="<double_quoted>", expects="value|STRING",
          when=lambda s: not (s.read("LSQB") and "INT" in s.accepts),
          message="Double quotes mean nothing here.",
          hint="write '{found.content}' for a string, `{found.content}` for a name."),
    Habit('PATTERN SEQ("A" a, B b)', found="<double_quoted>",
          when=lambda s: not (s.read("LSQB") and "INT" in s.accepts),
          message="Double quotes mean nothing here.", hint="write `{found.content}`, in backquotes, for a name."),
)  # fmt: skip

PATTERN = (
    Habit("PATERN SEQ(A a, B b)", clause="query", found="<word>", near="PATTERN",
          message="A query begins with PATTERN, not with {found.described}.", hint="did you mean PATTERN?"),
    Habit("SEQ(A a, B b) WHERE a.x = b.x", clause="query", found="SEQ AND OR NOT",
          message="A query begins with PATTERN, not with {found.described}.",
          hint="write PATTERN before {found.upper}."),
    Habit("WHERE a.x > 5 PATTERN SEQ(A a, B b)", clause="query", found=shared.CLAUSE,
          message="A query begins with PATTERN, not with {found.described}.",
          hint="clauses follow the pattern: PATTERN SEQ(A a, B b) WHERE …"),
    Habit("SELL ; BUY", "SELL AS s FILTER s[x > 1]", "AGG y[n <- count(A)](A+)", clause="query",
          when=lambda s: s.found.upper in {"AGG", "PROJECT"} or s.after().text in {";", ":", "+", "@", "⊕"}
          or s.after().upper in {"AS", "FILTER", "OR", "AND"},
          message="A query begins with PATTERN, not with {found.described}.",
          hint=f'to write ACEL, say language="acel"; a query of SASE+ looks like this: {EXAMPLE}'),
    Habit("EVENT SEQ(A a, B b)", "SELECT a.x FROM SEQ(A a, B b)", clause="query",
          message="A query begins with PATTERN, not with {found.described}.",
          hint=f"a query looks like this: {EXAMPLE}"),
    Habit("PATTERN A a PATTERN B b", found="PATTERN", expects="clause", also=("first written", "first"),
          message="PATTERN is written twice.", hint="one text holds one query; for alternatives write OR(…)."),
    Habit("PATTERN WHERE a.x > 5", "PATTERN SEQ(A a, WHERE a.x > 5", clause="PATTERN", unlike=", )",
          when=_clause_for_type, at="right",
          message="{what} is missing between `{left}` and `{right}`.",
          hint="write an event type and a variable, such as `Login a`; an event type that is really called {right} "
          "stands in backquotes."),
    Habit("PATTERN SEQ(A a AS b)", clause="PATTERN", after="WORD", found="AS",
          when=lambda s: not s.is_type and s.last.upper() not in _INFIX,
          message="The element already has the name `{last}`.", hint="remove AS."),
    Habit("PATTERN SEQ(A a, B b) AS s", clause="PATTERN", after="RPAR", found="AS",
          message="A group has no name.", hint="name the events inside it."),
    Habit("PATTERN SEQ(A AS a, B AS b)", "PATTERN SEQ(A a, B+ AS b)", clause="PATTERN",
          when=lambda s: _infix(s, {"AS"}), at="joint",
          message="The name of an event follows its type directly, without AS.", hint="write `{element}`."),
    Habit("PATTERN A a OR B b", "PATTERN A AND B WITHIN 5 MINUTES", "PATTERN A a THEN B b", clause="PATTERN",
          when=lambda s: _infix(s, _INFIX), at="joint",
          message="{operator} stands before its elements, not between them.", hint="write {operator}(A a, B b)."),
    Habit("PATTERN SEQ A a, B b", "PATTERN SEQ[A a, B b]", clause="PATTERN",
          when=lambda s: s.accepts == {"LPAR"}
          or (s.found.text in {"(", "["} and s.before().upper in {"SEQ", "AND", "OR"}),
          message="The elements of {before.upper} stand in parentheses.", hint="write {before.upper}(A a, B b)."),
    Habit("PATTERN SEQ(A a, B[3] b)", clause="PATTERN", before="<word>", found="[",
          when=lambda s: s.is_type and _times(s, s.found.end),
          message="The number of events follows the type, in braces.", hint="write `{before}{times}`."),
    Habit("PATTERN SEQ(A[x > 5] a, B b)", clause="PATTERN", before="<word>", found="[", when=lambda s: s.is_type,
          message="Conditions do not stand in the pattern.",
          hint="write `{before} a` here and the condition in WHERE: a.x > 5."),
    Habit("PATTERN SEQUENCE(A a, B b)", "PATTERN FOLLOWS(A a, B b)", clause="PATTERN", before="<word>", found="(",
          when=_unknown_operator, at="before",
          message="There is no operator `{before}`.", hint="{instead} operators are SEQ(…), AND(…), OR(…) and NOT."),
    Habit("PATTERN SEQ(A a, B b[3])", "PATTERN SEQ(A a, B b[2..3])", clause="PATTERN", only="RSQB",
          when=lambda s: _times(s, s.found.start),
          message="The number of events follows the type, in braces.", hint="write `{before3}{times} {before2}`."),
    Habit("PATTERN SEQ(A a[x > 5], B b)", clause="PATTERN", only="RSQB", at="before",
          message="Conditions do not stand in the pattern.", hint="write the condition in WHERE: {before2}.x > 5."),
    Habit("PATTERN (A a, B b)", "PATTERN [A a, B b]", found="( [ {", expects="element",
          message="Elements do not stand in bare `{found}`.", hint="write SEQ(A a, B b), AND(…) or OR(…)."),
    Habit("PATTERN SEQ(A a, T{,3} t)", clause="PATTERN", before="{", found=",", next="<number>", inside="{",
          message="The least number is missing.", hint="write {0,{next}}."),
    Habit("PATTERN SEQ(A a, T{2-3} t)", clause="PATTERN", before="<number>", next="<number>", inside="{",
          message="{found.described} cannot stand in a quantifier.", hint="write {{before},{next}}."),
    Habit("PATTERN SEQ(A a, T{} t)", "PATTERN T{2.5} t", clause="PATTERN", inside="{",
          message="A quantifier is {m}, {m,n} or {m,}, with whole numbers.",
          hint="{3} is exactly three, {2,5} two to five, {2,} two or more."),
    Habit("PATTERN SEQ(A a, B b+, C c)", "PATTERN SEQ(A a, B b{2,3}, C c)", clause="PATTERN", after="WORD",
          found="+ * ? {", when=_quantifier,
          message="The quantifier stands behind the type, before the variable.", hint="{instead}"),
    Habit("PATTERN SEQ(1stEvent a, B b)", clause="PATTERN", found="<number>", expects="element", when=shared.tail,
          at="found tail",
          message="An event type does not begin with a digit.", hint="put its name in backquotes: `{name}`."),
    Habit("PATTERN SEQ(PM2.5 p, B b)", "PATTERN SEQ(heart-rate h, B b)", clause="PATTERN", after="WORD",
          found=". - : / $ @", next="<word> <number>", at="before next",
          when=lambda s: shared.touches(s) and s.after().start == s.found.end,
          message="`{found}` cannot stand in a plain name.",
          hint="put the name in backquotes: `{before}{found}{next}`."),
    Habit("PATTERN SEQ(a : A, b : B)", clause="PATTERN", after="WORD", found=":", next="<word>",
          message="The type of an event comes first, then its name, without a colon.", hint="write `{next} {before}`."),
    Habit("PATTERN SEQ(a : 'A')", clause="PATTERN", after="WORD", found=":",
          message="The type of an event comes first, then its name, without a colon.", hint="write `A a`."),
    Habit("PATTERN A a -> B b", "PATTERN A a .. B b", clause="PATTERN", found="-> ..",
          message="A sequence is not written with arrows.", hint="write SEQ(A a, B b)."),
    Habit("PATTERN SEQ(A a; B b)", clause="PATTERN", found=";", inside="( [ {",
          message="Elements are separated by commas.", hint="write `,` instead of `;`."),
    Habit("PATTERN SEQ(A a, * x, B b)", found="* . ?", expects="element",
          message="There is no wildcard for event types.",
          hint="name the types: OR(A x, B x) takes an event of either."),
    Habit("PATTERN SEQ(A a, NOT(B b, C c), D d)", clause="PATTERN", found=",", inside="NOT(", at="head bracket",
          message="NOT takes one event.", hint="write one NOT for each: SEQ(A a, NOT B b, NOT C c, D d)."),
    Habit("PATTERN SEQ(A a, NOT(B b)+, C c)", clause="PATTERN", after="RPAR", found="+ * ? {",
          message="An absence is not repeated.", hint="remove the quantifier."),
    Habit("PATTERN SEQ(A after, B b)", clause="PATTERN", found=shared.CLAUSE, unlike="<clause>", expects="WORD",
          message="`{found}` is a keyword here.", hint="as a name it stands in backquotes: `{found}`."),
    Habit("PATTERN SEQ(OR(A a, B b) g, C c)", clause="PATTERN", before=")", found="<word> <quoted>",
          unlike=shared.CLAUSE, next=", )", expects="COMMA",
          message="A group has no name.", hint="name the events inside it, or add the missing comma."),
    Habit("PATTERN SEQ(A a B b)", "PATTERN SEQ(OR(A a, B b) C c)", clause="PATTERN", found="<word> <quoted>",
          unlike=shared.CLAUSE, expects="COMMA",
          message="A comma is missing before {found.described}.", hint="separate the elements by commas: A a, B b."),
)  # fmt: skip


# --- clauses ------------------------------------------------------------------------------------------------------

# Clauses of other languages.
_WINDOW, _WHERE, _RETURN = "write WITHIN 10 MINUTES.", "write WHERE.", "write RETURN."
_SEMANTICS = "write SEMANTICS any, next, contiguous or partition-contiguous."
_CLAUSES_INSTEAD = {
    "WINDOW": _WINDOW, "DURING": _WINDOW, "FOR": _WINDOW,
    "FILTER": _WHERE, "IF": _WHERE, "WHEN": _WHERE, "ON": _WHERE,
    "DEFINE": "write the conditions of all variables in WHERE, joined by AND.",
    "MEASURES": _RETURN, "SELECT": _RETURN, "EMIT": _RETURN, "PROJECT": _RETURN,
    "KEY": "write PARTITION BY.",
    "BY": "write PARTITION BY or GROUP BY.",
    "STRATEGY": _SEMANTICS, "SELECTION": _SEMANTICS, "POLICY": _SEMANTICS,
    "SKIP": "write AFTER MATCH SKIP …, or SEMANTICS skip-till-next-match.",
    "CONSUME": "write AFTER MATCH SKIP PAST LAST EVENT.",
    "TIMEOUTS": "write WITH TIMEOUTS.",
    "SLIDE": "write WITHIN (10 MINUTES, 1 MINUTE), or nothing: every match is reported once.",
    "UNION": "one text holds one pattern; for alternatives write OR(…).",
    "LIMIT": "take the rows you need from the result, or write OUTPUT first.",
    "ORDER": "a pattern orders its events, not its result; sort the DataFrame it gives.",
    "FROM": "a pattern does not name its inputs; they are given to it as DataFrames.",
    "ONE": "every match is one row; there is nothing to ask for.",
    "UNBOUNDED": "leave WITHIN out.",
}  # fmt: skip
_SELECTION_HABITS = {
    "strict": "contiguous", "relaxed": "next", "followedby": "next", "followed-by": "next", "followedbyany": "any",
    "all": "any", "none": "any", "skip": "skip-till-next-match", "stam": "any", "stnm": "next",
}  # fmt: skip
# What follows a word of AFTER MATCH.
_SKIP = {
    "_AFTER": "MATCH", "_MATCH": "SKIP or REUSE", "_SKIP": "PAST or TO", "_PAST": "LAST",
    "_TO": "NEXT, FIRST or LAST", "FIRST": "a variable", "LAST": "a variable",
}  # fmt: skip


def _unknown_clause(s: Situation) -> Fields | bool:
    """A word where a clause could begin, and the clause that is meant."""
    word = s.found if s.found.kind == "word" and s.expects("clause") else None
    behind = s.before()
    # `PATTERN A WHER a.x > 5`: read as the variable of A.
    if s.clause == "PATTERN" and s.read("WORD") and behind.kind == "word" and not s.unclosed:
        is_name = s.tokens[-2].type not in {"_PATTERN", "NOT"}
        is_near = nearest(behind.text, CLAUSES) or behind.upper in _CLAUSES_INSTEAD
        if is_name and is_near and s.found.kind in {"word", "number", "sign"} and s.found.upper not in CLAUSES:
            word = behind
    if word is None:
        return False
    near = nearest(word.text, CLAUSES)
    instead = _CLAUSES_INSTEAD.get(word.upper) or (f"did you mean {near}?" if near else "")
    return bool(instead) and {"word": word, "instead": instead}


def _selection(s: Situation) -> Fields:
    match = re.match(r"[\w-]+", s.source.text[s.found.start :])
    word = match.group() if match else s.found.text
    written = word.lower().replace("_", "-")
    near = _SELECTION_HABITS.get(written) or nearest(written, SELECTIONS)
    piece = Piece("word", word, s.found.start, s.found.start + max(1, len(word)))
    return {"policy": piece, "question": f"did you mean {near}? " if near else ""}


CLAUSE = (
    Habit("PATTERN A a SEMANTICS strict", "PATTERN A a SEMANTICS skip till next match",
          "PATTERN A a SEMANTICS everything", after="_SEMANTICS", unlike="<clause>", when=_selection, at="policy",
          message="There is no selection policy `{policy}`.",
          hint="{question}SEMANTICS is any, next, contiguous or partition-contiguous."),
    Habit("PATTERN A a OUTPUT frst", after="_OUTPUT", near="all first last longest count",
          message="Expected all, first, last, longest or count after OUTPUT, {but_found}.",
          hint="did you mean {near}?"),
    Habit("PATTERN A a OUTPUT everything", after="_OUTPUT",
          message="Expected all, first, last, longest or count after OUTPUT, {but_found}.",
          hint="first and last may be followed by PER START or PER END."),
    Habit("PATTERN A a OUTPUT first PER MATCH", after="_PER",
          message="Expected START or END after PER, {but_found}.",
          hint="matches are grouped by their first event (PER START) or by their last (PER END)."),
    *(Habit(f"PATTERN A a AFTER {words}", clause="AFTER", after=after, found=found, lacks="clause",
            when=lambda s: {"wanted": _SKIP[s.last_type]},
            message="Expected {wanted} after {last.upper}, {but_found}.", hint=f"write {instead}.")
      for words, after, found, instead in (
          ("MATCH SKIP NEXT", "_SKIP", "NEXT", "SKIP TO NEXT EVENT"),
          ("MATCH SKIP FIRST", "_SKIP", "FIRST", "SKIP TO FIRST b"),
          ("MATCH SKIP LAST", "_SKIP", "LAST", "SKIP PAST LAST EVENT, or SKIP TO LAST b for a variable b"),
          ("SKIP PAST LAST ROW", "_AFTER", "",
           "AFTER MATCH SKIP PAST LAST EVENT, or another policy behind AFTER MATCH"),
          ("MATCH SKIP TO b", "_TO", "<word> <quoted>", "SKIP TO FIRST {found} or SKIP TO LAST {found}"),
          ("MATCH", " ".join(_SKIP), "",
           "SKIP PAST LAST EVENT, SKIP TO NEXT EVENT, SKIP TO FIRST b, SKIP TO LAST b or REUSE"),
      )),
    Habit("PATTERN SEQ(A a, B b) WHER a.x = b.x", "PATTERN A WHER A.x = 5", "PATTERN SEQ(A a, B b) WINDOW 10 MINUTES",
          when=_unknown_clause, at="word",
          message="There is no clause `{word}`.", hint="{instead}"),
)  # fmt: skip

CONDITIONS = (
    Habit("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { a.x = b.x }", found="{", expects="operator|value",
          message="Conditions do not stand in braces.",
          hint="write them after WHERE, joined by AND, and the policy in its own clause: SEMANTICS any."),
    Habit("PATTERN A a WHERE NOT EXISTS (SELECT 1)", before="SELECT", expects="operator", at="before",
          message="There are no subqueries in a pattern.",
          hint="for events that must not occur, write NOT B b inside SEQ."),
)  # fmt: skip


# --- brackets and the end -----------------------------------------------------------------------------------------


def _opened(s: Situation) -> Fields | bool:
    """The bracket that is not closed, with its word: AND before a parenthesis joins conditions, but not patterns."""
    is_operator = s.clause == "PATTERN" and s.head is not None and s.head.upper in {"AND", "OR"}
    head = s.head if s.head and (is_operator or s.head.upper not in RESERVED_IN_CONDITIONS) else None
    until = "the query ends" if s.found.kind == "end" else s.found.upper
    return shared.is_closable(s) and {"first": head or s.bracket, "head": head or "", "until": until}


EMPTY_BRACKETS = (
    Habit("PATTERN SEQ()", before="(", found=")", inside="SEQ( AND( OR( NOT(", expects="element", at="head found",
          message="{head.upper}() has no elements.", hint="write {head.upper}(A a, B b)."),
    Habit("PATTERN A a WHERE a.x IN ()", before="(", found=")", inside="IN(", at="before found",
          message="Nothing stands between the parentheses.", hint="write at least one value: IN (1, 2)."),
    Habit("PATTERN A a WHERE () AND a.x > 5", before="(", found=")", at="before found",
          message="Nothing stands between the parentheses."),
)  # fmt: skip

ENDS = (
    Habit("PATTERN SEQ(A a, B b WHERE a.x = b.x", "PATTERN SEQ(A a, OR(B b, C c)", "PATTERN A a WHERE (a.x > 5",
          found="<clause>", when=_opened, also=("opened", "first bracket"),
          message="`{head}{bracket}` is not closed before {until}.", hint="write `{closing}` here."),
    *shared.JOINED_BY_COMMAS,
    Habit("PATTERN A a ; B b", clause="PATTERN", after="SEMICOLON", unlike=shared.CLAUSE, at="before",
          message="The query ends at `;`, but {found.described} follows.",
          hint="for a sequence, write SEQ(A a, B b); a `;` may only end the query."),
    Habit("PATTERN A a WITHIN 5 MINUTES; WHERE a.x = 1", after="SEMICOLON", at="before",
          message="The query ends at `;`, but {found.described} follows.",
          hint="remove the `;`, or what follows it: one text holds one query."),
    Habit("PATTERN A a, B b", "PATTERN A a B b", clause="PATTERN", found=", <word> <quoted>", unlike=shared.CLAUSE,
          expects="clause",
          when=lambda s: "," in {s.found.text, s.after().text} or s.after().kind in {"word", "quoted"}
          or s.after().text in {"+", "*", "?", "{", "("},
          message="The pattern is complete before {found.described}.",
          hint="several elements stand in an operator: SEQ(A a, B b), AND(A a, B b) or OR(A a, B b)."),
    Habit("PATTERN SEQ(A a, B b) FROBNICATE 5", found="<word>", unlike=shared.CLAUSE, expects="clause",
          lacks="operator", when=lambda s: nearest(s.found.text, s.keywords) is None,
          message="There is no clause `{found}`.",
          hint="the clauses are PARTITION BY, WHERE, WITHIN, SEMANTICS, AFTER MATCH, OUTPUT, RETURN, GROUP BY, HAVING, "
          "EVERY and WITH TIMEOUTS."),
)  # fmt: skip

# First what is wrong whatever stands around it, then the parts of a query, then brackets, and last what only a word
# too many can explain.
HABITS = (
    *(*EMPTY, *shared.SPELLING, *QUOTES, *shared.FOREIGN),
    *(*PATTERN, *shared.DURATIONS, *shared.CLAUSES, *CLAUSE, *shared.ALIASES, *CONDITIONS, *shared.VALUES),
    *(*shared.COMMAS, *EMPTY_BRACKETS, *shared.STRAY_BRACKETS, *ENDS),
)
