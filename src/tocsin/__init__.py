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

from tocsin.api import Pattern, pattern
from tocsin.errors import TocsinError, TocsinWarning
from tocsin.feasibility import Feasibility, feasibility
from tocsin.language import builder
from tocsin.language.builder import absent, all_of, any_of, col, event, lit, seq
from tocsin.language.user_defined import Monoid, function
from tocsin.optimizer.statistics import Statistics

if TYPE_CHECKING:
    from tocsin import acer, reference, sinks
    from tocsin.progress import Progress, TocsinListener
    from tocsin.rule_api import Rules, rules

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


# What is imported when it is used, because it needs Spark or not everybody needs it: modules, and names in modules.
LAZY = {
    **dict.fromkeys(("acer", "reference", "sinks")),
    **dict.fromkeys(("Progress", "TocsinListener"), "progress"),
    **dict.fromkeys(("Rules", "rules"), "rule_api"),
}


def __getattr__(name: str) -> Any:
    """Import what was not needed before."""
    if name not in LAZY:
        raise AttributeError(f"module `tocsin` has no attribute `{name}`")
    module = importlib.import_module(f"tocsin.{LAZY[name] or name}")
    found = getattr(module, name) if LAZY[name] else module
    globals()[name] = found
    return found
