"""`COUNT(*)` over an iteration, without building a match (002, optimisation O2; SEMANTICS §9).

The matches of `T{m,n} b` that start at an instant are the choices of m − 1 to n − 1 later instants inside the window,
and of one event at each: no two events of one instant are in one match. With c(t) events at instant t, those with k
later events number c(t) · e_k, where e_k is the elementary symmetric polynomial of the c(s) for t < s < t + W. Newton's
identities give it from the power sums p_j = Σ c(s)^j, which are window aggregates. (The paper's own O2 is approximate:
it counts events and reports no matches.)

code        theory
----        ------
c           events per (partition, instant)
p[j]        p_j, over the later instants inside the window
scaled[k]   k! · e_k, so that nothing is divided before the end
"""

from __future__ import annotations

from functools import reduce
from math import factorial

from pyspark.sql import DataFrame

from tocsin.algebra import nodes as alg
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.joins import times
from tocsin.engines.spark.joins.frames import BranchFrame, shapes_of
from tocsin.engines.spark.slices import slice_of
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import aggregate, select, where, with_columns
from tocsin.plan.joins.copies import copy_name, instances
from tocsin.plan.joins.model import Branch, Scan
from tocsin.plan.joins.refusals import repeat_of

# A slice is this many windows wide: a sixteenth of the instants is in two of them.
WINDOWS_PER_SLICE = 16
EXACT = "decimal(38,0)"
INSTANT, SLICE, EVENTS = "__tocsin_instant", "__tocsin_slice", "__tocsin_events"


def counted(query: alg.Query, inputs: Inputs) -> DataFrame:
    """One row with the number of matches under every name that RETURN gives it (R40: 0 when there is none)."""
    node = repeat_of(query)
    later = range(max(1, node.least) - 1, node.most or 1)
    at_instants = _instants(query, inputs)
    powers = {degree: _power_sum(query, degree) for degree in range(1, node.most or 1)}
    sized = with_columns(at_instants, *(column.alias(f"__tocsin_p{degree}") for degree, column in powers.items()))
    if query.window_us is not None:
        # Only the slice an instant lies in counts the matches that start there.
        sized = where(sized, F.col(SLICE) == slice_of(F.col(INSTANT), _slice_us(query.window_us)))
    scaled = _scaled({degree: F.col(f"__tocsin_p{degree}") for degree in powers})
    totals = aggregate(
        sized,
        [],
        F.count_if(F.lit(True)).alias(EVENTS),
        *(F.try_sum(F.try_multiply(F.col(EVENTS), scaled[k])).alias(f"__tocsin_total{k}") for k in later),
    )
    parts = [F.try_divide(F.col(f"__tocsin_total{k}"), F.lit(factorial(k)).cast(EXACT)).try_cast(EXACT) for k in later]
    whole = reduce(F.try_add, parts).try_cast("bigint")
    # The number is right or the job fails: a NULL here would be an overflow nobody sees (SEMANTICS §9).
    checked = F.when(F.col(EVENTS) == 0, F.bigint(0)).otherwise(
        F.coalesce(whole, F.raise_error(F.lit("COUNT(*) is beyond 64 bits.")).cast("bigint"))
    )
    return select(totals, *(checked.alias(returned.name) for returned in query.returns))


def _instants(query: alg.Query, inputs: Inputs) -> DataFrame:
    """The number of events of each partition and instant, in every slice that needs it."""
    (variable,) = query.variables
    event = repeat_of(query).part
    assert isinstance(event, alg.Event)
    copy = copy_name(variable, 1)
    bags = {variable: (copy,)}
    conditions = tuple(one for conjunct in query.conjuncts for one in instances(conjunct, bags))
    scan = Scan(copy, event.type or "", conditions)
    frame = BranchFrame(query, Branch(scan, (), bags=bags), inputs, shapes_of(query, inputs), {})
    source = frame.sources[copy]
    keys = [source.key(name).column.alias(_key(name)) for name in query.partition.attributes]
    number = F.count_if(F.lit(True)).cast(EXACT).alias(EVENTS)
    found = aggregate(frame.events(scan), [*keys, source.micros.alias(INSTANT)], number)
    if query.window_us is None:
        return found
    width = _slice_us(query.window_us)
    first = slice_of(times.plus(F.col(INSTANT), 1 - query.window_us), width)
    slices = F.explode(F.sequence(first, slice_of(F.col(INSTANT), width)))
    return with_columns(found, slices.alias(SLICE))


def _key(attribute: str) -> str:
    return f"__tocsin_key_{attribute}"


def _slice_us(window_us: int) -> int:
    return min(WINDOWS_PER_SLICE * window_us, 2**62)


def _power_sum(query: alg.Query, degree: int) -> Column:
    keys = [F.col(_key(name)) for name in query.partition.attributes]
    window_us = query.window_us
    if window_us == 1:
        return F.lit(0).cast(EXACT)  # no later instant is inside the window
    power = F.sum(reduce(F.try_multiply, [F.col(EVENTS)] * degree))
    if window_us is None:
        later = power.over(keys, F.col(INSTANT), later_by=(1, None))
    else:
        later = power.over([*keys, F.col(SLICE)], F.col(INSTANT), later_by=(1, window_us - 1))
    return F.coalesce(later, F.lit(0).cast(EXACT)).cast(EXACT)


def _scaled(powers: dict[int, Column]) -> dict[int, Column]:
    """K! · e_k for every k: Newton's identities, k · e_k = Σ (−1)^(i−1) e_(k−i) p_i."""
    found: dict[int, Column] = {0: F.lit(1).cast(EXACT)}
    for k in powers:
        total = F.lit(0).cast(EXACT)
        for i in range(1, k + 1):
            factor = factorial(k - 1) // factorial(k - i)
            term = F.try_multiply(F.try_multiply(found[k - i], powers[i]), F.lit(factor).cast(EXACT))
            total = (F.try_add if i % 2 else F.try_subtract)(total, term)
        found[k] = total.cast(EXACT)
    return found
