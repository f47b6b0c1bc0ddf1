"""No shuffle where the input lies in order of time: tasks are searched where they are, then what crosses their edges.

Logs are mostly written in order of time, so that a partition of the input holds a stretch of it, or a few when Spark
packs several files into one. Two passes, with a shuffle of the matches and of few events between them:

1. Each task searches its own rows, whatever their times. It reports the matches and sends on its rows *near an edge*,
   with the number of the task, and the ranges of its *runs*.
2. By time slice, rows near edges are searched again; only matches of rows of two or more tasks are reported. One task
   gets all runs and fails with NOT_TIME_CLUSTERED when two of different tasks overlap.

Why this is exact. Without absences and policies a match depends on its own events only, and any two of them are less
than the window W apart. The matches whose rows are all in one task are found there, and nowhere else. Take a match with
events e of task T and f of another task. The rows of a task are divided into runs; any division will do. Let e be in
run r, with the times [r.first, r.last], and f in s. With the slack S the check has made sure that

    r.last − s.first ≤ S    or    s.last − r.first ≤ S.

In the first case e > f − W ≥ s.first − W ≥ r.last − S − W, and f < e + W ≤ r.last + W ≤ s.first + S + W; the second is
the same with the roles changed. So both lie less than W + S from an edge of their run and are sent on. Every event of
the match has such a partner, hence all are in the second pass, where the slice that owns the start of the match has
them all. S is W here: partitions may overlap by one window.

How runs are divided decides only what is sent and what passes the check: rows are cut where nothing happens for longer
than a window, at the longest gaps when there are many. A task that reads the first and the fifth file of a
day so has two runs, and the files between them lie in the gap.

Equal matches are numbered, and have equal starts, so that they meet in the second pass: matches are sent to the slice
of their start. Of two equal matches that differ in a row, that row has a twin. If both are in one task, it is there; if
not, some twins lie in different tasks at the same time, and by the argument above (with 0 for W) they are near an edge.
So only matches that hold a twin or a row near an edge are looked at.

A part of the result that is read without the rest (`limit`) may come without the check; its matches are matches.
"""

from __future__ import annotations

from functools import partial
from itertools import chain

from pyspark.sql import types as T

from tocsin.engines.spark import search as sliced
from tocsin.engines.spark.edges import HASHES, ORIGIN, Across, Crossing, Inside
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.scan import Shipment
from tocsin.engines.spark.search import Found
from tocsin.engines.spark.slices import slice_of, slice_of_copy, with_copies
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import repartition
from tocsin.engines.worker.tasks import task_of
from tocsin.kernels.nested_loops import Kernel
from tocsin.kernels.reach import width_us
from tocsin.options import Options
from tocsin.plan import manifest as names


def search(kernel: Kernel, inputs: Inputs, options: Options, *, with_digests: bool) -> Found:
    """The matches of a query on input that lies in order of time, as `sliced.search` returns them."""
    window, width = kernel.query.window_us, width_us(kernel, options.slice_us)
    assert window is not None and width is not None
    shipment, shapes = sliced.ship(kernel, inputs, with_digests=with_digests)
    schema = sliced.match_schema(kernel, inputs, shipment, shapes)
    of_query = kernel, shipment.layout, inputs.id is not None
    limited = partial(task_of, most=options.max_matches_per_start, memory=options.task_bytes)
    inside = limited(Inside(*of_query, window_us=window, reach_us=2 * window))
    across = Across(limited(Crossing(*of_query), width), slack_us=window)
    hashes = [T.StructField(name, T.LongType()) for name in HASHES]
    hashed = chain(*(hashes if field.name == names.MATCH_ID else [field] for field in schema.fields))
    both = T.StructType(
        [
            *hashed,
            *(T.StructField(field.name, field.dataType) for field in shipment.frame.schema.fields),
            T.StructField(ORIGIN, T.IntegerType()),
        ]
    )
    found = shipment.frame.mapInArrow(inside, both)
    sent = with_copies(found, both.names, kernel, shipment.micros, width)
    # Copies put the bits last, which is why columns are taken by name.
    return Found(
        repartition(sent, _slice(shipment, width), partitions=shipment.tasks).mapInArrow(across, schema), shapes
    )


def _slice(shipment: Shipment, width: int) -> Column:
    """Where a row goes: an event to its slice, a match to that of its start, and all runs to one."""
    return (
        F.when(F.col(names.BITS).isNotNull(), slice_of_copy(shipment.micros, width))
        .when(F.col(ORIGIN) >= 0, F.bigint(0))
        .otherwise(slice_of(F.col(names.START), width))
    )
