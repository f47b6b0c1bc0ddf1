"""A join plan and its inputs → one DataFrame of matches, by Spark's own joins and unions. Nothing runs here.

Inside, columns have positional names under the reserved prefix, so that no name of a user's column or variable can
clash, whatever the session's rules on case:

===================  ======================================================================
`__tocsin_3_us`      time of the third variable's event in microseconds
`__tocsin_3_d1`      the first of its digests, for `match_id`; `__tocsin_3_d2` the second
`__tocsin_3_7`       its seventh column
`__tocsin_3_near`    a time bucket that a row looks into when the third variable is joined
`__tocsin_3_bucket`  the one that a row of the other side lies in
`__tocsin_3_window`  the sliding window its event lies in
`__tocsin_out_2`     the second output column
===================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.physical import identity
from tocsin.physical.bags import Binding
from tocsin.physical.inputs import Inputs
from tocsin.physical.joins.bag import copies_of
from tocsin.physical.joins.branches import END, START, BranchFrame, out
from tocsin.physical.spark_types import Shape, shape_of
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select, union
from tocsin.plan.joins.model import Plan


def matches(
    query: alg.Query, plan: Plan, inputs: Inputs, branch_frame: Callable[..., BranchFrame] = BranchFrame
) -> DataFrame:
    """The matches of a planned query; `branch_frame` joins the variables of one branch.

    The columns are `match_id`, `start`, `end`, then those of RETURN, or one per variable: a struct, or an array of
    structs in order of time.
    """
    shapes = shapes_of(query, inputs)
    returns = query.returns or tuple(alg.Returned(name, ex.Variable(name)) for name in query.variables)
    # Made once for all branches: every call to Spark takes a while, and most variables of a long OR are unbound.
    unbound = {
        name: copies_of(shape, ()) if query.variables[name].iterated else _unbound(shape)
        for name, shape in shapes.items()
        if any(name not in branch.bags for branch in plan.branches)
    }
    frames = [
        branch_frame(query, branch, inputs, shapes, unbound, plan.sliding).frame(returns) for branch in plan.branches
    ]
    if not frames:
        raise errors.InternalError("A plan without branches.", where=query.pattern.where)
    united = union(frames, by_name=True)
    return select(
        identity.numbered(united, id=inputs.id),
        identity.match_id(id=inputs.id).alias("match_id"),
        F.col(START).alias("start"),
        F.col(END).alias("end"),
        *(F.col(out(number)).alias(returned.name) for number, returned in enumerate(returns)),
    )


def _unbound(shape: Shape) -> Binding:
    return Binding({attribute: (F.lit(None), dtype) for attribute, dtype in shape.items()}, is_bound=False)


def shapes_of(query: alg.Query, inputs: Inputs) -> Mapping[str, Shape]:
    """The attributes of every positive variable."""
    return {
        name: shape_of(name, [inputs.streams[kind or ""].schema for kind in what.types])
        for name, what in query.variables.items()
    }
