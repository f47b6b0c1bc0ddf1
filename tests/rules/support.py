"""What the tests of rules share: the published programs and trace, small programs, short streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tests.fitting import seeded

import tocsin
from tocsin import datasets
from tocsin.algebra.programs import Program
from tocsin.testing.streams import SEEDS, Streams

HERE = Path(__file__).parent
S = 1_000_000
DAY = 24 * 3600 * S
PUBLISHED = {path.stem: path.read_text("utf-8") for path in sorted((HERE / "programs").glob("*.parte"))}
TYPES = PUBLISHED["7_1_types"] + PUBLISHED["7_4_types"]
ABC = "template A { x : Integer } template B { x : Integer } template C { x : Integer } template D { x : Integer }\n"


def always(*_arguments: Any) -> bool:
    return True


def compiled(text: str, *, routes: Callable[..., bool] = always, **options: Any) -> tocsin.Rules:
    """A program; its warnings are not of interest."""
    functions = {"uncommon_route": tocsin.function(routes, gives="boolean", pure=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tocsin.TocsinWarning)
        return tocsin.rules(text, **({"functions": functions} | options))


@lru_cache(maxsize=16)
def understood(text: str) -> Program | None:
    """A random program; None when its distances contradict each other."""
    try:
        return compiled(text).program
    except tocsin.errors.ContradictoryDistancesError:
        return None
    except tocsin.errors.QueryErrors as several:
        if all(isinstance(one, tocsin.errors.ContradictoryDistancesError) for one in several.errors):
            return None
        raise


def with_streams(
    draw: Callable[[int], Any],
    meaning: Callable[[Any], Program | None] = understood,
    *,
    max_events: int,
    named: tuple[str, str] = ("text", "stream"),
    tie: str | None = None,
) -> dict[str, st.SearchStrategy[Any]]:
    """Two arguments of a property: a random program whose distances are consistent, and a stream for it.

    One number draws both: drawn one by one, few programs would meet many streams.
    """
    seeds = st.shared(SEEDS.filter(lambda seed: meaning(draw(seed)) is not None))

    def stream(seed: int) -> Streams:
        program = meaning(draw(seed))
        assert program is not None
        return seeded(program, seed, max_events=max_events, tie=tie)

    return {named[0]: seeds.map(draw), named[1]: seeds.map(stream)}


def transfers() -> list[dict[str, Any]]:
    """Figure 7.3, its times without a zone."""
    return trace()["MoneyTransferred"]


def trace() -> dict[str, list[dict[str, Any]]]:
    """Figure 7.3 and the claim that belongs to it: of each type the attributes it has."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in datasets.load("fraud"):
        known = {name: value for name, value in event.items() if value is not None}
        found.setdefault(known.pop("type"), []).append(known | {"ts": event["ts"].replace(tzinfo=None)})
    return found


def rows(**streams: str) -> dict[str, list[dict[str, Any]]]:
    """`rows(A="0 1:5 2.5")`: events at these seconds, with these values of x, 0 when left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, text in streams.items():
        found[name] = []
        for item in text.split():
            at, _, x = item.partition(":")
            found[name].append({"ts": round(float(at) * S), "x": int(x or 0)})
    return found


def seconds(found: list[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Each match as the seconds of its events, by variable; a bag is a tuple."""

    def at(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(event["ts"] / S for event in value)
        return None if value is None else value["ts"] / S

    def order(match: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [() if value is None else value if isinstance(value, tuple) else (value,) for value in match]

    return sorted(
        (tuple(at(value) for name, value in row.items() if name not in ("start", "end")) for row in found), key=order
    )


def found(rule: str, **streams: str) -> list[tuple[Any, ...]]:
    """The matches of one rule over the templates A, B, C, D on a stream."""
    program = compiled(ABC + rule)
    (matches,) = tocsin.reference.evaluate(program, rows(**streams)).values()
    return seconds(matches)


def refused(text: str, **options: Any) -> list[str]:
    """The conditions of the errors a program is refused with; none when it is not."""
    try:
        compiled(text, **options)
    except tocsin.errors.QueryErrors as several:
        return [str(one.condition) for one in several.errors]
    except tocsin.TocsinError as one:
        return [str(one.condition)]
    return []
