"""Work on the cores of this machine: for functions that leave Python's lock while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Found = TypeVar("Found")


def in_threads(function: Callable[[Given], Found], items: Sequence[Given]) -> Iterable[Found]:
    """The results in the order of the items, of which several are computed at a time; an error ends the work."""
    cores = os.cpu_count() or 1
    if len(items) < 2 or cores < 2:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(min(cores, len(items))) as threads:
        try:
            yield from threads.map(function, items)
        finally:
            threads.shutdown(cancel_futures=True)
