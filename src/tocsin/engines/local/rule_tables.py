"""Programs of rules in this process, on whatever `arrow_inputs.table_of` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule, Template
from tocsin.analysis.schema import Schemas
from tocsin.analysis.types import DataType, from_spark_name
from tocsin.engines.local import match as local
from tocsin.engines.local.arrow_inputs import of_each_type, require_type_names, table_of, tables_of
from tocsin.engines.rule_run import RESULT, Run, lacks
from tocsin.engines.worker.arrays import of_values
from tocsin.engines.worker.arrow_types import in_type, to_arrow, types_in
from tocsin.options import Options
from tocsin.plan.plan import Plan


class Local:
    """The engine of programs in the user's own process; templates have the columns of a list without rows."""

    whole = None

    def __init__(self, inputs: Any, program: Program, options: Options) -> None:
        self.inputs, self.program, self.options = inputs, program, options

    @cached_property
    def given(self) -> Mapping[str, pa.Table]:
        """The user's tables by event type."""
        if not isinstance(self.inputs, Mapping):
            found = of_each_type(table_of(self.inputs), self.program.read, self.options.type)
            self._check(found)
            return found
        require_type_names(self.inputs)
        tables = tables_of(self.inputs)
        times = (
            table.schema.field(column).type
            for name, table in tables.items()
            if (column := self.options.times.get(name)) in table.column_names
        )
        time = next(times, pa.int64())
        self._check(tables)
        return {
            name: table if table.column_names or name not in self.program.templates else self._empty(name, time)
            for name, table in tables.items()
        }

    @cached_property
    def schemas(self) -> Schemas:
        """The attributes of the user's inputs, by event type."""
        return {name: types_in(table.schema) for name, table in self.given.items()}

    def _check(self, tables: Mapping[str, pa.Table]) -> None:
        """Refuse tables of events from outside without the columns of `tie=` and `id=`; without rows, none is read."""
        outside = [name for name in self.program.read if name not in self.program.emitters]
        given = {name: tables[name] for name in outside if name in tables and tables[name].num_rows}
        local.require_columns(given, self.options.ties, self.options.id)

    def _empty(self, template: str, time: pa.DataType) -> pa.Table:
        fields = [pa.field(self.options.times.get(template, ""), time)]
        for attribute in self.program.templates[template].attributes:
            kind = pa.null() if attribute.type is None else to_arrow(from_spark_name(attribute.type))
            fields.append(pa.field(attribute.name, kind))
        return pa.schema(fields).empty_table()

    def match(self, plan: Plan, inputs: pa.Table | Mapping[str, pa.Table]) -> pa.Table:
        """The matches of a rule."""
        named = alg.event_types(plan.rule.written.pattern)
        return local.run(plan, local.events_of(named, inputs, self.options.times, self.options.type))

    def returned(self, query: alg.Query, matched: Callable[[alg.Query], pa.Table]) -> pa.Table:
        """The matches of a query: all values are Python's here."""
        return matched(query)

    def chosen(self, frame: pa.Table, columns: Mapping[str, str], types: Mapping[str, DataType]) -> pa.Table:
        """These columns under new names, in these types."""
        return pa.table({new: in_type(frame.column(name), types[new]) for name, new in columns.items()})

    def given_events(self, template: Template, columns: Sequence[str]) -> pa.Table | None:
        """The user's events of a template that rules emit too; what a shared table has no column for is NULL."""
        table = self.given.get(template.name)
        if table is None or not table.num_rows:
            return None
        missing = [name for name in columns if name not in table.column_names]
        if missing and (isinstance(self.inputs, Mapping) or columns[0] in missing):
            raise lacks(template, missing[0], table.column_names)
        return pa.table({name: pa.nulls(table.num_rows) if name in missing else table.column(name) for name in columns})

    def together(self, run: Run[pa.Table], wanted: Sequence[Rule]) -> pa.Table:
        """The matches of several rules; those of a stratum that can be are searched for together."""
        for stratum in run.plan.strata(wanted):
            if stratum.shared:
                types = dict.fromkeys(
                    name for one in stratum.shared for name in alg.event_types(one.rule.query.pattern)
                )
                tables = {name: run.read(name) for name in types}
                events = local.events_of(tuple(types), tables, run.plan.times, "")
                found = local.run_shared(stratum.shared, events)
                run.found |= {name: one.table for name, one in found.items()}
        return _beside({rule.name: run.matched(rule, rule.query) for rule in wanted})

    def union(self, frames: Sequence[pa.Table]) -> pa.Table:
        """All rows."""
        return pa.concat_tables(frames, promote_options="permissive")


def _beside(found: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of rules below each other, with the names of the rules, and the variables of each as one column."""
    names = of_values([rule for rule, table in found.items() for _ in range(table.num_rows)], pa.string())
    common = pa.concat_tables([table.select(RESULT[1:]) for table in found.values()], promote_options="default")
    columns = dict(zip(RESULT, [pa.chunked_array([names]), *common.columns], strict=True))
    before = 0
    for rule, table in found.items():
        whole = table.select([name for name in table.column_names if name not in RESULT]).to_struct_array()
        # NULL in the rows of all other rules: two pieces, however many rules there are.
        after = len(names) - before - table.num_rows
        pieces = [pa.nulls(before, whole.type), *whole.chunks, pa.nulls(after, whole.type)]
        columns[rule] = pa.chunked_array(pieces, whole.type)
        before += table.num_rows
    return pa.table(columns)
