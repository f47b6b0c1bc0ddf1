"""Programs of rules in this process, on Arrow tables, pandas or plain rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule, Template
from tocsin.analysis.clocks import Schemas
from tocsin.analysis.types import from_spark_name
from tocsin.physical import local
from tocsin.physical.local_tables import of_each_type, require_type_names, table_of
from tocsin.physical.local_together import match_together
from tocsin.physical.programs.run import RESULT, Columns, Run, Search, columns_of, lacks
from tocsin.physical.sliced.arrow import ArrowTypes, attributes_of


class Local:
    """The engine of programs in the user's own process.

    Parameters
    ----------
    inputs
        The user's inputs.
    program
        The program; its templates tell the columns of a list without rows.
    columns
        The names of columns.
    """

    name = "local"
    whole = None

    def __init__(self, inputs: Any, program: Program, columns: Columns) -> None:
        self.inputs, self.program, self.columns = inputs, program, columns

    @cached_property
    def given(self) -> Mapping[str, pa.Table]:
        """The user's tables by event type."""
        if not isinstance(self.inputs, Mapping):
            found = of_each_type(table_of(self.inputs), self.program.read, self.columns.type)
            self._check(found)
            return found
        require_type_names(self.inputs)
        tables = {name: table_of(given, f"the input of `{name}`") for name, given in self.inputs.items()}
        times = (
            table.schema.field(column).type
            for name, table in tables.items()
            if (column := self.columns.time.get(name)) in table.column_names
        )
        time = next(times, pa.int64())
        self._check(tables)
        return {
            name: table if table.column_names or name not in self.program.templates else self._empty(name, time)
            for name, table in tables.items()
        }

    @property
    def schemas(self) -> Schemas:
        """The attributes of the user's inputs, by event type."""
        return {name: attributes_of(table.schema) for name, table in self.given.items()}

    def _check(self, tables: Mapping[str, pa.Table]) -> None:
        """Refuse tables of events from outside without the columns of `tie=` and `id=`; without rows, none is read."""
        outside = [name for name in self.program.read if name not in self.program.emitted]
        given = {name: tables[name] for name in outside if name in tables and tables[name].num_rows}
        local.require_columns(given, self.columns.tie, self.columns.id)

    def _empty(self, template: str, time: pa.DataType) -> pa.Table:
        fields = [pa.field(self.columns.time.get(template, ""), time)]
        for attribute in self.program.templates[template].attributes:
            kind = pa.null() if attribute.type is None else ArrowTypes({}).fixed(from_spark_name(attribute.type))
            fields.append(pa.field(attribute.name, kind))
        return pa.schema(fields).empty_table()

    def match(
        self, query: alg.Query, inputs: pa.Table | Mapping[str, pa.Table], columns: Columns, search: Search
    ) -> pa.Table:
        """The matches of a query."""
        limits = {name: getattr(search, name) for name in ("max_matches_per_start", "max_task_memory")}
        return local.match(query, inputs, **vars(columns), strategy=search.strategy, **limits)

    def returned(self, query: alg.Query, matched: Callable[[alg.Query], pa.Table]) -> pa.Table:
        """The matches of a query: all values are Python's here."""
        return matched(query)

    def chosen(self, frame: pa.Table, columns: Mapping[str, str], time: str) -> pa.Table:
        """These columns under new names."""
        found = {new: frame.column(name) for name, new in columns.items()}
        if pa.types.is_floating(found[time].type):  # the mean of integer times
            found[time] = pc.floor(found[time]).cast(pa.int64())
        return pa.table(found)

    def given_events(self, template: Template, time: str) -> pa.Table | None:
        """The user's events of a template that rules emit too; what a shared table has no column for is NULL."""
        table = self.given.get(template.name)
        if table is None or not table.num_rows:
            return None
        missing = [name for name in columns_of(template, time) if name not in table.column_names]
        if missing and (isinstance(self.inputs, Mapping) or time in missing):
            raise lacks(template, missing[0], table.column_names)
        return pa.table(
            {
                name: pa.nulls(table.num_rows) if name in missing else table.column(name)
                for name in columns_of(template, time)
            }
        )

    def together(self, run: Run[pa.Table], wanted: Sequence[Rule]) -> pa.Table:
        """The matches of several rules; those of a stratum that can be are searched for together."""
        rules = run.needed(wanted)
        for stratum in sorted({rule.stratum for rule in rules}):
            joint = {rule.name: rule for rule in rules if rule.stratum == stratum and run.shares(rule)}
            if not joint:
                continue
            found = match_together(
                {name: rule.query for name, rule in joint.items()},
                {name: run.read(name) for rule in joint.values() for name in rule.reads},
                time=self.columns.time,
                ids={name: None if run.reads_derived(rule) else self.columns.id for name, rule in joint.items()},
                max_matches_per_start=run.search.max_matches_per_start,
                max_task_memory=run.search.max_task_memory,
            )
            run.found |= {name: one.table for name, one in found.items()}
        tables = [_tagged(rule.name, run.matched(rule, rule.query)) for rule in wanted]
        return pa.concat_tables(tables, promote_options="default").select([*RESULT, *(rule.name for rule in wanted)])

    def union(self, type: str, frames: Sequence[pa.Table]) -> pa.Table:
        """All rows."""
        try:
            return pa.concat_tables(frames, promote_options="permissive")
        except pa.ArrowException as problem:
            raise errors.TypeMismatchError(
                f"The events of `{type}` do not have the same types everywhere: {problem}.",
                hint="emit values of one type, the same as those of the input.",
            ) from None


def _tagged(rule: str, found: pa.Table) -> pa.Table:
    """The matches of a rule with its name, and its variables as one column."""
    variables = [name for name in found.column_names if name not in RESULT]
    whole = found.select(variables).to_struct_array()
    names = pa.array([rule] * found.num_rows, pa.string())
    return found.select(RESULT[1:]).add_column(0, "rule", names).append_column(rule, whole)
