"""Habits in durations: units left out, misspelt or too many; what does not belong to WITHIN."""

from __future__ import annotations

import re

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language import durations
from tocsin.language.sase.messages.situation import Piece, Situation
from tocsin.language.sase.words import CLAUSES, RESERVED_IN_CONDITIONS

UNIT_HABITS = {
    "M": "MINUTES",
    "MINS": "MINUTES",
    "SECS": "SECONDS",
    "HR": "HOURS",
    "HRS": "HOURS",
    "MILLIS": "MILLISECONDS",
    "MSEC": "MILLISECONDS",
    "MICROS": "MICROSECONDS",
    "USEC": "MICROSECONDS",
}

PLAIN = re.compile(r"\d{1,30}(\.\d{1,30})?")


def unit(s: Situation) -> QuerySyntaxError | None:
    """`WITHIN 15`, `15 minuts`, `3 MONTHS`, `INTERVAL '5 minutes'`."""
    if "UNIT" not in s.accepts or s.last is None:
        return None
    is_word = s.found.kind == "word"
    joined = s.found.start == s.last.end_pos and not s.found.text.startswith("_")
    if s.expects_operator and not (is_word and (_unit_like(s.found) or joined)):
        return None  # a plain number in a condition, and some other mistake behind it
    number = str(s.last)
    if s.last.type == "STRING" and not re.fullmatch(r"'-?\d+(\.\d+)?'", number):
        return s.error(
            "The string after INTERVAL is a plain number; the unit stands behind it.",
            "write INTERVAL '5' MINUTE, or simply 5 MINUTES.",
            at=s.last,
        )
    if is_word and s.found.upper.startswith(("MONTH", "YEAR", "QUARTER")):
        return s.error("Months and years have no fixed length.", "write the number of DAYS or WEEKS.")
    if is_word and s.found.upper not in CLAUSES and s.found.upper not in {"AND", "OR"}:
        near = UNIT_HABITS.get(s.found.upper) or nearest(s.found.text, durations.MICROSECONDS)
        question = f"did you mean {near}? " if near else ""
        return s.error(
            f"`{s.found.text}` is not a unit of time.",
            f"{question}Units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and WEEKS.",
        )
    plain = number.strip("'")
    return s.error(
        f"A unit of time is missing after {number}.",
        f"write {plain} SECONDS, {plain} MINUTES or {plain} HOURS.",
        at=s.last,
    )


def _unit_like(piece: Piece) -> bool:
    upper = piece.upper
    if upper in RESERVED_IN_CONDITIONS:
        return False
    return (
        upper in UNIT_HABITS
        or upper.startswith(("MONTH", "YEAR"))
        or (len(upper) > 3 and nearest(piece.text, durations.MICROSECONDS) is not None)
    )


def second_number(s: Situation) -> QuerySyntaxError | None:
    """`WITHIN 1 HOUR 30 MINUTES`."""
    if not s.read("NUMBER", "UNIT"):
        return None
    if s.clause == "WITHIN" and (s.found.text == "," or (s.found.kind == "number" and s.unclosed)):
        return s.error(
            "A window with a slide stands in parentheses, with a comma between.",
            "write WITHIN (5 MINUTES, 1 MINUTE); every match is reported once whatever the slide.",
        )
    if s.found.kind != "number":
        return None
    number, first_unit = s.tokens[-2:]
    hint = "add them up into one unit."
    if s.after().upper in durations.MICROSECONDS and PLAIN.fullmatch(number) and PLAIN.fullmatch(s.found.text):
        parts = [
            durations.to_microseconds(number, first_unit),
            durations.to_microseconds(s.found.text, s.after().upper),
        ]
        hint = f"write {durations.describe(sum(part or 0 for part in parts))}." if all(parts) else hint
    return s.error("A duration is one number and one unit.", hint, at=s.place(number, s.after()))


def no_duration(s: Situation) -> QuerySyntaxError | None:
    """`WITHIN MINUTES 15`, `WITHIN '15' MINUTES`, `WITHIN a.x`."""
    if s.clause != "WITHIN" or "_INTERVAL" not in s.accepts or s.found_clause:
        return None
    if s.found.kind == "string":
        number, unit_word = s.found.text.strip("'"), s.after().upper or "MINUTES"
        hint = f"write {number} {unit_word}, or INTERVAL {s.found.text} {unit_word}."
        return s.error(f"Expected a duration, but found {s.found.describe()}.", hint)
    return s.error(
        f"Expected a duration such as 15 MINUTES, but found {s.found.describe()}.",
        "a duration is a number and a unit: 10 SECONDS, 1.5 HOURS, 7 DAYS.",
    )


def condition_after_window(s: Situation) -> QuerySyntaxError | None:
    """`WITHIN 15 MINUTES AND a.x > 5`."""
    if s.clause != "WITHIN" or s.found.upper not in {"AND", "OR"} or not s.expects_clause:
        return None
    return s.error(
        f"{s.found.upper} cannot follow WITHIN.",
        "conditions belong to WHERE, all of them; WITHIN takes a duration only.",
    )


HABITS = (unit, second_number, no_duration, condition_after_window)
