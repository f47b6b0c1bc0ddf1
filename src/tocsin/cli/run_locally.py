"""`tocsin run --engine local`: files are read, matched and written in this process, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin import Rules, errors
from tocsin.algebra.programs import Program, sources
from tocsin.cli import files, terminal
from tocsin.cli.arguments import is_program
from tocsin.cli.queries import program_of, runnable
from tocsin.cli.run import SHOWN_ROWS, folder_name, order_of, sentence, show, shown, summary, write_summary, written
from tocsin.engines.dispatch import ARROW, check_options, needing, program_run
from tocsin.engines.local.paths import is_remote
from tocsin.engines.rule_run import RESULT, Run

with needing(*ARROW):
    import pyarrow as pa
    import pyarrow.compute as pc

    from tocsin.cli.arrow_output import as_texts, save
    from tocsin.engines.local.arrow_inputs import require_type_column
    from tocsin.engines.local.read_files import table_at
    from tocsin.engines.worker.arrays import constant, of_values
    from tocsin.engines.worker.arrow_types import types_in
    from tocsin.engines.worker.lazy_tables import LazyTable

if TYPE_CHECKING:
    from rich.table import Table


def run_locally(
    given: Mapping[str, Any], how: Mapping[str, Any], inputs: files.Inputs, tables: Mapping[str, str]
) -> None:
    """Match files, and write or show what is found.

    `given` has the options of the command, `how` those of them that `match` has, and `tables` the paths of reference
    tables.
    """
    options = check_options(how, inputs.paths.get(files.SINGLE, inputs.paths), of_rules=is_program(given))
    inputs.check()
    if given["out"] is not None:
        _check_output(given["out"], given["mode"], inputs)
    read = cache(table_at)  # twice, where the names of a wrong query are compared with columns

    def frames(program: Program) -> Any:
        return inputs.frames(program, lambda _, path: read(path))

    def schemas(program: Program) -> Any:
        found = frames(program)
        if inputs.is_single:
            require_type_column(given["type_column"], found)
            found = dict.fromkeys(sources(program), found)
        return {name: types_in(table.schema) for name, table in found.items()}

    steps = terminal.Steps()
    with steps.step("Reading"):
        rows = {name: _rows(table_at(path)) for name, path in tables.items()}
        query = runnable(given, inputs, rows, schemas, engine=options.engine)
        events = frames(program_of(query))
    with steps.step("Matching"), terminal.showing_warnings():
        if isinstance(query, Rules):
            result: tuple[Table | None, list[str]] = _of_rules(program_run(query.program, events, options), given)
        else:
            result = _of_pattern(query.match(events, **how), events, given)
    show(*result)


def _rows(table: pa.Table | LazyTable) -> list[dict[str, Any]]:
    whole: pa.Table = table.whole() if isinstance(table, LazyTable) else table
    return whole.to_pylist()  # type: ignore[no-any-return]


def _check_output(out: str, mode: str, inputs: files.Inputs) -> None:
    if is_remote(out):
        raise errors.OutputNotWritableError(
            f"`{out}` is a URL, and the local engine writes files of this machine.",
            hint="choose a directory, or run it on Spark: leave out `--engine local`.",
        )
    files.check_output(out, mode, inputs.paths.values())


def _of_pattern(found: pa.Table, events: Any, given: Mapping[str, Any]) -> tuple[Table | None, list[str]]:
    """Write the matches, or show the earliest."""
    read = [*events.values()] if isinstance(events, Mapping) else [events]
    without_time = sum(table.column(given["time"]).null_count for table in read)
    counted = sentence(sum(table.num_rows for table in read), without_time, found.num_rows)
    out, format = given["out"], given["format"]
    if out is not None:
        with files.replacing(out, given["mode"]) as place:
            save(found, Path(place), format)
        return written(counted, out, format)
    return shown(found.column_names, _first_matches(found), found.num_rows, counted)


def _first_matches(found: pa.Table) -> list[list[str | None]]:
    """The earliest matches as text; NULL comes first."""
    keys = {name: found[name] for name in order_of(found.column_names) if not pa.types.is_nested(found[name].type)}
    columns = pa.table(
        [each for key in keys.values() for each in (key.is_valid(), key)], list(map(str, range(2 * len(keys))))
    )
    order = (
        pc.sort_indices(columns, [(name, "ascending") for name in columns.column_names])
        if keys
        else of_values(range(found.num_rows))
    )
    return as_texts(found.take(order[:SHOWN_ROWS]))


def _of_rules(run: Run[pa.Table], given: Mapping[str, Any]) -> tuple[Table, list[str]]:
    """Count the matches of every rule, and write them and what they emit."""
    rules = [rule.name for rule in run.program.in_order]
    found = run.together(rules)
    own = {name: found.filter(pc.equal(found["rule"], constant(name, pa.string()))) for name in rules}
    counts = {name: table.num_rows for name, table in own.items()}
    out, format = given["out"], given["format"]
    if out is not None:
        with files.replacing(out, given["mode"]) as place:
            for name, table in own.items():
                save(_with_variables(table, name), Path(place, "rules", folder_name(name)), format)
            events = {name: run.events(name) for name in run.program.emitted}
            for name, table in events.items():
                save(table, Path(place, "events", folder_name(name)), format)
            write_summary(Path(place), counts, {name: table.num_rows for name, table in events.items()})
    return summary(counts, out, format)


def _with_variables(table: pa.Table, rule: str) -> pa.Table:
    """The matches of a rule with a column for each variable."""
    held = table[rule]
    names = [*RESULT[1:], *(field.name for field in held.type)]
    return pa.table([*(table[name] for name in RESULT[1:]), *held.flatten()], names)
