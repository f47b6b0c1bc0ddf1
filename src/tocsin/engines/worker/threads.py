"""Work on the cores of this machine: for functions that leave Python's lock while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import only_in_python

Given = TypeVar("Given")
Found = TypeVar("Found")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(
    function: Callable[[Given], Found], items: Sequence[Given], expressions: Iterable[ex.Expression] = ()
) -> Iterable[Found]:
    """The results in the order of the items, of which several are computed at a time; an error ends the work.

    Where Python computes some of the `expressions`, threads gain nothing, and functions of users are called one after
    the other.
    """
    most = min(cores(), len(items))
    if most < 2 or any(only_in_python(node) for each in expressions for node in each.walk()):
        yield from map(function, items)
        return
    with ThreadPoolExecutor(most) as threads:
        try:
            yield from threads.map(function, items)
        finally:
            threads.shutdown(cancel_futures=True)
