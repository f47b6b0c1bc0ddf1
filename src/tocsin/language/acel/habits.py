"""Habits of people who write ACEL: formulas, PROJECT and AGG, FILTER; `messages.Habit` explains the columns."""

from __future__ import annotations

from tocsin.errors import nearest
from tocsin.language import habits as shared
from tocsin.language import messages
from tocsin.language.expressions import BagOrder
from tocsin.language.messages import CLOSING, SIGNS, Fields, Habit

CLAUSES = ("WITHIN", "PARTITION", "RETURN", "GROUP", "HAVING", "EVERY")
EXAMPLE = "Login AS l ; Transfer+ AS t FILTER t[amount > 1000] WITHIN 10 MINUTES"


class Situation(messages.Situation):
    """The place in a formula or its clauses that cannot be read. The formula is the clause `PATTERN`."""

    clauses = CLAUSES
    outside = "PATTERN"
    brackets_in_clauses = "("
    expectations = messages.Situation.expectations | {"element": "_AGG", "suffix": "ADJACENT", "clause": "_WITHIN"}

    def expects(self, name: str) -> bool:
        """Whether a terminal is accepted here, or a part of a formula; `joint`: a condition of FILTER is complete."""
        if name == "atom":
            is_due = self.last_type in {"_FILTER", "AND", "OR", "LPAR"}
            return is_due and "VARIABLE" in self.accepts and not self.expects("element")
        if name == "joint":
            return "AND" in self.accepts and not self.expects("suffix") and not self.expects("operator")
        return super().expects(name)

    @property
    def expected(self) -> list[str]:
        """Everything that could stand here, as phrases."""
        ends = [f"`{CLOSING[self.bracket.text]}`"] if self.bracket and self.bracket.text != "{" else []
        if not self.bracket and self.expects("clause"):
            ends = ["a clause such as WITHIN", "the end of the query"]
        phrases = {
            "element": ["an event type", "`(`", "PROJECT[…](…)", "AGG y[…](…)", "NEXT(…)"],
            "suffix": ["an operator (; : OR AND + @+ AS FILTER)", *ends],
            "atom": ["a condition such as x[price > 100]"],
            "joint": ["AND", "OR", "FILTER", *ends],
            "value": ["a value"],
            "operator": ["an operator", *ends],
            "_INTERVAL": ["a duration such as 15 MINUTES"],
            **{name: ["a name"] for name in ("VARIABLE", "NAME", "WORD")},
            "clause": ends,
        }
        signs = sorted({SIGNS.get(name, name.strip("_")) for name in self.accepts - {"$END"}})
        return next((phrases[name] for name in phrases if self.expects(name)), signs)

    @property
    def advice(self) -> str:
        """The hint where no habit fits."""
        is_complete = any(map(self.expects, ("suffix", "clause", "joint")))
        words = ["FILTER", "OR", "AND", "AS", *CLAUSES] if is_complete and self.found.kind == "word" else []
        near = nearest(self.found.text, words)
        return f"did you mean {near}?" if near else f"a formula looks like this: {EXAMPLE}"


# --- formulas -----------------------------------------------------------------------------------------------------

_JOINTS = "; : OR AND ∨ ∧"
_SASE = 'to write SASE+, say language="sase".'
_BINDS = "A+ is once or more, A@+ the same without other events between; for a choice write A OR B."
# Clauses of other languages.
_WINDOW, _RETURN = "write WITHIN 10 MINUTES.", "write RETURN behind the formula."
_FILTERED = "write FILTER x[price > 100]."
_INPUTS = "a pattern does not name its inputs; they are given to it."
_CLAUSES_INSTEAD = {
    "WINDOW": _WINDOW, "DURING": _WINDOW, "FOR": _WINDOW,
    "SELECT": _RETURN, "EMIT": _RETURN, "MEASURES": _RETURN,
    "IF": _FILTERED, "WHEN": _FILTERED, "ON": _INPUTS, "FROM": _INPUTS,
    "ORDER": "a pattern orders its events, not its result.",
    "LIMIT": "take the rows you need from the result.",
}  # fmt: skip


def _unknown_clause(s: Situation) -> Fields | bool:
    words = ("FILTER", *CLAUSES) if s.clause == "PATTERN" else CLAUSES
    near = nearest(s.found.text, words) if s.found.kind == "word" and len(s.found.text) > 3 else None
    is_misspelt = near is not None and near != s.found.upper
    instead = _CLAUSES_INSTEAD.get(s.found.upper) or (f"did you mean {near}?" if is_misspelt else "")
    return bool(instead) and {"instead": instead}


def _operator(s: Situation) -> Fields:
    return {"sign": {"SEMICOLON": ";", "COLON": ":"}.get(s.last_type, s.last_type)}


FORMULAS = (
    Habit("", "-- only a comment", after="<start>", found="<end>",
          message="The query is empty.", hint=f"a formula looks like this: {EXAMPLE}"),
    Habit("SEQ(SELL s, BUY b)", before="SEQ NSEQ ITER", found="(", expects="suffix", at="before",
          message="There is no {before.upper} in ACEL.", hint=f"a sequence is written A ; B; {_SASE}"),
    Habit("AND(SELL s, BUY b)", found="AND OR", next="(", expects="element",
          message="{found.upper} stands between formulas, not before them.",
          hint=f"write A {{found.upper}} B; {_SASE}"),
    Habit("SELL ; BUY WHERE SELL.price > 100", found="WHERE", expects="suffix|clause",
          message="There is no WHERE in ACEL.", hint=f"write FILTER x[price > 100] behind the formula; {_SASE}"),
    Habit("SELL ; BUY SEMANTICS next", found="SEMANTICS AFTER OUTPUT WITH", expects="suffix|clause",
          message="There is no clause {found.upper} in ACEL.",
          hint=f"the clauses are WITHIN, PARTITION BY, RETURN, GROUP BY and HAVING; {_SASE}"),
    Habit("SELL AND NOT BUY", "NOT BUY", "!BUY", found="NOT ¬ !", expects="element",
          message="ACEL has no negation of formulas.",
          hint="NOT stands inside a predicate, x[NOT price > 100]; for events that must not occur write SASE+: "
          "SEQ(A a, NOT B b, C c)."),
    Habit("[SELL ; BUY]+", "{SELL ; BUY}+", found="[ {", expects="element",
          message="Formulas are grouped by parentheses.", hint="write `(` instead of `{found}`: (A ; B)+."),
    Habit("SELL AS 'mine'", clause="PATTERN", after="_AS", found="<string> <double_quoted>",
          message="A name is not text.", hint="write AS {found.content}, in backquotes unless it is a plain word."),
    Habit("SELL AS filter", clause="PATTERN", after="_AS", found="<word>", unlike="<clause>",
          message="`{found}` is a keyword.", hint="as a name it stands in backquotes: AS `{found}`."),
    Habit("SELL AS ; BUY", "SELL AS", clause="PATTERN", after="_AS",
          message="Expected a name after AS, {but_found}.", hint="write A AS x."),
)  # fmt: skip

OPERANDS = (
    Habit("SELL ;", "SELL ;; BUY", "(SELL AND ) ; BUY", "SELL OR WITHIN 5 MINUTES", after="SEMICOLON COLON OR AND",
          found=f") , {_JOINTS} FILTER <clause>", expects="element", when=_operator, at="last",
          message="A formula is missing between `{sign}` and {found.described}.",
          hint="write one there, or remove the `{sign}`."),
    Habit("; SELL", "OR SELL", "+ SELL", found=f"{_JOINTS} FILTER AS + @ ⊕", expects="element",
          message="A formula is missing before {found.described}.",
          hint="write what it belongs to, as in A ; B or A+."),
    Habit("WITHIN 5 MINUTES", after="<start>", found="<clause>", expects="element",
          message="The formula is missing.", hint=f"a formula looks like this: {EXAMPLE}"),
    Habit("(", "PATTERN WITHIN 5 MINUTES", found="<clause>", expects="element",
          message="A formula is missing after `{last}`.", hint=f"a formula looks like this: {EXAMPLE}"),
    Habit("() ; SELL", after="LPAR", found=")", expects="element",
          message="Nothing stands between the parentheses.", hint="write a formula there: (A ; B)+."),
    Habit("SELL ; GROUP", found=" ".join(CLAUSES), expects="element",
          message="`{found}` is a keyword.", hint="as an event type it stands in backquotes: `{found}`."),
    Habit("SELL* ; BUY", "SELL? ; BUY", found="* ?", expects="suffix",
          message="Every formula of ACEL binds an event: there is no `{found}`.", hint=_BINDS),
    Habit("SELL{2,3} ; BUY", found="{", expects="suffix", message="ACEL does not count repetitions.", hint=_BINDS),
    Habit("SELL WITHIN 5 MINUTES FILTER SELL[price > 100]", clause=" ".join(CLAUSES), found="FILTER",
          message="FILTER belongs to the formula, before {clause}.", hint="write A FILTER A[x > 1] WITHIN 5 MINUTES."),
    Habit("SELL FILTER SELL[price > 100] ; BUY", "SELL FILTER SELL[price > 100]+", after="RSQB", found="; : + @ ⊕ AS",
          expects="joint",
          message="{found.described} cannot follow a FILTER, which takes all that stands before it.",
          hint="put the formula with its FILTER in parentheses: (A FILTER A[x > 1]) ; B."),
    Habit("SELL @ BUY", found="@", expects="suffix",
          message="`@` alone means nothing.", hint="A@+ repeats A without other events between."),
    Habit("SELL, BUY", "SELL -> BUY", found=", -> →", expects="suffix",
          message="Formulas are not joined by `{found}`.",
          hint="write A ; B for one after the other, A : B for direct neighbours."),
    Habit("SELL && BUY", found="& &&", expects="suffix",
          message="Formulas are joined by words.", hint="write AND; it keeps what both formulas find."),
    Habit("SELL | BUY", found="| ||", expects="suffix", message="Formulas are joined by words.", hint="write OR."),
    Habit("SELL[price > 100]", before="<word> <quoted>", found="[", expects="suffix",
          message="A predicate belongs to FILTER.", hint="write {before} FILTER {before}[…]."),
    Habit("SELL ; BUY WITHIN 5 MINUTES;", clause=" ".join(CLAUSES), found=";", inside="none", expects="clause",
          message="A query does not end with `;`.", hint="remove the `;`."),
    Habit("SELL ; BUY WINDOW 5 MINUTES", "SELL ; BUY WITHN 5 MINUTES", "(SELL ; BUY) FILTR SELL[price > 100]",
          inside="none", expects="clause", when=_unknown_clause,
          message="There is no clause `{found}`.", hint="{instead}"),
    Habit("SELL AS s BUY", after="_AS,VARIABLE _AS,QUOTED", found="<word> <quoted> <string>", unlike=" ".join(CLAUSES),
          expects="suffix",
          message="An operator is missing before {found.described}.",
          hint="write ; between formulas that follow one another, : between neighbours, OR between choices."),
    Habit("SELL s ; BUY b", after="VARIABLE QUOTED", found="<word> <quoted> <string>", unlike=" ".join(CLAUSES),
          expects="suffix",
          message="{found.described} cannot follow the event type `{before}`.",
          hint="to name its events write {before} AS {found}; between two formulas write ; or : or OR."),
    Habit("(SELL ; BUY", found="<end>", when=shared.is_closable, also=("opened", "bracket"),
          message="`{bracket}` is not closed before the query ends.", hint="write `{closing}` here."),
    Habit("(SELL ; BUY WITHIN 5 MINUTES", found="<clause>", when=shared.is_closable, also=("opened", "bracket"),
          message="`{bracket}` is not closed before {found.upper}.", hint="write `{closing}` here."),
)  # fmt: skip


# --- PROJECT, AGG and NEXT ----------------------------------------------------------------------------------------

_PROJECT = "write PROJECT[x, y](…) to keep variables, PROJECT[x(a, b)](…) to keep attributes of one."
_AGG = "AGG y[total <- sum(x.price), n <- count(x)](…)."


def _closes_project(s: Situation) -> bool:
    """Whether the brackets that were just closed stand behind PROJECT."""
    depth = 0
    for place in range(len(s.tokens) - 1, -1, -1):
        depth += {"RSQB": 1, "LSQB": -1}.get(s.tokens[place].type, 0)
        if depth == 0:
            return place > 0 and s.tokens[place - 1].type == "_PROJECT"
    return False


def _in_call(s: Situation) -> Fields | bool:
    """Whether the innermost open bracket is that of an aggregate of AGG, and of which."""
    is_call = any(token.type == "_ARROW" for token in s.tokens[-6:])
    return is_call and {"function": s.head or "sum"}


PROJECT = (
    Habit("PROJECT s (SELL AS s)", "PROJECT(s)(SELL AS s)", after="_PROJECT",
          message="The variables of PROJECT stand in square brackets, {but_found}.", hint=_PROJECT),
    Habit("PROJECT[](SELL AS s)", after="LSQB", found="]", inside="PROJECT[", at="before found",
          message="PROJECT keeps nothing.", hint=_PROJECT),
    Habit("PROJECT[s.price](SELL AS s)", found=".", inside="PROJECT[",
          message="Attributes of a variable stand in parentheses.", hint="write {last}({next|a})."),
    Habit("PROJECT[s t](SELL AS s)", inside="PROJECT[",
          message="Expected a variable, `,` or `]` in PROJECT[…], {but_found}.", hint=_PROJECT),
    Habit("PROJECT[s (SELL AS s)", only="RPAR COMMA", expects="RPAR COMMA",
          when=lambda s: len(s.unclosed) > 1 and s.unclosed[-2].text == "[",
          message="Expected `,` or `)` behind an attribute of PROJECT[…], {but_found}.", hint=_PROJECT),
    Habit("PROJECT[s] SELL AS s", after="RSQB", only="LPAR", when=_closes_project,
          message="The formula of PROJECT stands in parentheses, {but_found}.", hint=_PROJECT),
)  # fmt: skip

AGG = (
    Habit("AGG [m <- max(SELL.price)](SELL+)", after="_AGG",
          message="Expected a variable after AGG, {but_found}.", hint=f"name the new events: {_AGG}"),
    Habit("AGG y(m <- max(SELL.price))(SELL+)", after="_AGG,VARIABLE _AGG,QUOTED",
          message="The values of AGG stand in square brackets, {but_found}.", hint=f"write {_AGG}"),
    Habit("AGG y[n <- count(SELL)] SELL+", after="RSQB", only="LPAR",
          message="The formula of AGG stands in parentheses, {but_found}.", hint=f"write {_AGG}"),
    Habit("AGG y[m = max(SELL.price)](SELL+)", found="= := : -> < →", expects="_ARROW",
          message="A value of AGG is given by `<-`, not by `{found}`.", hint="write {last} <- sum(x.price)."),
    Habit("AGG y[max(SELL.price)](SELL+)", found="(", expects="_ARROW", at="last found",
          message="A value of AGG needs a name.", hint="write total <- {last}(x.price)."),
    Habit("AGG y[total sum(SELL.price)](SELL+)", expects="_ARROW",
          message="Expected `<-` after `{last}`, {but_found}.", hint=f"write {_AGG}"),
    Habit("AGG y[m <- 5](SELL+)", after="_ARROW",
          message="A value of AGG is an aggregate of a variable.", hint="write sum(x.price) or count(x)."),
    Habit("AGG y[m <- SELL.price](SELL+)", after="_ARROW,WORD", only="LPAR", at="last",
          message="A value of AGG is an aggregate of a variable.", hint="write sum(x.price) or count(x)."),
    Habit("AGG y[m <- max()](SELL+)", after="LPAR", found=")", inside="(", when=_in_call,
          message="`{function}` has nothing to aggregate.",
          hint="name a variable and an attribute: {function}(x.price)."),
    Habit("AGG y[n <- count(*)](SELL+)", after="LPAR", found="*", inside="(", when=_in_call,
          message="AGG aggregates the events of a variable.", hint="write count(x); RETURN COUNT(*) counts matches."),
    Habit("AGG y[m <- max(SELL(price))](SELL+)", found="(", inside="(", when=_in_call,
          message="An attribute follows its variable after a dot.", hint="write {function}({last}.{next|price})."),
    Habit("AGG y[m <- sum(SELL.price + 1)](SELL+)", found="+ - * / ,", inside="(", when=_in_call,
          message="An aggregate takes one attribute.", hint="compute others as columns of the input first."),
    Habit("AGG y[m <- sum(5)](SELL+)", inside="(", when=_in_call,
          message="Expected an attribute of a variable in `{function}(…)`, {but_found}.",
          hint="write {function}(x.price)."),
    Habit("AGG y[](SELL+)", "AGG y[n <- count(SELL),](SELL+)", after="LSQB COMMA", only="WORD QUOTED",
          message="Expected the name of a value in AGG, {but_found}.", hint=f"write {_AGG}"),
    Habit("NEXT(SELL ; BUY)", "NEXT()", clause="PATTERN",
          when=lambda s: "NEXT" in [token.type for token in s.tokens[-3:]],
          message="NEXT takes one event type, {but_found}.", hint="write NEXT(A): the first A from here on."),
)  # fmt: skip


# --- conditions of FILTER -----------------------------------------------------------------------------------------

_PREDICATE = "write {last}[price > 100]; a formula beside one with FILTER needs parentheses: (A FILTER A[x > 1]) OR B."
_ATOM = "write x[price > 100]: the variable, and in brackets what holds for each of its events."


def _comparison(s: Situation, start: int) -> Fields:
    """The comparison written some pieces after the one found, when it is a plain one."""
    sign, value = s.after(start), s.after(start + 1)
    is_plain = sign.text in {"=", "!=", "<", "<=", ">", ">="} and value.kind in {"number", "string", "double_quoted"}
    return {"rest": f" {sign} {value}" if is_plain else " > 100"}


FILTER = (
    Habit('SELL FILTER SELL[name = "INTL]', found="<double_quoted>", expects="value",
          message="The string is not closed.", hint='close it with `"`; a quote inside a string is doubled.'),
    Habit('SELL ; "BUY"', found="<double_quoted>",
          message="A name is not text.", hint="a name that is no plain word stands in backquotes."),
    Habit("SELL FILTER NOT SELL[price > 100]", found="NOT ¬ !", expects="atom",
          message="NOT stands inside a predicate, not before one.",
          hint="write x[NOT price > 100], which holds for every event of x."),
    Habit("SELL FILTER", "SELL FILTER WITHIN 5 MINUTES", "SELL FILTER SELL[price > 100] AND",
          found="<clause> ) ] ; : AND OR FILTER", expects="atom", at="last",
          message="A condition is missing after `{last}`, {but_found}.", hint=_ATOM),
    Habit("SELL FILTER 5 < SELL.price", expects="atom",
          message="Expected a condition such as x[price > 100], {but_found}.", hint=_ATOM),
    Habit("SELL AS s FILTER s.price > 100", found=".", only="LSQB", when=lambda s: _comparison(s, 2),
          message="A predicate stands in brackets behind its variable.", hint="write {last}[{next|price}{rest}]."),
    Habit("SELL FILTER price > 100", found=f"{shared.COMPARISONS} ==", only="LSQB", when=lambda s: _comparison(s, 0),
          message="`{last}` does not say whose attribute it is.",
          hint="write x[{last}{rest}], with the variable for x."),
    Habit("SELL+ FILTER same(name)", found="(", only="LSQB",
          when=lambda s: s.last.lower() in {order.value for order in BagOrder}, at="last",
          message="`{last}` stands in the brackets of a variable.", hint="write x[{last}({next|name})]."),
    Habit("SELL FILTER SELL(price > 100)", found="(", only="LSQB",
          message="A predicate stands in square brackets.", hint="write {last}[price > 100], or {last}[same(name)]."),
    Habit("SELL FILTER SELL", found="<clause>", only="LSQB", message="`{last}` has no predicate.", hint=_PREDICATE),
    Habit("SELL FILTER SELL price > 100", only="LSQB",
          message="Expected a predicate in brackets after `{last}`, {but_found}.", hint=_PREDICATE),
    Habit("SELL FILTER SELL[]", after="LSQB", found="]", expects="value",
          message="Nothing stands between the brackets.", hint=_ATOM),
    Habit("SELL FILTER SELL[price > 100, price < 200]", found=",", inside="[", expects="operator",
          message="Conditions are joined by AND, not by a comma.", hint="write AND instead of `,`."),
    Habit("SELL FILTER SELL[price > 100], SELL[price < 200]", "SELL FILTER SELL[price > 100] && SELL[price < 200]",
          after="RSQB RPAR", found=", & &&", expects="joint",
          message="AND or OR is missing before {found.described}.", hint="join the conditions with AND or OR."),
    Habit("SELL FILTER SELL[price > 100] SELL[price < 200]", after="RSQB RPAR", found="<word> <quoted>", next="[",
          expects="joint",
          message="AND or OR is missing before {found.described}.", hint="join the conditions with AND or OR."),
)  # fmt: skip

HABITS = (
    *(*shared.SPELLING, *FORMULAS, *PROJECT, *AGG, *OPERANDS, *FILTER, *shared.FOREIGN, *shared.DURATIONS),
    *(*shared.CLAUSES, *shared.ALIASES, *(habit for habit in shared.VALUES if habit not in shared.INDICES)),
    *(*shared.COMMAS, *shared.STRAY_BRACKETS, *shared.JOINED_BY_COMMAS),
)
