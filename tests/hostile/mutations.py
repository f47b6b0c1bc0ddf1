"""Mutated texts of the three languages: good and bad sentences, cut, doubled, joined, with foreign pieces."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.hostile.child import Text

from tocsin.testing.cases import load_cases

TESTS = Path(__file__).parents[1]
PIECE = re.compile(r"\s+|\w+|'[^']*'|`[^`]*`|.", re.DOTALL)
INTRUDERS = [
    *"()[]{},.;:+*?=<>-/%!&|@#'`¬∧∨≠\"\u2018\0\u2028\ufeff\t\n",
    *["==", "&&", "=>", "<-", "..", "//", "/*", "*/", "--", "@+", "<>", "||", "''", '""', "``", "` `", "'%'", "\ud800"],
    *["SEQ", "AND", "OR", "NOT", "WHERE", "WITHIN", "RETURN", "AS", "BY", "PER", "CASE", "WHEN", "THEN", "ELSE", "END"],
    *["NEXT", "INTERVAL", "SEMANTICS", "TIMESTAMP", "DATE", "FILTER", "PROJECT", "AGG", "GROUP BY", "HAVING", "EVERY"],
    *[
        "AFTER MATCH SKIP PAST LAST",
        "OUTPUT longest",
        "PARTITION BY",
        "WITH TIMEOUTS",
        "IN",
        "IS NULL",
        "BETWEEN",
        "LIKE",
    ],
    *["template", "rule", "where", "when", "then", "emit", "at", "with", "no", "all", "use", "pattern", "select next"],
    *["same(x)", "increasing(x)", "COUNT(*)", "SUM(a.x)", "AVG(b.x)", "FIRST(a.x)", "stddev(b.x)", "greatest(a.x, 1)"],
    *["a", "b", "a.x", "b.x", "b[i].x", "b[i-1].x", "b[last].x", "b[0].x", "a.", ".x", "[x]", "+ a", "B{2,3} b", "A*"],
    *["0", "5", "-5", "5.5", "1e308", "1e999", "9223372036854775807", "9" * 25, "5 MINUTES", "0 SECONDS", "1.5 us"],
    *["'text'", "TRUE", "NULL", "TIMESTAMP '2026-01-01'", "DATE '9999-99-99'", "INTERVAL '1' DAY", "{0}", "{1000000}"],
]


@cache
def sentences(language: str) -> tuple[str, ...]:
    """Sentences that tests know and that parse, with right and wrong meanings."""
    folder = {"sase": "", "acel": "acel", "parte": "rules"}[language]
    found = _mistakes(TESTS / "analysis" / folder / "mistakes.txt")
    cases = load_cases(TESTS / "rules" / "cases" if language == "parte" else TESTS / "cases")
    found += [case.pattern for case in cases if language in ("parte", case.language)]
    if language == "parte":
        found = [_with_templates(text) for text in found]
    return tuple(dict.fromkeys(text for text in found if text.strip()))


def _with_templates(text: str) -> str:
    """The rules with templates of what they read, so that they mean something."""
    kinds = dict.fromkeys(re.findall(r":\s*([A-Z]\w*)|emit\s+(\w+)", re.sub(r"template[^}]*}", "", text)))
    names = {name for pair in kinds for name in pair if name}
    missing = sorted(name for name in names if not re.search(rf"(template|pattern)\s+{name}\b", text))
    slots = ", ".join(f"{name} : Integer" for name in ("x", "y", "k", "id", "amount", "account"))
    return "".join(f"template {name} {{ {slots} }}\n" for name in missing) + text


@cache
def seeds(language: str) -> tuple[str, ...]:
    """Sentences, and texts that are none."""
    folder = {"sase": "", "acel": "acel", "parte": "partelang"}[language]
    found = [path.read_text("utf-8") for path in sorted((TESTS / "rules").rglob("*.parte")) if language == "parte"]
    return (*sentences(language), *found, *_mistakes(TESTS / "language" / folder / "mistakes.txt"))


def _mistakes(path: Path) -> list[str]:
    return [block.partition("\n")[2] for block in re.split(r"\n\n(?=# )", path.read_text("utf-8"))]


@cache
def pieces_by_class(language: str) -> dict[str, tuple[str, ...]]:
    """All pieces of all sentences: what may replace a piece without breaking the grammar at once."""
    found: dict[str, dict[str, None]] = {}
    for text in (*seeds(language), *INTRUDERS):
        for piece in PIECE.findall(text):
            found.setdefault(_class_of(piece), {})[piece] = None
    return {kind: tuple(pieces) for kind, pieces in found.items()}


def _class_of(piece: str) -> str:
    kinds = {"number": piece.isdecimal(), "upper": piece.isupper(), "lower": piece.isalpha(), "blank": piece.isspace()}
    return next((kind for kind, holds in kinds.items() if holds), piece[:1] if piece[:1] in "'`" else "sign")


def mutated(language: str, number: int, seed: int) -> Iterator[Text]:
    """So many texts, the same for the same seed."""
    chance = random.Random(f"{language} {seed}")
    for _ in range(number):
        is_gentle = chance.random() < 0.6
        pieces = PIECE.findall(chance.choice((sentences if is_gentle else seeds)(language)))
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            if is_gentle and pieces:
                at = chance.randrange(len(pieces))
                kind = _class_of(pieces[at])
                others = pieces if chance.random() < 0.5 else pieces_by_class(language)[kind]
                pieces[at] = chance.choice([other for other in others if _class_of(other) == kind])
            else:
                pieces = _changed(pieces, language, chance)
        yield Text(language, "".join(pieces)[:20_000])


def _changed(pieces: list[str], language: str, chance: random.Random) -> list[str]:
    at, end = sorted(chance.choices(range(len(pieces) + 1), k=2))
    end = min(end, at + 8)
    match chance.randrange(9):
        case 0:
            return pieces[:at] + pieces[end:]
        case 1:
            return pieces[:at]
        case 2:
            return pieces[:end] + pieces[at:]
        case 3:
            return [*pieces[:at], *(pieces[at:end] * chance.choice((2, 3, 40))), *pieces[end:]]
        case 4:
            other = PIECE.findall(chance.choice(seeds(language)))
            cut = chance.randrange(len(other) + 1)
            return pieces[:at] + other[cut:]
        case 5:
            middle = pieces[at:end]
            chance.shuffle(middle)
            return pieces[:at] + middle + pieces[end:]
        case 6:
            return [*pieces[:at], " ", chance.choice(INTRUDERS), " ", *pieces[end:]]
        case 7:
            opening, closing = chance.choice(["()", "[]", "{}", "''", "``", ("(", ")" * 30), ("((((((((", "))))))))")])
            return [*pieces[:at], opening, *pieces[at:end], closing, *pieces[end:]]
        case _:
            return [*pieces[:at], " ", chance.choice(INTRUDERS), " ", *pieces[at:]]
