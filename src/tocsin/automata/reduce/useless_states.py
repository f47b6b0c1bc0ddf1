"""States that no run reaches, and states from which no run ends."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.automata.draft import END, START, Draft


def drop_useless(draft: Draft) -> Draft:
    """Keep the steps that lie on a way from START to END."""
    forward = _closure(START, ((step.source, step.target) for step in draft.steps))
    backward = _closure(END, ((step.target, step.source) for step in draft.steps))
    return draft.mapped(lambda step: step if step.source in forward and step.target in backward else None)


def _closure(start: int, edges: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, set[int]] = {}
    for source, target in edges:
        following.setdefault(source, set()).add(target)
    found, waiting = {start}, [start]
    while waiting:
        new = following.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
