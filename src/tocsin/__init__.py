"""Complex event recognition for Apache Spark: find sequences of events in the tables you already have.

>>> import tocsin
>>> p = tocsin.pattern("PATTERN SEQ(Login a, Transfer b) WHERE a.user = b.user WITHIN 10 MINUTES")
>>> matches = p.match({"Login": logins, "Transfer": transfers})  # doctest: +SKIP

`match` takes Spark DataFrames and gives one; `p.check(schemas)` and `p.explain()` report on a pattern without running
it; `p.analyze(inputs)` measures the data for a better plan, as `Statistics`; `tocsin.reference.evaluate` runs any
pattern on plain Python rows, slowly. `tocsin.rules` compiles a program of rules, which read each other's events.
`tocsin.acer` has operators for functions of your own over windows, sequences and states.
Importing Tocsin imports neither Spark nor NumPy.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tocsin import reference, sinks
from tocsin.api import Pattern, pattern
from tocsin.errors import TocsinError, TocsinWarning
from tocsin.feasibility import Feasibility, feasibility
from tocsin.language import builder
from tocsin.language.builder import absent, all_of, any_of, col, event, lit, seq
from tocsin.language.user_defined import Monoid, function
from tocsin.optimizer.statistics import Statistics
from tocsin.rule_api import Rules, rules

if TYPE_CHECKING:
    from tocsin import acer
    from tocsin.progress import Progress, TocsinListener

__version__ = "0.1.0"

__all__ = [
    "Feasibility",
    "Monoid",
    "Pattern",
    "Progress",
    "Rules",
    "Statistics",
    "TocsinError",
    "TocsinListener",
    "TocsinWarning",
    "absent",
    "acer",
    "all_of",
    "any_of",
    "builder",
    "col",
    "event",
    "feasibility",
    "function",
    "lit",
    "pattern",
    "reference",
    "rules",
    "seq",
    "sinks",
]


def __getattr__(name: str) -> Any:
    """Import what needs Spark when it is used."""
    if name in ("Progress", "TocsinListener"):
        from tocsin import progress

        return getattr(progress, name)
    if name == "acer":
        return importlib.import_module("tocsin.acer")
    raise AttributeError(f"module `tocsin` has no attribute `{name}`")
