"""The daemon of Spark's Python workers in tests: it imports what tasks need once, and not again in every worker.

Spark ends a worker that had nothing to do for a minute or that raised an error, and forks a new one for the next task.
Modules that are there before the fork cost a worker nothing. Neither does the collection of garbage after every task
look at what is frozen.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import tocsin

# Not for workers.
ELSEWHERE = ("tocsin.cli", "tocsin.datasets", "tocsin.reference", "tocsin.testing")


def main() -> None:
    for module in pkgutil.walk_packages(tocsin.__path__, "tocsin."):
        if not module.name.startswith(ELSEWHERE):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
