"""Habits of people who write rules; `messages.Habit` explains the columns."""

from __future__ import annotations

import re
from functools import cached_property

from tocsin.errors import nearest
from tocsin.language import habits as shared
from tocsin.language import messages
from tocsin.language.messages import SIGNS, Fields, Habit, Piece, pieces_of

EXAMPLE = "rule R where a : A { x > 5 } b : B { x = a.x } when b in a [0 seconds, 10 seconds] then"
DECLARATIONS = ("template", "rule", "pattern", "use")
# The clauses of a rule, in their order.
CLAUSES = ("where", "when", "select", "then")
_WORDS = " ".join((*CLAUSES, *DECLARATIONS))
# Where a declaration may follow that is no part of a rule.
_TOP = "program template pattern use"

_STRING = r"(?:'[^']*')++|(?:\"[^\"]*\")++"
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|`[^`\n]*`|--[^\n]*|#[^\n]*|/\*(?s:.*?)(?:\*/|\Z)")
_STRING_OR_HASH = re.compile(rf"({_STRING}|--[^\n]*)|#[^\n]*")


def without_comments(text: str) -> str:
    """The text with blanks for its comments and strings; every place stays where it is."""
    return _STRING_OR_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


class Situation(messages.Situation):
    """The place in a program that cannot be read. Its clauses are those of rules, and the declarations."""

    clauses = (*CLAUSES, *DECLARATIONS)
    text_name = "text"
    expectations = messages.Situation.expectations | {
        "constraint": "_UNORDERED", "reaction": "_EMIT", "declaration": "_TEMPLATE",
    }  # fmt: skip

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All of the text, cut up without regard to the grammar; a comment may begin with `#`."""
        text = _STRING_OR_HASH.sub(lambda found: found[1] or " " * len(found.group()), self.source.text)
        return tuple(pieces_of(text))

    def expects(self, name: str) -> bool:
        """Whether a terminal is accepted here, or a part of a rule."""
        if name == "pattern":
            return "NO" in self.accepts and self.clause == "where" and not self.unclosed
        return super().expects(name)

    @property
    def found_clause(self) -> bool:
        """Whether a clause or declaration begins here, or the text ends, instead of what was expected."""
        return self.found.kind == "end" or self.found.text in (*CLAUSES, *DECLARATIONS, "emit")

    @property
    def expected(self) -> list[str]:
        """Everything that could stand here, as phrases."""
        if self.expects("value"):
            return ["a value" if self.clause == "then" else "a condition"]
        if self.expects("operator"):
            closing = {"{": ["`,`", "`}`"], "(": ["`,`", "`)`"]}
            return ["an operator", *(closing.get(self.bracket.text, []) if self.bracket else ["`with`"])]
        phrases = {
            "pattern": "a pattern such as `b : B { x > 5 }`",
            "constraint": "a distance such as `b in a [0 seconds, 10 seconds]`",
            "reaction": "`emit`",
            **{f"_{word.upper()}": f"`{word}`" for word in ("where", "when", "then")},
            "declaration": "a declaration",
        }
        expected = [phrase for name, phrase in phrases.items() if self.expects(name)]
        names = ["a name"] if self.accepts & {"IDENT", "WORD", "NAME"} else []
        signs = {SIGNS.get(name, f"`{name.strip('_').lower()}`") for name in self.accepts - {"$END"}}
        return expected or names + sorted(signs)


# --- declarations -------------------------------------------------------------------------------------------------


def _is_array(s: Situation) -> bool:
    return str(s.last).upper() in {"ARRAY", "LIST", "STRING", "INTEGER"}


DECLARATION = (
    Habit("", "-- only a comment", after="<start>", found="<end>",
          message="There is no rule.", hint=f"a rule looks like this: {EXAMPLE}"),
    Habit("PATTERN SEQ(A a, B b) WITHIN 5 MINUTES", after="<start>", found="PATTERN SELECT", unlike="pattern",
          message="This is not a program of rules.",
          hint=f"a query in SASE+ is compiled by `tocsin.pattern`; a rule: {EXAMPLE}"),
    Habit("RULE R where a : A when then", "rule R WHERE a : A when then", found="<word>",
          when=lambda s: s.found.text != s.found.text.lower() and f"_{s.found.upper}" in s.accepts,
          message="Keywords of rules are in lower case, {but_found}.", hint="write `{found.text.lower}`."),
    Habit("rule R where when : A when then", found=f"{_WORDS} emit at with no in", next=":", expects="IDENT",
          message="`{found}` is a keyword, and cannot be a name as it is.", hint="write ``{found}`` in backquotes."),
    Habit("rule fraud-1 where a : A when then", after="IDENT", found="-", when=shared.touches, at="last",
          message="A name has no hyphen.", hint="write `{last}_{next}`, or put the name in backquotes."),
    Habit("use", "use 'bank.parte'", found="use", expects="declaration",
          message="`use` names a module.", hint="write `use bank`, for the file `bank.parte`."),
    Habit("rule where a : A when then", after="_RULE",
          message="A rule has a name, {but_found}.", hint="write `rule Fraud where …`."),
    Habit("template { x : Integer }", after="_TEMPLATE",
          message="A template has a name, {but_found}.", hint="write `template Transfer { amount : Amount }`."),
    Habit("pattern where { x > 5 }", after="_PATTERN",
          message="A named pattern has a name, {but_found}.",
          hint="write `pattern Large : Transfer { amount >= 100 }`."),
    Habit("rule R where a : A then emit at a.timestamp with { }", after="_EMIT",
          message="`emit` names a template, {but_found}.",
          hint="write `emit Alert at a.timestamp with { account = a.account }`."),
    Habit("rule R a : A when then", only="_WHERE",
          message="Expected `where` after the name of the rule, {but_found}.", hint=f"write {EXAMPLE}."),
    Habit("rule R where when then", after="_WHERE", found="<clause>",
          message="The rule has no pattern.", hint="write at least one: `where a : A { x > 5 }`."),
    Habit("rule R where a : A { x > 5", found="<end>", inside="( [ {", also=("opened", "bracket"),
          message="`{bracket}` is not closed before the text ends.", hint="write `{closing}` here."),
    Habit("rule R where a : A { x > 5 when b in a [0 s, 5 s] then", found="<clause>", inside="( [ {",
          also=("opened", "bracket"),
          message="`{bracket}` is not closed before `{found}`.", hint="write `{closing}` here."),
    Habit("rule R where a : A not b : B { x = a.x } when then", after="IDENT", only="COLON _IN",
          when=lambda s: s.last.lower() == "not", at="last",
          message="Absence is written `no`.", hint="write `no {found}`."),
    Habit("rule R where a : A !b : B when then", found="! ¬", expects="pattern|constraint",
          message="Absence is written `no`.", hint="write `no {next|b}`."),
    Habit("rule R where a : A; b : B when then", found=";",
          message="`;` ends nothing here.", hint="put a comma between patterns or conditions, or nothing at all."),
    Habit("template A { x : Integer rule R where a : A when then", clause="template", inside="{", only="COLON",
          when=lambda s: s.last in DECLARATIONS, at="last", also=("opened", "bracket"),
          message="`{` is not closed before `{last}`.", hint="write `}` here."),
    Habit("template A { x Integer }", clause="template", only="COLON",
          message="Expected `:` and a type after `{last}`, {but_found}.", hint="write `{last} : {found|Integer}`."),
    Habit("rule R where a : A b : B b in a [0 s, 5 s] when then", clause="where", found="in", only="COLON",
          message="Expected `:` and a template after `{last}`, {but_found}.",
          hint="distances stand in `when`, after the patterns."),
    Habit("rule R where a : A, a.x > 5 when then", found=".", only="COLON",
          message="Expected `:` and a template after `{last}`, {but_found}.",
          hint="conditions stand in braces, behind the pattern of the last variable that they speak of."),
    Habit("rule R where a A { x > 5 } when then", "pattern Large Transfer", expects="COLON",
          when=lambda s: len(s.accepts) == 1 or (s.clause == "pattern" and s.found.kind == "word"),
          message="Expected `:` and a template after `{last}`, {but_found}.", hint="write `{last} : {found|A}`."),
    Habit("template A { tags : [String] }", clause="template", inside="[",
          when=lambda s: {"kind": ([token for token in s.tokens if token.type == "WORD"] or ["String"])[-1]},
          message="An array has a type and a length, {but_found}.", hint="write `[{kind}; 3]`."),
    Habit("template A { tags : Array<String> }", clause="template", after="WORD", found="<", when=_is_array,
          message="An array is written in brackets, {but_found}.", hint="write `[{next}; 3]`."),
    Habit("template A { tags : String[3] }", clause="template", after="WORD", found="[", when=_is_array,
          message="An array is written in brackets, {but_found}.", hint="write `[{last}; 3]`."),
    Habit("template A { x : Decimal(10, 2) }", clause="template", after="WORD", found="< [ (",
          message="A type is a name, or an array, {but_found}.", hint="write `Amount`, or `[Amount; 3]`."),
    Habit("template A { x : }", clause="template", after="COLON",
          message="Expected a type, {but_found}.", hint="write `amount : Amount`, or `tags : [String; 3]`."),
    Habit("rule R where a : { x > 5 } when then", after="COLON",
          message="Expected the name of a template, {but_found}.", hint="write `a : A { x > 5 }`."),
)  # fmt: skip


# --- clauses ------------------------------------------------------------------------------------------------------

_BOUNDS = "write `[0 seconds, 10 seconds]`."
_CLOSED = f"a distance has two finite ends (S8); {_BOUNDS}"


def _emit(word: object) -> Fields:
    near = nearest(str(word), ["emit"])
    return {"instead": f"did you mean `{near}`?" if near else "write `emit Alert at a.timestamp with { x = a.x }`."}


def _is_out_of_order(s: Situation) -> bool:
    is_in_rule = s.expects("declaration") or s.clause in CLAUSES
    return bool(s.tokens) and is_in_rule and f"_{s.found.upper}" not in s.accepts


CLAUSE = (
    Habit("rule R where a : A b : B when b in [0 s, 5 s] then", clause="when", after="_IN",
          message="A distance is seen from another variable, {but_found}.",
          hint="write `b in a [0 seconds, 10 seconds]`."),
    Habit("rule R where a : A b : B when b in a (0 s, 5 s) then", clause="when", found="(", only="LSQB",
          message="Expected `[` and two lengths of time, {but_found}.",
          hint=f"both ends belong to a distance; {_BOUNDS}"),
    Habit("rule R where a : A b : B when b in a 5 s then", clause="when", only="LSQB",
          message="Expected `[` and two lengths of time, {but_found}.", hint=_BOUNDS),
    Habit("rule R where a : A b : B when b in a [0 seconds, 5 minuts] then", clause="when", found="<word>",
          near="ms seconds minutes hours days", inside="[", only="UNIT",
          message="{found.described} is no unit of time.",
          hint="did you mean `{near}`? units: ms, seconds, minutes, hours, days."),
    Habit("rule R where a : A b : B when b in a [0 seconds, 5 parsecs] then", clause="when", found="<word>",
          inside="[", only="UNIT",
          message="{found.described} is no unit of time.", hint="units: ms, seconds, minutes, hours, days."),
    Habit("rule R where a : A b : B when b in a [0, 5] then", clause="when", inside="[", only="UNIT",
          message="`{last}` has no unit.", hint="write `{last} seconds`, or ms, minutes, hours, days."),
    Habit("rule R where a : A b : B when b in a [0 s - 5 s] then", clause="when", unlike="∞ * _ ]", inside="[",
          only="COMMA", when=lambda s: not s.found.upper.startswith("INF"),
          message="Expected `,` and the other end of the distance, {but_found}.", hint=_CLOSED),
    Habit("rule R where a : A b : B when b in a [0 seconds, inf] then", clause="when", inside="[",
          message="Expected a length of time, {but_found}.", hint=_CLOSED),
    Habit("rule R where a : A b : B when b.x > a.x then", clause="when", found=". > < = >= <= !=", only="_IN",
          message="`when` holds distances in time, no other conditions.",
          hint="write the condition in the braces of a pattern: `b : B { x > a.x }`."),
    Habit("rule R where a : A b : B when b within a [0 s, 5 s] then", clause="when", found="WITHIN AFTER BEFORE",
          only="_IN",
          message="A distance is written with `in`, {but_found}.", hint="write `{last} in a [0 seconds, 10 seconds]`."),
    Habit("rule R where a : A b : B when b a then", clause="when", only="_IN",
          message="Expected `in` after `{last}`, {but_found}.", hint="write `{last} in a [0 seconds, 10 seconds]`."),
    Habit("rule R where a : A b : B* when then", clause="where", found="* ?", expects="LSQB",
          message="`{found}` is no repetition here: a rule binds at least one event.",
          hint="write `B+`, `B[3]` or `B[2..5]`."),
    Habit("rule R where a : A b : B[] when then", "rule R where a : A b : B[2,3] when then", clause="where",
          after="LSQB INT _UP_TO", inside="[", when=lambda s: "INT" in {s.last_type, *s.accepts},
          message="A repetition has one number, or two with `..` between, {but_found}.",
          hint="write `B+`, `B[3]` or `B[2..5]`."),
    Habit("rule R where a : A b : B then emit C at a.timestamp with { } when b in a [0 s, 5 s]",
          found=" ".join(CLAUSES), inside="none", when=_is_out_of_order,
          message="`{found}` cannot stand here.", hint="a rule has `where`, `when`, `select`, `then`, in this order."),
    Habit("rule R where a : A when then emit B with { x = a.x }", only="_AT",
          message="An emitted event has a time, {but_found}.", hint="write `emit {last} at a.timestamp with { … }`."),
    Habit("rule R where a : A when then emit B at a.timestamp { x = a.x }", clause="then", expects="_WITH",
          message="Expected `with` and the values of the event, {but_found}.", hint="write `with { x = a.x }`."),
    Habit("rule R where a : A when then emit B at a.timestamp with x = a.x", after="_WITH",
          message="The values of an event stand in braces, {but_found}.", hint="write `with { x = a.x }`."),
    Habit("rule R where a : A when then not a.x", clause="then", found="<word>", unlike=" ".join(DECLARATIONS),
          expects="reaction", when=lambda s: _emit(s.found),
          message="Expected `emit` in `then`, {but_found}.", hint="{instead}"),
    Habit("rule R where a : A when then emiit B at a.timestamp with { x = a.x }",
          "rule R where a : A when then print a.x", clause="then", after="NAME", only="LPAR",
          when=lambda s: _emit(s.last), at="last",
          message="Expected `emit` in `then`, but found `{last}`.", hint="{instead}"),
    Habit("rule R where a : A when then emit B at a.timestamp with { a.x }", found=".", only="EQUAL",
          message="Expected `=` and a value after `{last}`, {but_found}.",
          hint="write `{next} = {last}.{next}`: the attribute of the emitted event, then its value."),
    Habit("rule R where a : A when then emit B at a.timestamp with { x : a.x }", only="EQUAL",
          message="Expected `=` and a value after `{last}`, {but_found}.",
          hint="write `{last} = a.{last}`: the attribute of the emitted event, then its value."),
    Habit("rule R where a : A when then emit B at a.timestamp with { x = a.x y = 5 }", clause="then",
          found="<word> <quoted>", unlike="<clause>", inside="{", expects="operator",
          message="Expected `,` before {found.described}.", hint="put a comma between the values of an event."),
    Habit("rule R where a : A { x > 5 y < 3 } when then", found="<word> <quoted>", unlike="<clause>", inside="{",
          expects="operator",
          message="Expected `,` before {found.described}.", hint="put a comma between conditions."),
    Habit("rul R where a : A when then", clause=_TOP, found="<word>", near=" ".join(DECLARATIONS), inside="none",
          expects="declaration",
          message="{found.described} begins no declaration.", hint="did you mean `{near}`?"),
    Habit("macro M", "template A { x : Integer } macro M", clause=_TOP, found="<word>", inside="none",
          expects="declaration",
          message="{found.described} begins no declaration.",
          hint="a program has `template`, `pattern`, `rule` and `use`."),
)  # fmt: skip

HABITS = (*shared.SPELLING, *DECLARATION, *CLAUSE, *shared.FOREIGN, *shared.VALUES, *shared.STRAY_BRACKETS)
