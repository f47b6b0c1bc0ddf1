"""Case files: small streams and the matches they must have, the same for every engine.

The format is described in `tests/cases/README.md`. `load_cases` reads the files; `Case.differences` lists,
in words, how the rows of an engine differ from those that the case expects.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

FIELDS = frozenset(
    {
        *("case", "rulings", "why", "language", "pattern", "stream", "tie", "matches", "rows", "timeouts", "error"),
        *("warns", "rule", "emits"),
    }
)
EVENT = re.compile(
    r"(?P<label>(?P<type>[A-Za-z_]+)\d*)(?:@(?P<at>null|[\d.]+))?(?:\((?P<values>(?:'[^']*'|[^()'])*)\))?"
)
ITEM = re.compile(r"\s*(?P<name>`[^`]+`|[^\s=,`][^=,]*?)\s*=\s*(?P<value>\[[^\]]*\]|'[^']*'|<[^>]*>|[^,]+?)\s*(?:,|$)")

Binding = tuple[tuple[str, tuple[str, ...]], ...]


class CaseFormatError(ValueError):
    """A case file that does not follow its format."""


@dataclass(frozen=True)
class Expected:
    """One expected match: its events, and its variables when the case names them."""

    labels: tuple[str, ...]
    bindings: Binding | None = None
    missing: str | None = None  # of a time-out


@dataclass(frozen=True)
class Case:
    """One case: a pattern, a stream and what must come out."""

    name: str
    file: str
    line: int
    pattern: str
    events: tuple[tuple[str, Mapping[str, Any]], ...]  # (type, row)
    rulings: tuple[str, ...] = ()
    tie: tuple[str, ...] = ()
    matches: tuple[Expected, ...] | None = None
    timeouts: tuple[Expected, ...] = ()
    rows: tuple[Mapping[str, Any], ...] | None = None
    error: str | None = None
    warns: tuple[str, ...] = ()
    language: str = "sase"
    rule: str | None = None  # of a program: whose matches
    emits: tuple[tuple[str, Mapping[str, Any]], ...] | None = None  # (type, row)

    def __str__(self) -> str:
        """Pytest's id of the case."""
        return f"{Path(self.file).stem}: {self.name}"

    def inputs(self) -> dict[str, list[dict[str, Any]]]:
        """Rows per type; every row of a type has the same attributes."""
        attributes: dict[str, dict[str, None]] = {}
        for kind, row in self.events:
            attributes.setdefault(kind, {}).update(dict.fromkeys(row))
        grouped: dict[str, list[dict[str, Any]]] = {kind: [] for kind in attributes}
        for kind, row in self.events:
            grouped[kind].append({name: row.get(name) for name in attributes[kind]})
        return grouped

    @property
    def program(self) -> str:
        """The pattern with a template for every type of the stream that it does not declare.

        The types of their attributes are open, so that the data decides.
        """
        inputs = self.inputs()
        named = dict.fromkeys([*inputs, *re.findall(r"\b\w+\s*:\s*([A-Z]+)\b", self.pattern)])
        known = set(re.findall(r"\b(?:template|pattern)\s+(\w+)", self.pattern))
        every = dict.fromkeys(name for rows in inputs.values() for row in rows for name in row)
        templates = []
        for name in named:
            if name not in known:
                slots = [each for each in (inputs[name][0] if name in inputs else every) if each != "ts"]
                templates.append(f"template {name} {{ {', '.join(f'{slot} : Any' for slot in slots)} }}")
        return "\n".join([*templates, self.pattern])

    def emit_differences(self, emitted: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[str]:
        """Events that a program emitted too much or too little; none when it is right, or when the case lists none."""
        if self.emits is None:
            return []
        expected = tuple({"type": kind, **row} for kind, row in self.emits)
        found = [{"type": kind, **row} for kind, rows in emitted.items() for row in rows]
        return _row_differences(expected, found)

    def differences(self, reported: Iterable[Mapping[str, Any]]) -> list[str]:
        """Rows that an engine reported too much or too little; none when it is right."""
        rows = [dict(row) for row in reported]
        if self.rows is not None:
            return _row_differences(self.rows, rows)
        found = [row for row in rows if row.get("status") != "timeout"]
        late = [row for row in rows if row.get("status") == "timeout"]
        return _match_differences("match", self.matches or (), found) + _match_differences(
            "time-out", self.timeouts, late
        )


def load_cases(folder: Path) -> list[Case]:
    """All cases below a folder, in the order of their files."""
    return [case for path in sorted(folder.rglob("*.case")) for case in parse_cases(path.read_text(), path.name)]


def parse_cases(text: str, file: str = "<case>") -> list[Case]:
    """The cases of one file.

    >>> (case,) = parse_cases('''
    ... case: a sequence of two
    ... pattern: PATTERN SEQ(A a, B b)
    ... stream: a1 b1(x=3)
    ... matches: {a1 b1}
    ... ''')
    >>> case.inputs()["B"]
    [{'id': 'b1', 'ts': 2000000, 'x': 3}]
    """
    cases: list[dict[str, tuple[int, str]]] = []
    current: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and cases and current is not None:
            start, value = cases[-1][current]
            cases[-1][current] = (start, f"{value}\n{line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if not colon or name not in FIELDS:
            raise CaseFormatError(f"{file}:{number}: not a field: {line!r}")
        if name == "case":
            cases.append({})
        if not cases or name in cases[-1]:
            raise CaseFormatError(f"{file}:{number}: field {name!r} out of place or written twice")
        current = name
        cases[-1][name] = (number, value.strip())
    return [_case(fields, file) for fields in cases]


def _case(fields: dict[str, tuple[int, str]], file: str) -> Case:
    line = fields["case"][0]
    text = {name: value for name, (_, value) in fields.items()}
    where = f"{file}:{line}"
    outcomes = [name for name in ("matches", "rows", "error") if name in text]
    if (
        len(outcomes) != ("matches" in text or "emits" not in text)
        or "pattern" not in text
        or ("stream" not in text and "error" not in text)
    ):
        raise CaseFormatError(f"{where}: a case needs a pattern, a stream and one of matches, rows, error")
    events = parse_stream(text.get("stream", "none"), where)
    ids = {label: row["id"] for label, _, row in events}
    return Case(
        name=text["case"],
        file=file,
        line=line,
        pattern=text["pattern"],
        events=tuple((kind, row) for _, kind, row in events),
        rulings=_names(text.get("rulings", "")),
        tie=_names(text.get("tie", "")),
        matches=_expected(text["matches"], ids, where) if "matches" in text else None,
        timeouts=_expected(text.get("timeouts", "none"), ids, where),
        rows=_rows(text["rows"], where) if "rows" in text else None,
        error=text.get("error"),
        warns=_names(text.get("warns", "")),
        language=text.get("language", "sase"),
        rule=text.get("rule"),
        emits=_emitted(text["emits"], where) if "emits" in text else None,
    )


def _emitted(text: str, where: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The events of an `emits:` field; their labels only give their types."""
    found = parse_stream(text, where)
    return tuple((kind, {name: value for name, value in row.items() if value != label}) for label, kind, row in found)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_stream(text: str, where: str = "<stream>") -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
    """The events of a `stream:` field as (label, type, row)."""
    if text.strip() == "none":
        return ()
    events: list[tuple[str, str, Mapping[str, Any]]] = []
    previous, at = 0, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = EVENT.match(text, at)
        if found is None:
            raise CaseFormatError(f"{where}: not an event: {text[at : at + 20]!r}")
        at = found.end()
        time: int | None = previous + 1_000_000
        if found["at"] == "null":
            time = None
        elif found["at"]:
            time = int(Decimal(found["at"]) * 1_000_000)
        previous = previous if time is None else time
        values = _items(found["values"] or "", where)
        row = {"id": found["label"], "ts": time} | values
        events.append((found["label"], found["type"].upper(), row))
    if len({label for label, _, _ in events}) < len(events):
        raise CaseFormatError(f"{where}: a label is used twice")
    return tuple(events)


def _items(text: str, where: str) -> dict[str, Any]:
    items: dict[str, Any] = {}
    at = 0
    while at < len(text.rstrip()):
        found = ITEM.match(text, at)
        if found is None:
            raise CaseFormatError(f"{where}: not name=value: {text[at:]!r}")
        items[found["name"].strip("`")] = _value(found["value"], where)
        at = found.end()
    return items


def _value(text: str, where: str) -> Any:
    constants = {"null": None, "true": True, "false": False}
    if text in constants:
        return constants[text]
    if text.startswith("["):
        return [_value(item.strip(), where) for item in text[1:-1].split(",") if item.strip()]
    if text.startswith("'") and text.endswith("'"):
        return text[1:-1]
    if text.startswith("<"):
        return Label(text[1:-1])
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError as error:
        raise CaseFormatError(f"{where}: not a value: {text!r}") from error


class Label(str):
    """An event in a `rows:` field, by its label."""

    __slots__ = ()


def _expected(text: str, ids: Mapping[str, str], where: str) -> tuple[Expected, ...]:
    """The matches of a field, each event by its `id`, which is its label unless the case sets it."""

    def known(labels: Iterable[str]) -> tuple[str, ...]:
        unknown = [label for label in labels if label not in ids]
        if unknown:
            raise CaseFormatError(f"{where}: no such event: {', '.join(unknown)}")
        return tuple(ids[label] for label in labels)

    if text.strip() == "none":
        return ()
    found = []
    for body, missing in re.findall(r"\{([^}]*)\}(?:\s*missing=(\w+))?", text):
        tokens = body.split()
        if any("=" in token for token in tokens):
            bindings = tuple(
                sorted(
                    (name, known(labels.split(","))) for name, _, labels in (token.partition("=") for token in tokens)
                )
            )
            labels = tuple(sorted(label for _, bound in bindings for label in bound))
            found.append(Expected(labels, bindings, missing or None))
        else:
            found.append(Expected(tuple(sorted(known(tokens))), None, missing or None))
    if re.sub(r"\{[^}]*\}(?:\s*missing=\w+)?", "", text).strip() or not found:
        raise CaseFormatError(f"{where}: not a list of matches: {text!r}")
    return tuple(found)


def _rows(text: str, where: str) -> tuple[Mapping[str, Any], ...]:
    return () if text.strip() == "none" else tuple(_items(line, where) for line in text.splitlines() if line)


# --- comparing ------------------------------------------------------------------------------------


def _reported(row: Mapping[str, Any]) -> tuple[Binding, str | None]:
    bindings: dict[str, tuple[str, ...]] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            bindings[name] = (value["id"],)
        elif isinstance(value, list):
            bindings[name] = tuple(event["id"] for event in value)
    return tuple(sorted(bindings.items())), row.get("missing")


def _match_differences(kind: str, expected: tuple[Expected, ...], rows: list[dict[str, Any]]) -> list[str]:
    remaining = [_reported(row) for row in rows]
    problems = []
    for one in sorted(expected, key=lambda one: one.bindings is None):
        for index, (bindings, missing) in enumerate(remaining):
            labels = tuple(sorted(label for _, bound in bindings for label in bound))
            same = bindings == one.bindings if one.bindings is not None else labels == one.labels
            if same and missing == one.missing:
                del remaining[index]
                break
        else:
            problems.append(f"{kind} not found: {_show(one.bindings, one.labels)}")
    return problems + [f"{kind} too much: {_show(bindings, ())}" for bindings, _ in remaining]


def _show(bindings: Binding | None, labels: tuple[str, ...]) -> str:
    if bindings is None:
        return "{" + " ".join(labels) + "}"
    return "{" + " ".join(f"{name}={','.join(bound)}" for name, bound in bindings) + "}"


def _row_differences(expected: tuple[Mapping[str, Any], ...], rows: list[dict[str, Any]]) -> list[str]:
    own = {"match_id", "start", "end"}
    remaining = [
        {name: value for name, value in row.items() if name not in own or name in (expected or ({},))[0]}
        for row in rows
    ]
    problems = []
    for one in expected:
        for index, row in enumerate(remaining):
            if row.keys() == one.keys() and all(_same(row[name], one[name]) for name in one):
                del remaining[index]
                break
        else:
            problems.append(f"row not found: {dict(one)}")
    return problems + [f"row too much: {row}" for row in remaining]


def _same(reported: Any, expected: Any) -> bool:
    if isinstance(expected, Label):
        return isinstance(reported, Mapping) and reported["id"] == expected
    if isinstance(expected, list):
        return (
            isinstance(reported, list)
            and len(reported) == len(expected)
            and all(_same(one, other) for one, other in zip(reported, expected, strict=True))
        )
    if isinstance(expected, float) and isinstance(reported, float | int | Decimal):
        return math.isclose(float(reported), expected, rel_tol=1e-9, abs_tol=1e-12)
    return type(expected) is type(reported) and bool(reported == expected)


# --- rows of two engines --------------------------------------------------------------------------


OWN_COLUMNS = frozenset({"match_id"})


def assert_same_rows(reported: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> None:
    """Fail, showing what is too much and what is missing, unless both hold the same rows equally often.

    >>> assert_same_rows([{"n": 1.0, "match_id": "ab"}], [{"n": 1.0}])
    """
    found, wanted = Counter(map(frozen, reported)), Counter(map(frozen, expected))
    if found != wanted:
        lines = [f"  too much:  {_shown(row)}" for row in (found - wanted).elements()]
        lines += [f"  missing:   {_shown(row)}" for row in (wanted - found).elements()]
        raise AssertionError("the rows differ:\n" + "\n".join(lines))


def frozen(value: Any) -> Any:
    """A hashable image of a row, a list or a value; floats to twelve digits, NaN equal to itself."""
    if isinstance(value, Mapping):
        return frozenset((name, frozen(one)) for name, one in value.items() if name not in OWN_COLUMNS)
    if isinstance(value, list | tuple):
        return tuple(frozen(one) for one in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    return value


def _shown(row: Any) -> str:
    if isinstance(row, frozenset):
        return "{" + ", ".join(f"{name}: {_shown(value)}" for name, value in sorted(row, key=str)) + "}"
    return repr(row)
