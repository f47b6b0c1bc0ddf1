"""Work counted in lines of Python, which do not depend on what else a machine does."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

GENERATED = ("<string>", "<kernel>")  # the files of generated code: of dataclasses, and of searches


def lines_run(action: Callable[[], Any]) -> int:
    """How many lines of Tocsin an action runs; each turn of a loop and each item of a comprehension is one."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        file = frame.f_code.co_filename
        return line if "tocsin" in file or file in GENERATED else None

    gc.collect()
    before = sys.gettrace()
    sys.settrace(call)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
