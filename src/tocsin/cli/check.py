"""`tocsin check` and `tocsin explain`: what is known of a pattern before it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.ties import ordered_by_ties
from tocsin.algebra.units import check_unit
from tocsin.api import EXPLAIN_MODES
from tocsin.cli import files, terminal
from tocsin.cli.programs import compiled_rules, is_program, show
from tocsin.cli.run import compiled, input_frames
from tocsin.explain.check import Demands, reported
from tocsin.options import OPTIONS, check_option
from tocsin.reports import CheckReport

CHECK_FORMATS = ("text", "json")
TIME, TYPE_COLUMN = OPTIONS["time"].default, OPTIONS["type"].default


def _without_effect(option: str, why: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{option}` has no effect {why}.", hint="leave it out.")


def check(
    file: str,
    *,
    inputs: list[str],
    schemas: list[str],
    rates: list[str],
    time: str,
    time_unit: str | None,
    type_column: str,
    tie: list[str],
    lateness: str | None,
    streaming: bool,
    max_state: str | None,
    live_keys: int | None,
    format: str,
    language: str | None,
    functions: list[str],
) -> None:
    """Check a pattern against schemas, or against the columns of files, and print the report."""
    if format not in CHECK_FORMATS:
        raise errors.InvalidOptionError(
            f"There is no format `{format}`.", hint=errors.did_you_mean(format, CHECK_FORMATS, "formats")
        )
    given: dict[str, Any] = {
        name: read_schema(name, text)
        for name, text in files.named_values(schemas, "--schema", "'Login=ts timestamp, user string'").items()
    }
    if type_column != TYPE_COLUMN and (len(inputs) != 1 or not isinstance(files.input_paths(inputs), str)):
        raise _without_effect("--type-column", "without a single `--input`: it names the type column of one")
    per_type = files.named_values(rates, "--rate", "Login=100/s") or None
    demands = Demands(per_type, lateness, streaming, max_state, live_keys)
    if is_program(file, language):
        if inputs:
            raise errors.InvalidOptionError(
                "Rules declare the types of their events: `--input` says nothing to them yet.",
                hint="compare them with the columns of a file by `--schema`.",
            )
        show(
            compiled_rules(file, functions).check(
                given or None, time=time, tie=tie, time_unit=time_unit, **vars(demands)
            ),
            format,
        )
        return
    if functions:
        raise _without_effect("--function", "on a pattern: it declares a function that rules call")

    def known(query: alg.Query) -> Any:
        return _described(given, input_frames(query, inputs)) if inputs else given

    is_known = bool(inputs or given)
    pattern = compiled(file, language, known if is_known else None, time=time, type_column=type_column)
    report: CheckReport
    if not is_known:
        check_unit(time_unit)
        query = ordered_by_ties(pattern.query) if tie else pattern.query
        report = reported(StructureReport, query, demands, (), [], clock=time, warnings=pattern.warnings)
        if format == "text":
            terminal.out().print(f"{NOTHING_GIVEN}\n", markup=False)
    else:
        columns: dict[str, Any] = {"time": time, "tie": tie, "type": type_column, "time_unit": time_unit}
        report = pattern.check(known(pattern.query), **columns, **vars(demands))
    show(report, format)


def _described(schemas: Mapping[str, Any], frames: Any) -> Any:
    """The schemas of event types and those of files; each type is described once."""
    twice = next((name for name in schemas if not isinstance(frames, dict) or name in frames), None)
    if twice is not None:
        raise errors.InvalidOptionError(
            f"`--schema` and `--input` both describe the event type `{twice}`.", hint="give one of them."
        )
    return frames if not schemas else {**schemas, **frames}


NOTHING_GIVEN = "Names and structure are fine; add --schema TYPE=… or --input TYPE=PATH to check attributes and types."


class StructureReport(CheckReport):
    """What is known of a pattern without the schemas of its events: all but the types of its result."""

    def __str__(self) -> str:
        """The report in sections, without the first, which tells the types of the result."""
        return super().__str__().partition("\n\n")[2]

    def to_dict(self) -> dict[str, Any]:
        """The report for tools; the columns are not known."""
        return super().to_dict() | {"columns": None}


def explain(
    file: str,
    *,
    inputs: list[str],
    mode: str,
    time: str,
    time_unit: str | None,
    type_column: str,
    tie: list[str],
    strategy: str,
    language: str | None,
    functions: list[str],
) -> None:
    """Print how a pattern is understood and planned."""
    if is_program(file, language):
        for name, is_given in {
            "--input": bool(inputs),
            "--mode": mode != EXPLAIN_MODES[0],
            "--time": time != TIME,
            "--time-unit": time_unit is not None,
            "--type-column": type_column != TYPE_COLUMN,
            "--tie": bool(tie),
            "--strategy": strategy != "auto",
        }.items():
            if is_given:
                raise _without_effect(name, "on a program, which is explained without inputs")
        terminal.out().print(str(compiled_rules(file, functions).explain()), markup=False)
        return
    check_option("strategy", strategy)
    if functions:
        raise _without_effect("--function", "on a pattern: it declares a function that rules call")
    if mode not in EXPLAIN_MODES:
        raise errors.InvalidOptionError(
            f"There is no mode `{mode}`.", hint=errors.did_you_mean(mode, EXPLAIN_MODES, "modes")
        )

    def known(query: alg.Query) -> Any:
        return input_frames(query, inputs)

    pattern = compiled(file, language, known if inputs else None, time=time, type_column=type_column)
    frames = known(pattern.query) if inputs else None
    columns: dict[str, Any] = {"time": time, "tie": tie or None, "type": type_column, "time_unit": time_unit}
    report = pattern.explain(frames, mode=mode, strategy=strategy, **columns)
    terminal.out().print(str(report), markup=False)


# --- schemas --------------------------------------------------------------------------------------


def read_schema(event_type: str, text: str) -> Mapping[str, str]:
    """A schema given as `"attr type, attr type"`, or as a JSON file.

    The file holds `{"attr": "type"}`, or what `df.schema.json()` gives.

    Examples
    --------
    >>> read_schema("Login", "ts timestamp, user string, place struct<lat: double, lon: double>")
    {'ts': 'timestamp', 'user': 'string', 'place': 'struct<lat: double, lon: double>'}
    """
    if text.endswith(".json"):
        return _read_json(event_type, text)
    attributes: dict[str, str] = {}
    for part in _split(text):
        found = re.fullmatch(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*:?\s+(\S.*?)\s*", part)
        if found is None:
            raise errors.InvalidOptionError(
                f"`{part.strip()}` in the schema of `{event_type}` is not an attribute and its type.",
                hint=f"write `--schema '{event_type}=ts timestamp, user string, amount double'`, or name a JSON file.",
            )
        name = (found[1] or found[2]).replace("``", "`")
        _check_one_type(event_type, name, found[3])
        attributes[name] = found[3]
    return attributes


# The types of more than one word, and what DDL says of a column after its type.
ONE_TYPE = re.compile(
    r"(?:interval (?:year|month|day|hour|minute|second)(?: to \w+)?|double precision"
    r"|timestamp with(?:out| local)? time zone|\w+)(?: collate \w+)?(?: not null)?(?: comment .*)?",
    re.IGNORECASE,
)


def _check_one_type(event_type: str, attribute: str, kind: str) -> None:
    """Refuse `timestamp user string`: the names of types would hide that a comma is missing."""
    words = kind
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", words)) != words:
        words = shorter
    words = " ".join(words.split())
    # Brackets that remain are not closed; the library tells.
    if not ONE_TYPE.fullmatch(words) and not re.search(r"[<>()]", words):
        raise errors.InvalidOptionError(
            f"`{kind}` in the schema of `{event_type}` is not the type of `{attribute}`: is a comma missing?",
            hint=f"put a comma between attributes: `--schema '{event_type}={_with_commas(attribute, kind)}'`.",
        )


def _with_commas(attribute: str, kind: str) -> str:
    """What may have been meant: names and types in turn, when they come in pairs."""
    words = [attribute, *kind.split()]
    if len(words) % 2 or re.search(r"[<>()]", kind):
        return "ts timestamp, user string"
    return ", ".join(f"{name} {of}" for name, of in zip(words[::2], words[1::2], strict=True))


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside a type."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _read_json(event_type: str, path: str) -> Mapping[str, str]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if isinstance(content, dict) and isinstance(content.get("fields"), list):
            return {field["name"]: _type_name(field["type"]) for field in content["fields"]}
        if isinstance(content, dict) and all(isinstance(kind, str) for kind in content.values()):
            return content
    except OSError as error:
        raise errors.InputNotReadableError(
            f"The schema of `{event_type}`, `{path}`, cannot be read: {error.strerror}."
        ) from None
    except (ValueError, KeyError, TypeError):
        pass
    raise errors.InputNotReadableError(
        f"The schema of `{event_type}`, `{path}`, is not a schema.",
        hint='it should hold `{"ts": "timestamp", "user": "string"}`, or what `df.schema.json()` gives.',
    )


def _type_name(kind: Any) -> str:
    """A type of Spark's JSON in its short form."""
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "struct":
            fields = (f"`{field['name'].replace('`', '``')}`:{_type_name(field['type'])}" for field in kind["fields"])
            return f"struct<{','.join(fields)}>"
        case "array":
            return f"array<{_type_name(kind['elementType'])}>"
        case "map":
            return f"map<{_type_name(kind['keyType'])},{_type_name(kind['valueType'])}>"
        case _:
            return str(kind["type"])
