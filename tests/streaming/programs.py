"""Programs on streams without Spark: rows in any order and any cut, given to the steps of one shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from tests.streaming.support import LAST, OPENED, PLAN, with_digests_of

import tocsin
from tocsin.analysis.attributes import attributes_by_variable
from tocsin.engines.dispatch import program_run
from tocsin.engines.stream.live_plan import LivePlan
from tocsin.engines.stream.store import State
from tocsin.engines.worker.arrow_scan import ship
from tocsin.engines.worker.arrow_types import schemas_of
from tocsin.engines.worker.event_tables import Events
from tocsin.engines.worker.rows import array_of, integers
from tocsin.engines.worker.tasks import RULE
from tocsin.options import Options
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Reader


class LiveProgram:
    """One shard of a program, fed by hand. Rows of types that rules emit may come from outside too."""

    def __init__(
        self,
        program: tocsin.Rules,
        tables: Mapping[str, pa.Table],
        *,
        lateness_us: int = 0,
        rules: Sequence[str] | None = None,
        template: str | None = None,
        strategy: str = "auto",
        tie: str | None = None,
    ) -> None:
        empty = {name: table.slice(0, 0) for name, table in tables.items()}
        run = program_run(program.program, empty, Options(engine="local", strategy=strategy, tie=tie))
        emitting = [rule.name for rule in run.program.rules if any(emit.type == template for emit in rule.emits)]
        shown = [rule.name for rule in run.program.rules] if rules is None else list(rules)
        wanted = emitting if template is not None else shown
        needed = run.plan.needed([rule for rule in run.program.rules if rule.name in wanted])
        plan = LivePlan(run.plan, tuple(needed), () if template else tuple(shown), template)
        schemas = {name: run.read(name).schema for name in plan.reads}
        given = {name: tables[name] if name in tables else schema.empty_table() for name, schema in schemas.items()}
        readers = []
        for number, (rule, kernel) in enumerate(zip(needed, plan.kernels, strict=True)):
            attributes = attributes_by_variable(kernel.query, schemas_of(schemas))
            ties = run.plan.rule(rule).plan.options.ties
            readers.append(Reader(kernel, plan.needs(number, attributes), ties=ties))
        events = [
            Events(name, table.select(schemas[name].names).cast(schemas[name]), "ts") for name, table in given.items()
        ]
        shipped = ship(readers, events, named=schemas, sources=plan.sources)
        manifest, self.table = shipped.manifest, with_digests_of(shipped)
        layouts = manifest.layouts
        places = [tuple(range(len(layout.gathered))) for layout in layouts]
        result = None if template is None else run.events(template).schema
        self.rules = [rule.name for rule in needed]
        self.step, self.lateness_us = plan.step(manifest, places, schemas, result), lateness_us
        self.ts = integers(array_of(self.table, manifest.time))
        self.state = State.begin(1)
        self.found: dict[str, list[str]] = {name: [] for name in (shown if template is None else ())}
        self.events: list[dict[str, Any]] = []
        self.most_remembered = self.late = 0

    def take(self, rows: Sequence[int], latest: int | None = None, *, stalls: bool = False) -> list[tuple[str, str]]:
        """A micro-batch, with what it gives; the state goes through bytes, as it does in a checkpoint.

        With `stalls` another source has told nothing yet, so that time stands.
        """
        arrived = self.table.take(pa.array(rows, pa.int64())) if len(rows) else None
        told = [int(self.ts[row]) for row in rows if not stalls] + ([] if latest is None else [latest])
        store = OPENED[-1](State.from_bytes(self.state.to_bytes(PLAN), PLAN), self.step.retention)
        clocks = store.clocks.advanced([(max(told),)] if told else [], [self.lateness_us])
        outcome = self.step.run(store, clocks, [arrived] if arrived is not None else [])
        self.state = store.commit()
        self.late += outcome.report.late
        self.most_remembered = max(self.most_remembered, outcome.report.remembered)
        given: list[tuple[str, str]] = []
        for batch in outcome.batches:
            if self.step.wanted is not None:
                self.events += batch.to_pylist()
                continue
            rules, ids = (batch.column(name).to_pylist() for name in (RULE, names.MATCH_ID))
            given += zip(map(self.rules.__getitem__, rules), ids, strict=True)
        for rule, match_id in given:
            self.found[rule].append(match_id)
        return given

    def end(self) -> None:
        """Time goes on until everything is decided."""
        self.take([], LAST)
