"""What users see of matches that were found together: a struct for each rule, NULL in the matches of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from tocsin.algebra.programs import Rule
from tocsin.language import expressions as ex
from tocsin.physical import identity
from tocsin.physical.bags import Bag
from tocsin.physical.columns import Binding, Compiler
from tocsin.physical.sliced.joint import Searched
from tocsin.physical.sliced.matches import bindings_of
from tocsin.physical.sliced.places import RULE
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select
from tocsin.physical.values import Kind, Value
from tocsin.plan import layout as names


def bindings_in(searched: Searched, number: int, rule: Rule) -> dict[str, Binding | Bag]:
    """What expressions over the matches of a rule mean by its variables."""
    held = searched.places[number]
    shapes = {name: shape for name, (_, shape) in held.items()}
    return bindings_of(rule.query, shapes, [place for place, _ in held.values()])


def shown(
    searched: Searched, found: Mapping[int, Rule], wanted: Sequence[Rule], time_kind: Kind, *others: Column
) -> DataFrame:
    """The matches of the rules that were found, by number, with a column for every rule that is wanted."""
    is_of = {rule.name: F.col(RULE) == number for number, rule in found.items()}
    structs = {}
    for number, rule in found.items():
        compiler = Compiler(bindings_in(searched, number, rule))
        variables = (compiler.output(ex.Variable(name)).alias(name) for name in rule.query.variables)
        structs[rule.name] = F.when(is_of[rule.name], F.struct(*variables))
    return select(
        searched.frame,
        F.cases((is_own, F.lit(name)) for name, is_own in is_of.items()).alias("rule"),
        identity.text(F.col(names.FIRST_HALF), F.col(names.SECOND_HALF)).alias("match_id"),
        Value(F.col(names.START), time_kind, in_micros=True).output.alias("start"),
        Value(F.col(names.END), time_kind, in_micros=True).output.alias("end"),
        *(structs.get(rule.name, F.lit(None)).alias(rule.name) for rule in wanted),
        *others,
    )
