"""Reports on a query: texts with stable headings, to be read, pasted and compared."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from tocsin.algebra.tree_text import table
from tocsin.analysis.keys import Keys
from tocsin.analysis.lifetimes import Lifetimes
from tocsin.analysis.sizes import SizeReport
from tocsin.analysis.temporal import Network
from tocsin.errors import TocsinWarning

KEYWORDS = re.compile(
    r"\b(PATTERN|SEQ|AND|OR|NOT|PARTITION BY|WHERE|WITHIN|SEMANTICS|AFTER MATCH|OUTPUT|RETURN|GROUP BY|HAVING|EVERY|"
    r"WITH TIMEOUTS|FILTER|PROJECT|AGG|NEXT|AS|IN|BETWEEN|LIKE|IS|NULL|CASE|WHEN|THEN|ELSE|END)\b",
    re.IGNORECASE,
)


class Shown:
    """Shows itself as its text, at a Python prompt and in notebooks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Report(Shown, str):
    """A text that shows itself as it is."""

    __slots__ = ()


def sections(parts: dict[str, str]) -> str:
    """Texts under headings in Spark's manner.

    Examples
    --------
    >>> print(sections({"Query": "PATTERN A a", "Keys": ""}))
    == Query ==
    PATTERN A a
    <BLANKLINE>
    == Keys ==
    none
    """
    return "\n\n".join(f"== {heading} ==\n{text.rstrip() or 'none'}" for heading, text in parts.items())


def query_html(text: str, keywords: re.Pattern[str] = KEYWORDS) -> str:
    """A query for notebooks, its keywords in bold; static, and it runs nothing.

    Examples
    --------
    >>> query_html("PATTERN A a WHERE a.x < 1")
    '<pre><b>PATTERN</b> A a <b>WHERE</b> a.x &lt; 1</pre>'
    """
    marked = keywords.sub(r"<b>\1</b>", html.escape(text.strip(), quote=False))
    return f"<pre>{marked}</pre>"


@dataclass(frozen=True, repr=False)
class CheckReport(Shown):
    """The report of `check`, made before anything runs.

    Attributes
    ----------
    columns
        The columns of the result and their types, beside `match_id`, `start` and `end`; None without schemas.
    network
        How far apart the events of a match can lie.
    lifetimes
        How long each variable's events can still matter to a live query.
    keys
        Equalities a plan may join by.
    sizes
        How much a live query has to remember, when rates are known.
    unbounded
        Two variables that may lie arbitrarily far apart, or one that repeats for ever; None when all are bounded.
    refusal
        Why Spark cannot run it yet; None when it can.
    warnings
        The warnings of the compiler.
    """

    columns: tuple[tuple[str, str], ...] | None
    network: Network
    lifetimes: Lifetimes
    keys: Keys
    sizes: SizeReport | None
    unbounded: tuple[str, str] | None
    refusal: str | None = None
    warnings: tuple[TocsinWarning, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Whether a stream could run it with finite state."""
        return self.unbounded is None

    def __str__(self) -> str:
        """The report in sections."""
        parts = {} if self.columns is None else {"Result": table(("column", "type"), list(self.columns))}
        parts |= {
            "Temporal network": str(self.network),
            "Lifetimes": f"{self.lifetimes}\n{self._boundedness()}",
            "Keys": str(self.keys),
        }
        if self.sizes is not None:
            parts["State"] = str(self.sizes)
        parts["Engines"] = "batch on Spark, reference" if self.refusal is None else f"reference only: {self.refusal}"
        if self.warnings:
            parts["Warnings"] = "\n".join(map(str, self.warnings))
        return sections(parts)

    def _boundedness(self) -> str:
        if self.unbounded is None:
            return "Bounded: a live query can forget every event in time."
        x, y = self.unbounded
        pair = f"`{x}` may repeat for ever" if x == y else f"`{x}` and `{y}` may lie arbitrarily far apart"
        return f"Unbounded: {pair}. A batch runs it, a stream would refuse it; add WITHIN."

    def to_dict(self) -> dict[str, Any]:
        """The report for tools."""
        names = [name for name in self.lifetimes.us if name not in self.lifetimes.negated]
        return {
            "ok": True,
            "columns": None if self.columns is None else dict(self.columns),
            "bounded": self.is_bounded,
            "unbounded": list(self.unbounded) if self.unbounded else None,
            "lifetimes_us": self.lifetimes.to_dict(),
            "distances_us": [
                {"from": x, "to": y, "least": least, "greatest": most}
                for i, x in enumerate(names)
                for y in names[i + 1 :]
                for least, most in [self.network.distance(x, y)]
            ],
            "keys": [str(each) for each in self.keys.classes],
            "partition": list(self.keys.partition),
            "sizes": None if self.sizes is None else self.sizes.to_dict(),
            "runs_on_spark": self.refusal is None,
            "refusal": self.refusal,
            "warnings": [warning.to_dict() for warning in self.warnings],
        }
