"""How messages quote values and names, and what they advise for a name that is not known.

Everything here stays short and never fails, whatever a user's value is.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

# Characters of a message or hint and of a value in it, and names in a list, before they are cut.
LONGEST_MESSAGE = 1_000
LONGEST_VALUE = 400
MOST_NAMES = 60


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like a mistyped one, if any is like it at all.

    >>> nearest("acount", ["account", "amount"])
    'account'
    >>> nearest("qqq", ["account"]) is None
    True
    """
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[found[0]] if found else None


@dataclass(frozen=True)
class Advice:
    """A hint that is put into words when it is read: of thousands of errors, few are shown."""

    name: str
    known: Collection[str]
    owner: str
    more: str = ""

    def __add__(self, more: str) -> Advice:
        """The advice with a further sentence."""
        return replace(self, more=self.more + more)

    def __str__(self) -> str:
        """The nearest known name, then all of them."""
        known = sorted(map(named, self.known))
        near = nearest(self.name, known)
        question = f"did you mean `{near}`? " if near else ""
        names = ", ".join(known[:MOST_NAMES]) if known else "none"
        rest = f", … and {len(known) - MOST_NAMES:,} more" if len(known) > MOST_NAMES else ""
        return question + f"{self.owner}: {names}{rest}.{self.more}"


def did_you_mean(name: object, known: Iterable[str], owner: str) -> Advice:
    """Advice for an unknown name: the nearest known one, then all of them."""
    return Advice(named(name), known if isinstance(known, Collection) else tuple(known), owner)


def shortened(text: str, most: int = LONGEST_MESSAGE) -> str:
    """A text cut in its middle, so that it can be read.

    >>> shortened("the string 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is too long", 30)
    "the string 'xxxxxxxx … s too long"
    """
    if len(text) <= most:
        return text
    behind = most // 3
    return f"{text[: most - behind]} … {text[len(text) - behind :].lstrip()}"


def shown(value: object) -> str:
    """A value as messages quote it, also one that cannot be printed.

    A class may fail at it, and so do integers of more digits than Python prints.

    >>> shown("local"), shown(10**5_000)
    ("'local'", '<int>')
    """
    try:
        return shortened(repr(value), LONGEST_VALUE)
    except Exception:
        return f"<{type(value).__name__}>"


def named(value: object) -> str:
    """A name as messages have it between backquotes; what is no text as `shown`."""
    return value if isinstance(value, str) else shown(value)


def fault(problem: Exception) -> str:
    """An exception as messages quote it, also one of a class of the user's that cannot be printed.

    >>> fault(KeyError("x"))
    "KeyError: 'x'"
    """
    return ": ".join(filter(None, (type(problem).__name__, message_of(problem))))


def message_of(problem: Exception) -> str:
    """The words of an exception; none of one that cannot be printed."""
    try:
        return str(problem)
    except Exception:
        return ""
