"""Habits that several languages share: spelling, signs, durations, clauses, values and brackets.

Examples are SASE+, whose table (`sase/habits.py`) has all of these rows. `messages.Habit` explains the columns.
"""

from __future__ import annotations

import re

from tocsin.errors import nearest
from tocsin.language import durations
from tocsin.language.messages import CLOSING, Fields, Habit, Piece, Situation
from tocsin.language.sase.printer import quoted
from tocsin.language.sase.words import CLAUSES as CLAUSE_WORDS
from tocsin.language.sase.words import RESERVED_IN_CONDITIONS

CLAUSE = " ".join(CLAUSE_WORDS)
RESERVED = " ".join(RESERVED_IN_CONDITIONS)
COMPARISONS = "= != <> < <= > >= ≤ ≥ ≠"


def touches(s: Situation) -> bool:
    """Whether nothing stands between the piece before and the one found."""
    return s.before().end == s.found.start


def tail(s: Situation) -> Fields:
    """A name that begins with a digit: the number found, and the letters that touch it."""
    end = s.after() if s.after().kind == "word" and s.after().start == s.found.end else s.found
    return {"tail": end, "name": s.written(s.found, end)}


# --- spelling -----------------------------------------------------------------------------------------------------


def _first_two_signs(s: Situation) -> Fields:
    return {"opening": Piece("sign", s.found.text[:2], s.found.start, s.found.start + 2)}


SPELLING = (
    Habit("PATTERN SEQ(A a, B b) /* WITHIN 5 MINUTES", found="<unclosed_comment>", when=_first_two_signs, at="opening",
          message="The comment is not closed.", hint="close it with `*/`."),
    Habit("PATTERN A a WHERE a.x = 'abc", found="<unclosed_string>",
          message="The string is not closed.", hint="close it with `'`; a quote inside a string is doubled: 'it''s'."),
    Habit("PATTERN A a WHERE a.x = 'it's' AND a.y = 1", "PATTERN A a WHERE a.x = 'abc AND a.y = 'def'",
          before="<string>", found="<word> <number>", when=touches, at="before found",
          message="{found.described} follows directly on a string.",
          hint="is a quote missing or too many? A quote inside a string is doubled: 'it''s'."),
    Habit("PATTERN SEQ(`` a, B b)", found="<unclosed_backquote>",
          when=lambda s: s.found.text.startswith("``") and _first_two_signs(s), at="opening",
          message="There is no name between the backquotes.", hint="write the name: `PM2.5`."),
    Habit("PATTERN SEQ(`A a, B b)", found="<unclosed_backquote>",
          message="The name is not closed.", hint="close it with a backquote, on the same line."),
    Habit("PATTERN A a WHERE a.x = \u2018abc\u2019", found="<curly_quote>",
          message="{found} is a typographic quote.", hint="write strings in straight single quotes: 'abc'."),
)  # fmt: skip

# Signs that other languages have.
_FOREIGN = {
    "== ===": ("Equality is written with a single `=`.", "write `=`."),
    "!==": ("Inequality is written `!=`.", "write `!=` or `<>`."),
    "<=>": ("There is no `<=>`.", "write `a.x = b.x OR (a.x IS NULL AND b.x IS NULL)`."),
    "&& &": ("Conditions are joined by a word.", "write AND."),
    "|": ("Conditions are joined by a word.", "write OR."),
    "!": ("Negation is written as a word.", "write NOT."),
    "=>": ("There is no `=>`.", "write `>=` for greater or equal."),
    "=<": ("There is no `=<`.", "write `<=` for less or equal."),
    ":=": ("There is no `:=`.", "compare with `=`; name a RETURN column with AS."),
    "::": ("There are no casts in a pattern.", "prepare the column in the DataFrame."),
    "^": ("There is no operator `^`.", "write POWER(x, 2)."),
    "~": ("There is no operator `~`.", "write LIKE with % and _, or NOT for negation."),
    "$": ("Names do not carry a `$`.", "leave it out, or put the whole name in backquotes."),
    "@": ("`@` means nothing here.", "a name with other signs than letters, digits and _ stands in backquotes."),
    "// #": ("Comments do not begin with `{found}`.", "begin a comment with `--`, or put it in /* … */."),
}

FOREIGN = (
    Habit("PATTERN SEQ(A a && B b)", "PATTERN A a & B b", clause="PATTERN", found="&& &",
          message="Patterns are joined by an operator before them.", hint="write AND(A a, B b)."),
    Habit("PATTERN SEQ(A a | B b)", clause="PATTERN", found="|",
          message="Patterns are joined by an operator before them.", hint="write OR(A a, B b)."),
    Habit("PATTERN SEQ(A a, !B b, C c)", found="!", next="<word>", expects="element",
          when=lambda s: s.after(2).kind == "word",
          message="Negation is written as a word.", hint="write NOT {next} {next2}."),
    Habit("PATTERN SEQ(A a, !(B b), C c)", "PATTERN SEQ(A a, !B, C c)", found="!", expects="element",
          message="Negation is written as a word.", hint="write NOT {next|B b}."),
    *(Habit(*(f"PATTERN A a WHERE a.x {sign} 5" for sign in signs.split()), found=signs, message=message, hint=hint)
      for signs, (message, hint) in _FOREIGN.items()),
)  # fmt: skip


# --- durations ----------------------------------------------------------------------------------------------------

_UNITS = {
    "M": "MINUTES", "MINS": "MINUTES", "SECS": "SECONDS", "HR": "HOURS", "HRS": "HOURS", "MILLIS": "MILLISECONDS",
    "MSEC": "MILLISECONDS", "MICROS": "MICROSECONDS", "USEC": "MICROSECONDS",
}  # fmt: skip
_PLAIN = re.compile(r"\d{1,30}(\.\d{1,30})?")


def _unit_missing(s: Situation) -> bool:
    """Whether a unit is what is wrong, not something else behind a plain number of a condition."""
    word = s.found.upper
    if not s.expects("operator") or not word:
        return not s.expects("operator")
    if touches(s) and not word.startswith("_"):
        return True
    is_near = len(word) > 3 and nearest(word, durations.MICROSECONDS) is not None
    is_like = word in _UNITS or word.startswith(("MONTH", "YEAR")) or is_near
    return is_like and word not in RESERVED_IN_CONDITIONS


def _misspelt_unit(s: Situation) -> Fields | bool:
    near = _UNITS.get(s.found.upper) or nearest(s.found.text, durations.MICROSECONDS)
    return _unit_missing(s) and {"question": f"did you mean {near}? " if near else ""}


def _two_durations(s: Situation) -> Fields:
    """Both durations in one, if both can be read."""
    number, unit = s.tokens[-2:]
    hint = "add them up into one unit."
    if s.after().upper in durations.MICROSECONDS and _PLAIN.fullmatch(number) and _PLAIN.fullmatch(s.found.text):
        parts = [durations.to_microseconds(number, unit), durations.to_microseconds(s.found.text, s.after().upper)]
        hint = f"write {durations.describe(sum(part or 0 for part in parts))}." if all(parts) else hint
    return {"number": number, "sum": hint}


DURATIONS = (
    Habit("PATTERN A a WITHIN INTERVAL '15 minutes'", after="STRING", expects="UNIT",
          when=lambda s: not re.fullmatch(r"'-?\d+(\.\d+)?'", s.last), at="last",
          message="The string after INTERVAL is a plain number; the unit stands behind it.",
          hint="write INTERVAL '5' MINUTE, or simply 5 MINUTES."),
    Habit("PATTERN A a WITHIN 3 months", "PATTERN A a WHERE a.x < 2 years", found="<word>", expects="UNIT",
          when=lambda s: s.found.upper.startswith(("MONTH", "YEAR", "QUARTER")) and _unit_missing(s),
          message="Months and years have no fixed length.", hint="write the number of DAYS or WEEKS."),
    Habit("PATTERN A a WITHIN 15 mintes", "PATTERN A a WITHIN 15m", "PATTERN A a WHERE a.x < 5 mintes", found="<word>",
          unlike=f"{CLAUSE} AND OR", expects="UNIT", when=_misspelt_unit,
          message="`{found}` is not a unit of time.",
          hint="{question}Units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and WEEKS."),
    Habit("PATTERN A a WITHIN 15", "PATTERN A a WITHIN 15 WHERE a.x > 5", "PATTERN A a WITHIN INTERVAL '15'",
          expects="UNIT", when=lambda s: s.last and _unit_missing(s) and {"plain": s.last.strip("'")}, at="last",
          message="A unit of time is missing after {last}.",
          hint="write {plain} SECONDS, {plain} MINUTES or {plain} HOURS."),
    Habit("PATTERN A a WITHIN 5 MINUTES, 1 MINUTE", "PATTERN A a WITHIN (5 MINUTES 1 MINUTE)", clause="WITHIN",
          after="NUMBER,UNIT", found=", <number>", when=lambda s: s.found.text == "," or s.bracket,
          message="A window with a slide stands in parentheses, with a comma between.",
          hint="write WITHIN (5 MINUTES, 1 MINUTE); every match is reported once whatever the slide."),
    Habit("PATTERN A a WITHIN 1 HOUR 30 MINUTES", after="NUMBER,UNIT", found="<number>", when=_two_durations,
          at="number next",
          message="A duration is one number and one unit.", hint="{sum}"),
    Habit("PATTERN A a WITHIN '15' MINUTES", clause="WITHIN", found="<string>", expects="_INTERVAL",
          message="Expected a duration, but found {found.described}.",
          hint="write {found.content} {next.upper|MINUTES}, or INTERVAL {found} {next.upper|MINUTES}."),
    Habit("PATTERN A a WITHIN MINUTES 15", "PATTERN A a WITHIN a.x", clause="WITHIN", unlike="<clause>",
          expects="_INTERVAL",
          message="Expected a duration such as 15 MINUTES, but found {found.described}.",
          hint="a duration is a number and a unit: 10 SECONDS, 1.5 HOURS, 7 DAYS."),
    Habit("PATTERN A a WITHIN 15 MINUTES AND a.x > 5", clause="WITHIN", found="AND OR", expects="clause",
          message="{found.upper} cannot follow WITHIN.",
          hint="conditions belong to WHERE, all of them; WITHIN takes a duration only."),
)  # fmt: skip


# --- clauses ------------------------------------------------------------------------------------------------------

_CLAUSE_EXAMPLES = {
    "PARTITION": "PARTITION BY user", "WHERE": "WHERE a.user = b.user", "WITHIN": "WITHIN 10 MINUTES",
    "SEMANTICS": "SEMANTICS next", "OUTPUT": "OUTPUT longest", "RETURN": "RETURN a.user, COUNT(b) AS n",
    "GROUP": "GROUP BY a.user", "HAVING": "HAVING COUNT(*) > 3", "EVERY": "EVERY 10 MINUTES",
}  # fmt: skip


def _empty_clause(s: Situation) -> Fields | bool:
    if s.clause not in _CLAUSE_EXAMPLES or s.last_type not in {f"_{s.clause}", "_BY"}:
        return False
    return {"title": s.clause + (" BY" if s.last_type == "_BY" else ""), "example": _CLAUSE_EXAMPLES[s.clause]}


def _key(s: Situation) -> Fields:
    """The key meant in `PARTITION a.user` or `GROUP a.user`."""
    name = s.found.text if s.found.kind == "word" else "user"
    if name.upper() in {"ON", "KEY", "OVER", *RESERVED_IN_CONDITIONS}:
        name = "user"
    if s.after().text == "." and s.after(2).kind == "word":
        name = {"PARTITION": s.after(2).text, "GROUP": f"{name}.{s.after(2).text}"}.get(s.clause, name)
    return {"name": name}


CLAUSES = (
    Habit("PATTERN A a RETURN WITHIN 5 MINUTES", "PATTERN A a WHERE", "PATTERN A a PARTITION BY WITHIN 5 MINUTES",
          found="<clause>", when=_empty_clause, at="last",
          message="{title} is empty.", hint="write something like `{example}`, or leave {title} out."),
    Habit("PATTERN A a PARTITION a.user", "PATTERN A a RETURN COUNT(*) GROUP a.user", only="_BY", when=_key,
          message="BY is missing after {clause}.", hint="write {clause} BY {name}."),
    Habit("PATTERN A a WHERE [a.user]", found=".", inside="[", only="RSQB COMMA", expects="RSQB", at="before next",
          message="[…] names an attribute that all events have, without a variable.", hint="write [{next|user}]."),
    Habit("PATTERN A a WHERE [user[1]]", found="[", inside="[", only="RSQB COMMA", expects="RSQB", at="before found",
          message="[…] names an attribute that all events have, without a variable.", hint="write [{next|user}]."),
    Habit("PATTERN A a PARTITION BY a.user", clause="PARTITION", found=".", at="before next",
          message="PARTITION BY names an attribute that all events have, without a variable.",
          hint="write PARTITION BY {next|user}."),
    Habit("PATTERN A a PARTITION BY [user]", clause="PARTITION", found="[", at="before found",
          message="PARTITION BY names an attribute that all events have, without a variable.",
          hint="write PARTITION BY {next|user}."),
    Habit("PATTERN A a PARTITION BY case", "PATTERN A a PARTITION BY user, end", found=RESERVED, unlike="<clause>",
          expects="NAME", lacks="value",
          message="`{found}` is a keyword here.", hint="as a name it stands in backquotes: `{found}`."),
    Habit("PATTERN A a RETURN DISTINCT a.x", after="_RETURN", found="DISTINCT",
          message="RETURN gives one row per match and merges none.",
          hint="drop DISTINCT; call distinct() on the result, or aggregate with GROUP BY."),
    Habit("PATTERN A a RETURN a.*", clause="RETURN", before=".", found="*", at="before2 found",
          message="There is no `*` for attributes.", hint="write `{before2|a}` alone for the whole event."),
    Habit("PATTERN A a RETURN *", "PATTERN A a RETURN a.x, *", clause="RETURN", after="_RETURN COMMA", found="*",
          message="RETURN does not take `*`.",
          hint="leave RETURN out to get every variable, or name them: RETURN a, b."),
)  # fmt: skip

ALIASES = (
    Habit("PATTERN A a RETURN SUM(a.x) total, a.y", clause="RETURN", found="<word> <quoted>",
          next=f", ; <end> {CLAUSE}", expects="_AS",
          message="The name of a column follows AS.", hint="write AS {found}."),
)  # fmt: skip


# --- values and conditions ----------------------------------------------------------------------------------------

_JOINTS = "AND OR LIKE BETWEEN IN IS"
_ARITHMETIC = "PLUS MINUS STAR SLASH PERCENT CONCAT"
# Pieces that show that no operand follows.
_ENDING = "AND OR ∧ ∨ ) ] , ; THEN WHEN ELSE END AS <clause>"


def _index(s: Situation) -> Fields | bool:
    """The brackets of an index, and its forms."""
    if s.clause == "PATTERN" or s.head is None or s.head.upper in RESERVED_IN_CONDITIONS:
        return False
    b, ranges = s.head.text, "ranges of events are not supported; " if ".." in {s.found.text, s.after().text} else ""
    forms = f"{ranges}write {b}[i], {b}[i-1], {b}[3], {b}[first] or {b}[last]; plain {b} means every event."
    return {"forms": forms, "attribute": quoted(s.found.content)}


def _constant(s: Situation) -> Fields:
    is_constant = s.found.kind in {"number", "string"} or s.found.upper in {"TRUE", "FALSE"}
    return {"constant": s.found.text if is_constant else "5"}


def _values_of_in(s: Situation) -> Fields:
    values: list[str] = []
    while (value := s.after(2 * len(values))).kind in {"number", "string"} and len(values) < 10:
        values.append(value.text)
        if s.after(2 * len(values) - 1).text != ",":
            break
    return {"values": ", ".join(values) or "1, 2"}


def _is_joint(s: Situation) -> bool:
    return len(s.found.text) > 1 and s.after().text != "."


INDICES = (
    Habit("PATTERN B+ b WHERE b[i+].x > 5", after="PLUS MINUS", inside="[", expects="INT|RSQB", when=_index,
          message="A number is missing after `{last}`.", hint="{forms}"),
    Habit("PATTERN B+ b WHERE b[", found="<end>", inside="[", expects="INT|RSQB", when=_index,
          message="The index of {head} is not closed.", hint="{forms}"),
    Habit("PATTERN A a WHERE a['x'] > 5", 'PATTERN A a WHERE a["x"] > 5', found="<string> <double_quoted>", inside="[",
          expects="INT|RSQB", when=_index,
          message="An attribute follows its variable after a dot.", hint="write {head}.{attribute}."),
    Habit("PATTERN B+ b WHERE b[*].x > 5", "PATTERN B+ b WHERE b[1:3].x > 5", "PATTERN B+ b WHERE b[..i-1].x > 5",
          inside="[", expects="INT|RSQB", when=_index,
          message="{found.described} cannot stand in an index.", hint="{forms}"),
)  # fmt: skip

VALUES = (
    Habit("PATTERN A a WHERE a -> a.x", found="->", message="There is no `->`.", hint="write a.x for an attribute."),
    Habit("PATTERN A a WHERE a.x > 10,000", after="NUMBER", found=",", next="<number>", at="last next",
          when=lambda s: touches(s) and s.after().start == s.found.end and len(s.after().text) == 3,
          message="Numbers are written without separators.", hint="write {last}{next}."),
    Habit("PATTERN A a WHERE a.x > 1_000", after="NUMBER", at="last found",
          when=lambda s: s.found.text.startswith("_") and {"plain": s.written(s.last, s.found).replace("_", "")},
          message="Numbers are written without `_`.", hint="write {plain}."),
    Habit("PATTERN A a WHERE a.x > .5", found=".", next="<number>", expects="value", at="found next",
          message="A number begins with a digit.", hint="write 0.{next}."),
    Habit("PATTERN B+ b WHERE NEXT(b.x) > 5", after="NEXT,LPAR,NAME NEXT,LPAR,QUOTED", found=".",
          message="NEXT takes a variable; the attribute follows the parenthesis.", hint="write NEXT({last}).{next}."),
    *INDICES,
    Habit("PATTERN A a WHERE a.x IS 5", after="_IS", when=_constant,
          message="Expected NULL or NOT NULL after IS, {but_found}.",
          hint="IS only asks for NULL; to compare, write `= {constant}`."),
    Habit("PATTERN A a WHERE a.x IS NOT 'abc'", after="_IS,NOT", when=_constant,
          message="Expected NULL after IS NOT, {but_found}.",
          hint="IS only asks for NULL; to compare, write `!= {constant}`."),
    Habit("PATTERN A a WHERE a.x IN 5", "PATTERN A a WHERE a.x IN [1, 2]", after="_IN", when=_values_of_in,
          message="The values of IN stand in parentheses.", hint="write IN ({values})."),
    Habit("PATTERN A a WHERE a.x BETWEEN 1, 2", "PATTERN A a WHERE a.x BETWEEN 1 TO 2", expects="AND",
          lacks="COMPARISON OR", when=lambda s: any(token.type == "_BETWEEN" for token in s.tokens),
          message="Expected AND between the two ends of BETWEEN, {but_found}.",
          hint="write BETWEEN 1 AND 2; both ends are included."),
    Habit("PATTERN A a WHERE a.x LIKE a.y", after="_LIKE",
          message="Expected a string after LIKE, {but_found}.",
          hint="write LIKE 'abc%'; % stands for any text, _ for one character."),
    Habit("PATTERN A a WHERE a.x RLIKE 'ab+'", found="RLIKE ILIKE REGEXP REGEXP_LIKE MATCHES SIMILAR",
          expects="operator",
          message="There is no {found.upper}.",
          hint="write LIKE 'abc%'; for regular expressions add a column to the DataFrame beforehand."),
    Habit("PATTERN B+ b WHERE b[i] > 5", after="RSQB", only="DOT",
          message="An attribute is missing before {found.described}.", hint="name one, as in b[i].x."),
    Habit("PATTERN B+ b WHERE NEXT(b) > 5", only="DOT",
          message="An attribute is missing before {found.described}.", hint="name one, as in NEXT(b).x."),
    Habit("PATTERN A a WHERE a.2nd > 5", after="DOT", found="<number>", expects="WORD", when=tail,
          message="Expected the name of an attribute after `.`, {but_found}.",
          hint="a name that begins with a digit stands in backquotes: `{name}`."),
    Habit("PATTERN A a WHERE a. > 5", after="DOT", expects="WORD",
          message="Expected the name of an attribute after `.`, {but_found}.",
          hint="name one, as in a.x; a name that is no plain word stands in backquotes."),
    *(Habit(f"PATTERN A a RETURN CASE {rest}",
            found="<clause> ELSE END WHEN THEN", expects=f"_{word}",
            message=f"{word} is missing before {{found.described}}.",
            hint="write CASE WHEN condition THEN value ELSE value END.")
      for word, rest in (("THEN", "WHEN a.x > 5 ELSE 0 END"), ("END", "WHEN a.x > 5 THEN 1"), ("WHEN", "a.x ELSE 0"))),
    Habit("PATTERN A a WHERE a.x > AND a.y = 3", "PATTERN A a WHERE a.x +", after=f"COMPARISON {_ARITHMETIC}",
          found=f"{_ENDING} <sign>", expects="value", at="last",
          message="A value is missing between `{last}` and {found.described}.",
          hint="write one there, as in `a.x {last} 5`."),
    Habit("PATTERN A a WHERE a.x > 5 AND WITHIN 5 MINUTES", "PATTERN A a WHERE NOT", after="AND OR NOT", found=_ENDING,
          expects="value", at="last",
          message="A condition is missing between `{last}` and {found.described}.",
          hint="write one there, or remove {last.upper}."),
    Habit("PATTERN A a WHERE AND a.x > 5", found="AND OR ∧ ∨", expects="value", when=lambda s: s.last is not None,
          message="A condition is missing before {found.text.upper}.", hint="remove the word, or write what it joins."),
    Habit("PATTERN A a WHERE end > 5", found=RESERVED, unlike=CLAUSE, expects="value",
          message="`{found}` is a keyword and cannot begin a value.",
          hint="as a name it stands in backquotes: `{found}`."),
    Habit("PATTERN A a WHERE 1 < a.x < 5", found=COMPARISONS, expects="operator", lacks="COMPARISON",
          message="Comparisons do not chain.",
          hint="write `1 < a.x AND a.x < 5`, or BETWEEN; to compare with a condition, put it in parentheses."),
    Habit("PATTERN A a WHERE CAST(a.x AS int) > 5", found="AS", inside="CAST( TRY_CAST(", expects="RPAR", at="head",
          message="There are no casts in a pattern.", hint="prepare the column in the DataFrame."),
    Habit("PATTERN A a WHERE a.d > DATE 2026-01-01", before="DATE", found="<number>",
          message="A {before.text.lower} stands in quotes.", hint="write DATE '2026-01-31'."),
    Habit("PATTERN A a WHERE a.ts > TIMESTAMP 2026-01-01", before="TIMESTAMP", found="<number>",
          message="A {before.text.lower} stands in quotes.", hint="write TIMESTAMP '2026-01-31 08:30:00'."),
    Habit("PATTERN A a WHERE a.x > 5 ADN a.y > 5", found="<word>", unlike=RESERVED, near=_JOINTS, expects="operator",
          lacks="COMPARISON", when=_is_joint,
          message="AND or OR is missing before {found.described}.", hint="did you mean {near}?"),
    Habit("PATTERN A a WHERE a.x LIKEE 'abc%'", found="<word>", unlike=RESERVED, near=_JOINTS, expects="operator",
          when=_is_joint,
          message="An operator is missing before {found.described}.", hint="did you mean {near}?"),
    Habit("PATTERN A a WHERE a.x IN (1 2)", "PATTERN A a RETURN a.x b.x", found="<word> <number> <string> <quoted>",
          unlike=RESERVED, expects="operator COMMA", when=lambda s: s.found.kind != "word" or not s.unclosed,
          message="A comma is missing before {found.described}.", hint="separate the values by commas."),
    Habit("PATTERN A a WHERE a.x > 5 a.y > 5", found="<word> <number> <string> <quoted>", unlike=RESERVED,
          expects="operator", lacks="COMPARISON",
          message="AND or OR is missing before {found.described}.", hint="join conditions with AND or OR."),
    Habit("PATTERN A a WHERE a.x a.y", found="<word> <number> <string> <quoted>", unlike=RESERVED, expects="operator",
          message="An operator is missing before {found.described}.",
          hint="compare with =, <, >, …; join conditions with AND or OR."),
)  # fmt: skip


# --- commas and brackets, when nothing else explains the mistake ---------------------------------------------------


def is_closable(s: Situation) -> bool:
    """Whether the innermost open bracket could be closed here."""
    return s.bracket is not None and {"(": "RPAR", "[": "RSQB", "{": "RBRACE"}[s.bracket.text] in s.accepts


COMMAS = (
    Habit("PATTERN SEQ(A a,, B b)", "PATTERN SEQ(A a, )", "PATTERN A a RETURN a.x, WITHIN 5 MINUTES", before=",",
          found=", ) ] ; <clause>", expects="element|value|NAME|WORD", at="before",
          message="Nothing stands between `{before}` and {found.described}.",
          hint="remove the comma, or write what is missing."),
    Habit("PATTERN SEQ(, A a)", before="(", found=",", expects="element|value|NAME|WORD",
          message="Nothing stands between `{before}` and {found.described}.",
          hint="remove the comma, or write what is missing."),
)  # fmt: skip

STRAY_BRACKETS = (
    Habit("PATTERN SEQ(A a, B b)) WITHIN 5 MINUTES", found=") ] }", inside="none",
          message="This `{found}` closes nothing.", hint="remove the `{found}`."),
    Habit("PATTERN SEQ(A a, B b] WITHIN 5 MINUTES", found=") ] }",
          when=lambda s: CLOSING[s.bracket.text] != s.found.text, also=("opened", "bracket"),
          message="`{found}` cannot close `{bracket}`.", hint="write `{closing}`."),
)  # fmt: skip

JOINED_BY_COMMAS = (
    Habit("PATTERN A a WHERE a.x > 5, a.y < 3", clause="WHERE HAVING", found=",", inside="none", expects="operator",
          message="Conditions are joined by AND, not by a comma.", hint="write AND instead of `,`."),
)  # fmt: skip
