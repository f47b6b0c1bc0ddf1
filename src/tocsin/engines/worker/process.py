"""The Python process in which Spark runs tasks, one after the other."""

from __future__ import annotations

import gc
import sys

_frozen = 0  # how many modules were imported when their objects were last hidden from the garbage collector


def settle() -> None:
    """Hide all that is imported from the garbage collector, when something new is.

    Spark has it look at every object of the process after each task. With pyarrow and numba imported that takes 20 ms
    to 100 ms, longer than many a task, and the next one waits for it.
    """
    global _frozen  # noqa: PLW0603 - of the process, as what it hides
    if "pyspark.worker" in sys.modules and len(sys.modules) > _frozen:
        gc.freeze()
        _frozen = len(sys.modules)
