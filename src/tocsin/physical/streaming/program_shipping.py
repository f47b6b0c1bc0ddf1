"""The columns that travel for a program on streams: one row for each event, however many rules read it.

As for rules that are searched for together in a batch, with three differences: rows of which nothing is needed travel
too, with their time alone; keys are columns, so that workers can write them; and rules in which positions matter are
among the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from tocsin.kernels.kernel import Kernel
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.events import WITH_EVENTS, json_of, source_of
from tocsin.physical.sliced.joint import JointShipper, Mixed
from tocsin.physical.sliced.layout import Layout, Packing
from tocsin.physical.sliced.parts import Part
from tocsin.physical.sliced.text import text_of
from tocsin.physical.sliced.values import micros_of
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select, union, with_columns
from tocsin.physical.values import null, value_of

WHICH = "__tocsin_which"


class StreamShipper(JointShipper):
    """Decides what is shipped for the rules of a program, and builds the streaming DataFrame."""

    def packing_of(self, kernels: Sequence[Kernel]) -> Packing:
        """Types are numbered where the order of events asks for them; keys are not in the bits."""
        packing = replace(super().packing_of(kernels), key_bits=0)
        if packing.kinds or not any(kernel.needs_order for kernel in kernels):
            return packing
        return replace(packing, kinds=max(len(kernels[0].types) - 1, 1).bit_length())

    def ordered(self, layout: Layout, ties: Sequence[str]) -> Layout:
        """The layout of a rule in which the order of events of one instant matters."""
        return replace(layout, ties=tuple(map(self._tie, ties)), text=self._text())

    def _tie(self, attribute: str) -> str:
        def value(part: Part) -> Column:
            return value_of(*part.columns[attribute]).column if attribute in part.columns else null()

        return self.every.add(value)

    def _text(self) -> str:
        if all(column.name != names.TEXT for column in self.every.columns):
            self.every.add(lambda part: text_of(part.columns, without=part.time), names.TEXT)
        return names.TEXT

    # --- rows -------------------------------------------------------------------------------------

    def columns(self, stream: int) -> list[str]:
        """The columns of a row; `stream` says which of those that streams have are among them."""
        return [*self.names, *(names.CLOCK, names.SOURCE, names.EVENT)[:stream]]

    def streamed(self, stream: int, rated: Sequence[str] = ()) -> DataFrame:
        """Every row of the inputs: what takes part with all its columns, others with their time."""
        every = [(self._answered(one), one.parts) for one in self.mixed]
        every += [(self.every.answered(part), ((F.lit(True), part),)) for part in self.single]
        frames = [
            self._every_row(frame, parts, _source(parts, number, rated), stream)
            for number, (frame, parts) in enumerate(every)
        ]
        return union(frames)

    def _answered(self, mixed: Mixed) -> DataFrame:
        """The rows with what DataFrames answer of them: only events from outside ask."""
        outside = [part for _, part in mixed.parts if part.computed is None]
        return self.every.answered(outside[0]) if outside else mixed.frame

    def _every_row(
        self, frame: DataFrame, parts: Sequence[tuple[Column, Part]], source: Column, stream: int
    ) -> DataFrame:
        passes = [(is_own & self.every.filter(part), F.lit(at)) for at, (is_own, part) in enumerate(parts)]
        judged = with_columns(frame, F.cases(passes).alias(WHICH))
        which, values = F.col(WHICH), [self.every.values(part, self.packing) for _, part in parts]

        def chosen(place: int) -> Column:
            return F.cases((which == at, columns[place]) for at, columns in enumerate(values))

        first = parts[0][1]
        clock = micros_of(first.columns[first.time][0], first.time_kind)
        return select(
            judged,
            *(chosen(place).alias(name) for place, name in enumerate(self.names) if name != names.BITS),
            F.coalesce(chosen(-1), F.bigint(0)).alias(names.BITS),
            F.when(which.isNull(), clock).alias(names.CLOCK),
            source.alias(names.SOURCE),
            *([F.when(which.isNotNull(), json_of(first)).alias(names.EVENT)] if stream == WITH_EVENTS else []),
        )


def _source(parts: Sequence[tuple[Column, Part]], number: int, rated: Sequence[str]) -> Column:
    """Which DataFrame a row comes from, and of which type with a rate it is, whether or not it takes part."""
    known = [(is_own, source_of(part, number, rated)) for is_own, part in parts]
    return F.cases(known).otherwise(F.lit(number)) if rated else F.lit(number)
