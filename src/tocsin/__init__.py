"""Complex event recognition for Apache Spark: find sequences of events in the tables you already have.

>>> import tocsin
>>> p = tocsin.pattern("PATTERN SEQ(Login a, Transfer b) WHERE a.user = b.user WITHIN 10 MINUTES")
>>> matches = p.match({"Login": logins, "Transfer": transfers})  # doctest: +SKIP

`match` takes Spark DataFrames and gives one; `p.check(schemas)` and `p.explain()` report on a pattern without running
it; `p.analyze(inputs)` measures the data for a better plan, as `Statistics`; `tocsin.reference.evaluate` runs any
pattern on plain Python rows, slowly. `tocsin.rules` compiles a program of rules, which read each other's events.
`tocsin.acer` has operators for functions of your own over windows, sequences and states.
Importing Tocsin imports neither Spark nor NumPy, and what it exports only when it is used: tasks on Spark need none of
it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin import acer, errors, reference, sinks
    from tocsin.api import Pattern, pattern
    from tocsin.capacity import Feasibility, feasibility
    from tocsin.errors import TocsinError, TocsinWarning
    from tocsin.language import builder
    from tocsin.language.builder import absent, all_of, any_of, col, event, lit, seq
    from tocsin.language.user_defined import Monoid, function
    from tocsin.optimizer.statistics import Statistics
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
    "errors",
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

_MODULES = {
    "api": ("Pattern", "pattern"),
    "capacity": ("Feasibility", "feasibility"),
    "errors": ("TocsinError", "TocsinWarning"),
    "language.builder": ("absent", "all_of", "any_of", "col", "event", "lit", "seq"),
    "language.user_defined": ("Monoid", "function"),
    "optimizer.statistics": ("Statistics",),
    "progress": ("Progress", "TocsinListener"),
    "rule_api": ("Rules", "rules"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name, or a module, when it is used."""
    if name in _HOMES:
        globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        return globals()[name]
    module = f"{__name__}.{'language.builder' if name == 'builder' else name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise AttributeError(f"module `tocsin` has no attribute `{name}`") from None


def __dir__() -> list[str]:
    """All names, imported or not."""
    return sorted({*globals(), *__all__})
