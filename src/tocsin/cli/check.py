"""`tocsin check` and `tocsin explain`: check a pattern or rules, and explain their plan, before anything runs."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import tocsin
from tocsin import errors
from tocsin.algebra.programs import Program
from tocsin.api import EXPLAIN_MODES
from tocsin.cli import arguments, files, terminal
from tocsin.cli.queries import compiled, program_of
from tocsin.options import OPTIONS, Options

CHECK_FORMATS = ("text", "json")
NOTHING_GIVEN = "Names and structure are fine; add --schema TYPE=… or --input TYPE=PATH to check attributes and types."
NO_FUNCTION = "on a pattern: it declares a function that rules call"


def check(
    file: arguments.PatternFile,
    input: arguments.Inputs = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", "-s", metavar="TYPE=SCHEMA", help="`attr type, attr type`, or a JSON file."),
    ] = None,
    rate: arguments.Rates = None,
    time: arguments.Time = "ts",
    time_unit: arguments.TimeUnit = None,
    type_column: arguments.TypeColumn = "type",
    tie: arguments.Tie = None,
    lateness: Annotated[str | None, typer.Option(help="How late events may come: `10 seconds`.")] = None,
    streaming: Annotated[bool, typer.Option("--streaming", help="Refuse what no finite state can run.")] = False,
    max_state: arguments.MaxState = None,
    live_keys: arguments.LiveKeys = None,
    format: Annotated[str, typer.Option("--format", "-f", help="text or json.")] = "text",
    function: arguments.Functions = None,
    language: arguments.Language = None,
) -> None:
    r"""Check a pattern: all errors at once; then distances, lifetimes, keys and the size of its state.

    Names and structure only:

        tocsin check takeover.sase

    Against schemas, without Spark; each may also be a JSON file:

        tocsin check takeover.sase --schema "Login=ts timestamp, user string" \
                                   --schema Transfer=transfer.json

    How much would it remember on a live stream?

        tocsin check takeover.sase --input events.parquet --streaming \
                                   --rate Login=100/s --rate Transfer=20/s

    Fail when the state may need more memory than a limit:

        tocsin check fraud.parte --rate Transfer=10/ms --max-state 4GB
    """
    given = dict(locals())
    how = arguments.keywords(given, tocsin.Pattern.check)
    arguments.check_choice("format", format, CHECK_FORMATS)
    texts = arguments.named_values(schema, "--schema", "'Login=ts timestamp, user string'")
    described = {name: read_schema(name, text) for name, text in texts.items()}
    inputs = files.Inputs.of(input) if input else None
    if type_column != OPTIONS["type"].default and (inputs is None or not inputs.is_single):
        raise arguments.without_effect("--type-column", "without a single `--input`: it names the type column of one")
    if arguments.is_program(given) and inputs is not None:
        raise errors.InvalidOptionError(
            "Rules declare the types of their events: `--input` says nothing to them yet.",
            hint="compare them with the columns of a file by `--schema`.",
        )
    if function and not arguments.is_program(given):
        raise arguments.without_effect("--function", NO_FUNCTION)

    def known(program: Program) -> Any:
        return described if inputs is None else _joined(described, inputs.load(program, described))

    schemas = known if inputs or described else None
    query = compiled(given, schemas=schemas)
    found: Any = None if schemas is None else schemas(program_of(query))
    report = query.check(found, **how)
    if format == "json":
        print(json.dumps(report.to_dict(), indent=2))
        return
    if schemas is None and isinstance(query, tocsin.Pattern):
        terminal.out().print(f"{NOTHING_GIVEN}\n", markup=False)
    terminal.out().print(str(report), markup=False)


def _joined(schemas: Mapping[str, Any], frames: Any) -> Any:
    """The schemas of event types and those of files; each type is described once."""
    twice = next((name for name in schemas if not isinstance(frames, dict) or name in frames), None)
    if twice is not None:
        raise errors.InvalidOptionError(
            f"`--schema` and `--input` both describe the event type `{twice}`.", hint="give one of them."
        )
    return frames if not schemas else {**schemas, **frames}


def explain(
    file: arguments.PatternFile,
    input: arguments.Inputs = None,
    mode: Annotated[str, typer.Option(help="Spark's plan: simple, extended, codegen, cost, formatted.")] = "simple",
    time: arguments.Time = "ts",
    time_unit: arguments.TimeUnit = None,
    type_column: arguments.TypeColumn = "type",
    tie: arguments.Tie = None,
    strategy: arguments.Strategy = "auto",
    function: arguments.Functions = None,
    language: arguments.Language = None,
) -> None:
    """Explain how a pattern is understood and run; with inputs, Spark's own plan too.

    Without data:

        tocsin explain takeover.sase

    With Spark's plan:

        tocsin explain takeover.sase --input events.parquet --mode formatted
    """
    given = dict(locals())
    if arguments.is_program(given):
        for name, parameter in inspect.signature(explain).parameters.items():
            if name not in ("file", "function", "language") and given[name] != parameter.default:
                flag = f"--{name.replace('_', '-')}"
                raise arguments.without_effect(flag, "on a program, which is explained without inputs")
    elif function:
        raise arguments.without_effect("--function", NO_FUNCTION)
    Options(strategy=strategy)
    arguments.check_choice("mode", mode, EXPLAIN_MODES)
    inputs = files.Inputs.of(input) if input else None
    query = compiled(given, schemas=None if inputs is None else inputs.load)
    how = arguments.keywords(given, query.explain)
    if isinstance(query, tocsin.Pattern):
        how["inputs"] = None if inputs is None else inputs.load(program_of(query))
    terminal.out().print(str(query.explain(**how)), markup=False)


# --- schemas --------------------------------------------------------------------------------------


def read_schema(event_type: str, text: str) -> Mapping[str, str]:
    """A schema given as `"attr type, attr type"`, or as a JSON file.

    The file holds `{"attr": "type"}`, or what `df.schema.json()` gives.

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


# The types of more than one word, and the rest of a column in DDL.
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
    # Brackets that remain are not closed: the library refuses them.
    if not ONE_TYPE.fullmatch(words) and not re.search(r"[<>()]", words):
        raise errors.InvalidOptionError(
            f"`{kind}` in the schema of `{event_type}` is not the type of `{attribute}`: is a comma missing?",
            hint=f"put a comma between attributes: `--schema '{event_type}={_with_commas(attribute, kind)}'`.",
        )


def _with_commas(attribute: str, kind: str) -> str:
    """A schema that may have been meant: names and types in turn, when they come in pairs."""
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
    except (ValueError, KeyError, TypeError, RecursionError):
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
