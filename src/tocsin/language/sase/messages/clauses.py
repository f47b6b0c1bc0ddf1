"""Habits in clauses: their names and the words inside them."""

from __future__ import annotations

import re

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.sase.messages.expected import SELECTION_SPELLINGS, keywords
from tocsin.language.sase.messages.situation import Piece, Situation
from tocsin.language.sase.words import CLAUSES, RESERVED_IN_CONDITIONS

# Clauses of other languages.
INSTEAD = {
    "WINDOW": "write WITHIN 10 MINUTES.",
    "DURING": "write WITHIN 10 MINUTES.",
    "FOR": "write WITHIN 10 MINUTES.",
    "FILTER": "write WHERE.",
    "IF": "write WHERE.",
    "WHEN": "write WHERE.",
    "ON": "write WHERE.",
    "DEFINE": "write the conditions of all variables in WHERE, joined by AND.",
    "MEASURES": "write RETURN.",
    "SELECT": "write RETURN.",
    "EMIT": "write RETURN.",
    "PROJECT": "write RETURN.",
    "KEY": "write PARTITION BY.",
    "BY": "write PARTITION BY or GROUP BY.",
    "STRATEGY": "write SEMANTICS any, next, contiguous or partition-contiguous.",
    "SELECTION": "write SEMANTICS any, next, contiguous or partition-contiguous.",
    "POLICY": "write SEMANTICS any, next, contiguous or partition-contiguous.",
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
}

EXAMPLES = {
    "PARTITION": "PARTITION BY user",
    "WHERE": "WHERE a.user = b.user",
    "WITHIN": "WITHIN 10 MINUTES",
    "SEMANTICS": "SEMANTICS next",
    "OUTPUT": "OUTPUT longest",
    "RETURN": "RETURN a.user, COUNT(b) AS n",
    "GROUP": "GROUP BY a.user",
    "HAVING": "HAVING COUNT(*) > 3",
    "EVERY": "EVERY 10 MINUTES",
}

SELECTION_HABITS = {
    "strict": "contiguous",
    "relaxed": "next",
    "followedby": "next",
    "followed-by": "next",
    "followedbyany": "any",
    "all": "any",
    "none": "any",
    "skip": "skip-till-next-match",
    "stam": "any",
    "stnm": "next",
}


def clause_misspelt(s: Situation) -> QuerySyntaxError | None:
    """`WHER`, `WITHN`, `SELECT`: a word where a clause could begin."""
    word = _clause_word(s)
    if word is None:
        return None
    message = f"There is no clause `{word.text}`."
    if word.upper in INSTEAD:
        return s.error(message, INSTEAD[word.upper], at=word)
    near = nearest(word.text, CLAUSES)
    return s.error(message, f"did you mean {near}?", at=word) if near else None


def unknown_clause(s: Situation) -> QuerySyntaxError | None:
    """Some other word behind a complete clause."""
    if s.found.kind != "word" or not s.expects_clause or s.expects_operator or s.found.upper in CLAUSES:
        return None
    if nearest(s.found.text, keywords(s)):
        return None
    return s.error(
        f"There is no clause `{s.found.text}`.",
        "the clauses are PARTITION BY, WHERE, WITHIN, SEMANTICS, AFTER MATCH, OUTPUT, RETURN, GROUP BY, "
        "HAVING, EVERY and WITH TIMEOUTS.",
    )


def _clause_word(s: Situation) -> Piece | None:
    # `PATTERN A WHER a.x > 5`: taken for the variable of A.
    behind = s.before()
    if s.clause == "PATTERN" and s.read("WORD") and behind and behind.kind == "word" and not s.unclosed:
        is_name = s.tokens[-2].type not in {"_PATTERN", "NOT"}
        close = nearest(behind.text, CLAUSES) or behind.upper in INSTEAD
        if is_name and close and s.found.kind in {"word", "number", "sign"} and s.found.upper not in CLAUSES:
            return behind
    if s.found.kind == "word" and s.expects_clause:
        return s.found
    return None


def nothing_in_clause(s: Situation) -> QuerySyntaxError | None:
    """`RETURN WITHIN …`, `WHERE` at the end: a clause without content."""
    if not s.found_clause or s.last is None or s.clause not in EXAMPLES:
        return None
    if s.last.type not in {"_" + s.clause, "_BY"}:
        return None
    title = s.clause + (" BY" if s.last.type == "_BY" else "")
    hint = f"write something like `{EXAMPLES[s.clause]}`, or leave {title} out."
    return s.error(f"{title} is empty.", hint, at=s.last)


def by_left_out(s: Situation) -> QuerySyntaxError | None:
    """`PARTITION user`, `GROUP a.user`."""
    if s.accepts != {"_BY"} or s.last is None:
        return None
    name = s.found.text if s.found.kind == "word" else "user"
    if name.upper() in {"ON", "KEY", "OVER"} | set(RESERVED_IN_CONDITIONS):
        name = "user"
    if s.clause == "PARTITION" and s.after().text == "." and s.after(2).kind == "word":
        name = s.after(2).text
    if s.clause == "GROUP" and s.after().text == "." and s.after(2).kind == "word":
        name += f".{s.after(2).text}"
    return s.error(f"BY is missing after {s.clause}.", f"write {s.clause} BY {name}.")


def qualified_key(s: Situation) -> QuerySyntaxError | None:
    """`PARTITION BY a.user`, `[a.user]`."""
    if s.found.text not in {".", "["}:
        return None
    in_brackets = bool(s.unclosed) and s.unclosed[-1].text == "[" and "RSQB" in s.accepts
    in_brackets = in_brackets and s.accepts <= {"RSQB", "COMMA"}
    if s.clause != "PARTITION" and not in_brackets:
        return None
    attribute = s.after().text if s.after().kind == "word" else "user"
    what = "[…]" if in_brackets else "PARTITION BY"
    written = f"[{attribute}]" if in_brackets else f"PARTITION BY {attribute}"
    return s.error(
        f"{what} names an attribute that all events have, without a variable.",
        f"write {written}.",
        at=s.place(s.before() or s.found, s.after() if s.found.text == "." else s.found),
    )


def keyword_for_name(s: Situation) -> QuerySyntaxError | None:
    """`PARTITION BY group`, `SKIP TO LAST end`: a reserved word as a name."""
    if "NAME" not in s.accepts or s.expects_value or s.found_clause:
        return None
    if s.found.upper not in RESERVED_IN_CONDITIONS:
        return None
    return s.error(f"`{s.found.text}` is a keyword here.", f"as a name it stands in backquotes: `{s.found.text}`.")


# --- words inside clauses -------------------------------------------------------------------------


def unknown_selection(s: Situation) -> QuerySyntaxError | None:
    """`SEMANTICS strict`, `SEMANTICS skip_till_next_match`."""
    if not s.read("_SEMANTICS") or s.found_clause:
        return None
    match = re.match(r"[\w-]+", s.source.text[s.found.start :])
    word = match.group() if match else s.found.text
    written = word.lower().replace("_", "-")
    near = SELECTION_HABITS.get(written) or nearest(written, SELECTION_SPELLINGS)
    place = s.place(Piece("word", word, s.found.start, s.found.start + max(1, len(word))))
    return s.error(
        f"There is no selection policy `{word}`.",
        (f"did you mean {near}? " if near else "") + "SEMANTICS is any, next, contiguous or partition-contiguous.",
        at=place,
    )


def unknown_output(s: Situation) -> QuerySyntaxError | None:
    """`OUTPUT frist`, `OUTPUT first PER MATCH`."""
    if s.read("_OUTPUT"):
        near = nearest(s.found.text, ["all", "first", "last", "longest", "count"])
        return s.error(
            f"Expected all, first, last, longest or count after OUTPUT, {s.but_found}.",
            f"did you mean {near}?" if near else "first and last may be followed by PER START or PER END.",
        )
    if s.read("_PER"):
        return s.error(
            f"Expected START or END after PER, {s.but_found}.",
            "matches are grouped by their first event (PER START) or by their last (PER END).",
        )
    return None


def unknown_skip(s: Situation) -> QuerySyntaxError | None:
    """`AFTER MATCH SKIP LAST`, `AFTER MATCH SKIP TO b`."""
    if s.clause != "AFTER" or s.last is None or s.expects_clause or s.read("SEMICOLON"):
        return None
    hint = "write SKIP PAST LAST EVENT, SKIP TO NEXT EVENT, SKIP TO FIRST b, SKIP TO LAST b or REUSE."
    if s.read("_TO") and s.found.kind in {"word", "quoted"}:
        hint = f"write SKIP TO FIRST {s.found.text} or SKIP TO LAST {s.found.text}."
    if s.read("_AFTER"):
        hint = "write AFTER MATCH SKIP PAST LAST EVENT, or another policy behind AFTER MATCH."
    if s.read("_SKIP") and s.found.upper == "LAST":
        hint = "write SKIP PAST LAST EVENT, or SKIP TO LAST b for a variable b."
    if s.read("_SKIP") and s.found.upper in {"NEXT", "FIRST"}:
        hint = f"write SKIP TO {s.found.upper} {'EVENT' if s.found.upper == 'NEXT' else 'b'}."
    wanted = {
        "_AFTER": "MATCH",
        "_MATCH": "SKIP or REUSE",
        "_SKIP": "PAST or TO",
        "_PAST": "LAST",
        "_TO": "NEXT, FIRST or LAST",
        "FIRST": "a variable",
        "LAST": "a variable",
    }[s.last.type]
    return s.error(f"Expected {wanted} after {s.last.upper()}, {s.but_found}.", hint)


def no_alias_word(s: Situation) -> QuerySyntaxError | None:
    """`RETURN a.x total`."""
    if s.clause != "RETURN" or "_AS" not in s.accepts or s.found.kind not in {"word", "quoted"}:
        return None
    if s.after().text not in {",", ";"} and s.after().kind != "end" and s.after().upper not in CLAUSES:
        return None
    return s.error("The name of a column follows AS.", f"write AS {s.found.text}.")


def distinct_rows(s: Situation) -> QuerySyntaxError | None:
    """`RETURN DISTINCT a.x`."""
    if not s.read("_RETURN") or s.found.upper != "DISTINCT":
        return None
    return s.error(
        "RETURN gives one row per match and merges none.",
        "drop DISTINCT; call distinct() on the result, or aggregate with GROUP BY.",
    )


def everything(s: Situation) -> QuerySyntaxError | None:
    """`RETURN *`, `RETURN a.*`."""
    if s.clause != "RETURN" or s.found.text != "*":
        return None
    behind = s.before()
    if behind and behind.text == ".":
        variable = s.before(2)
        name = variable.text if variable and variable.kind == "word" else "a"
        return s.error(
            "There is no `*` for attributes.",
            f"write `{name}` alone for the whole event.",
            at=s.place(variable or s.found, s.found),
        )
    if s.read("_RETURN") or s.read("COMMA"):
        return s.error(
            "RETURN does not take `*`.", "leave RETURN out to get every variable, or name them: RETURN a, b."
        )
    return None


HABITS = (
    nothing_in_clause,
    by_left_out,
    qualified_key,
    keyword_for_name,
    unknown_selection,
    unknown_output,
    unknown_skip,
    distinct_rows,
    everything,
    clause_misspelt,
    no_alias_word,
)
