"""Tocsin itself, used as a user would."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

import tocsin
from benchmarks.calibrate import Ready
from benchmarks.shapes import text_of


def matcher(*, strategy: str = "auto", with_id: bool = False) -> Callable[[DataFrame, Ready], DataFrame]:
    def build(frame: DataFrame, ready: Ready) -> DataFrame:
        found = tocsin.pattern(text_of(ready.shape)).match(frame, time="ts", id="id", type="type", strategy=strategy)
        return found if with_id else found.drop("match_id")

    return build
