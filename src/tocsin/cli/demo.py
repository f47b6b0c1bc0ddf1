"""`tocsin demo`: frauds in bundled streams, found by rules or by a pattern on a local Spark, and drawn."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer
from rich.text import Text

import tocsin
from tocsin import datasets, errors
from tocsin.cli import files, terminal
from tocsin.cli.arguments import check_choice
from tocsin.cli.drawing import Found, Lane, as_svg, as_text
from tocsin.cli.run import Counters
from tocsin.cli.session import running, started

Event = Mapping[str, Any]


def demo(
    name: Annotated[
        str, typer.Argument(metavar="[fraud|bank]", help="Rules on transfers, or a pattern on logins.")
    ] = "fraud",
    picture: Annotated[
        str | None, typer.Option(metavar="PATH", help="Save a picture of the matches too, as .svg.")
    ] = None,
) -> None:
    """Find frauds in a bundled stream: rules, timelines, what was found and what was not.

    There is nothing to prepare:

        tocsin demo

    Account takeovers, by a pattern:

        tocsin demo bank

    It runs on a local Spark and needs nothing but a JDK.
    """
    check_choice("demo", name, ("fraud", "bank"))
    if name == "bank" and picture is not None:
        raise errors.InvalidOptionError("`tocsin demo bank` draws no picture.", hint="leave out `--picture`.")
    if picture is not None and not picture.endswith(".svg"):
        raise errors.InvalidOptionError(
            f"`--picture {picture}` is not the name of a .svg file.", hint="write `--picture fraud.svg`."
        )
    if name == "bank":
        _bank()
    else:
        _fraud(picture)


def coloured(query: str) -> Text:
    """A query with colors, set in a little; rich leaves them out where there is no terminal."""
    from rich.syntax import Syntax

    # Set in by hand: rich fills the lines of a `Padding` up to the width of the console, which a file has none of.
    text = Syntax("", "sql", theme="ansi_dark", background_color="default").highlight(indent(query.strip(), "  "))
    text.rstrip()
    return text


def _short(path: str | Path) -> str:
    """A path below the working directory, when it is there."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else str(path)


# --- bank: a pattern ------------------------------------------------------------------------------

TAKEOVERS = """\
One morning at a small bank: logins, password changes, transfers and alerts of
twelve customers. Some accounts are taken over: somebody logs in from abroad,
sets a new password, and sends a large amount within a quarter of an hour.
Others come close and are innocent."""
AROUND = dt.timedelta(minutes=12)
TYPES = {"Login": "L", "PasswordChange": "P", "Transfer": "T", "Alert": "A"}


def _bank() -> None:
    """Match the bundled stream on a local Spark and show everything."""
    console = terminal.out()
    source, stream = datasets.pattern_path("bank"), str(datasets.path("bank"))
    pattern = tocsin.pattern(source.read_text(encoding="utf-8"))
    console.print(TAKEOVERS, end="\n\n")
    console.print(coloured(pattern.text), end="\n\n")
    spark, steps = started()
    counters = Counters("ts")
    with steps.step("Planning"):
        found = counters.found(pattern.match(counters.read(files.read(spark, stream))))
    with steps.step("Matching"), running([stream]):
        matches = found.orderBy("start", "end").toArrow().to_pylist()
    events = datasets.load("bank")
    for match in matches:
        times = tuple(match[name].replace(tzinfo=dt.UTC) for name in ("start", "changed", "sent"))
        own = tuple((event["ts"], event["type"]) for event in events if event["user"] == match["user"])
        lane = Lane(match["user"], times[0] - AROUND, times[-1] + AROUND, own, (Found(times),))
        console.print(as_text(lane, TYPES))
    console.print("\nL login   P password change   T transfer   A alert      └──┴──┘ a match\n")
    columns = {"user": "user", "country": "country", "start": "login", "changed": "changed", "sent": "sent"}
    shown = [[_cell(match[name]) for name in (*columns, "amount")] for match in matches]
    console.print(terminal.rows_table([*columns.values(), "amount"], shown))
    console.print(counters.sentence(), end="\n\n")
    console.print(steps.table())
    console.print(f"\nTry it yourself:\n  tocsin run {_short(source)} --input {_short(stream)}")


def _cell(value: Any) -> str:
    return f"{value:%H:%M:%S}" if isinstance(value, dt.datetime) else str(value)


# --- fraud: rules ---------------------------------------------------------------------------------

FRAUDS = """\
Some days of a small bank: 21 transfers and a claim. Some accounts are mules: they
get money and pass it on, at once or in parts. Somebody sends money, gets it back,
and claims that it was a mistake. Four rules say what to look for; here is one."""
SHOWN_RULE = "FraudPassThrough"
RATES = {"MoneyTransferred": "10 per second", "FraudulentTransactionClaimed": "1 per minute"}
COLORS = {"money in": "#3ca951", "money out": "#4269d0", "claim": "#a463f2"}
LETTERS = {"money in": "I", "money out": "O", "claim": "C"}
WINDOW, WIDER = "14 days", "21 days"


@dataclass(frozen=True)
class Case:
    """A match: its rule, and its events in order of time: transfers, and the claim if it has one."""

    rule: str
    events: tuple[Event, ...]

    @classmethod
    def of(cls, rule: str, match: Mapping[str, Any]) -> Case:
        """From a row of matches."""
        bound = [held for name, held in match.items() if name not in ("match_id", "start", "end")]
        events = [event for held in bound for event in (held if isinstance(held, list) else [held])]
        return cls(rule, tuple(sorted(events, key=lambda event: (event["ts"], event["id"] or 0))))

    @property
    def transfers(self) -> list[Event]:
        """Its events without the claim."""
        return [event for event in self.events if event["id"] is not None]

    @property
    def ids(self) -> list[int]:
        """The numbers of its transfers."""
        return [transfer["id"] for transfer in self.transfers]

    def __str__(self) -> str:
        """Which transfers, and who did what."""
        return f"{self.rule} of {_listed(list(map(str, self.ids)))}: {self.words}"

    @property
    def words(self) -> str:
        """Who did what."""
        first, *others = self.transfers
        sent = f"{_euros(first)} from {first['originator']} to {first['destination']}"
        parts = [f"{_euros(other)} to {other['destination']}" for other in others]
        return f"{sent}, then {_listed(parts)}" + (", and a claim" if len(self.transfers) < len(self.events) else "")

    def lane(self, events: Sequence[Event]) -> Lane:
        """The events around it on the account of the mule, or of the victim."""
        account = str(self.transfers[0]["destination"])
        times = [event["ts"].replace(tzinfo=dt.UTC) for event in self.events]
        around = (times[-1] - times[0]) / 12
        found = Found(tuple(times), f"{self.rule}: {self.words}")
        own = tuple(_events_of(account, events))
        return Lane(f"account {account}", times[0] - around, times[-1] + around, own, (found,))


def _events_of(account: str, events: Sequence[Event]) -> Iterator[tuple[dt.datetime, str]]:
    received = {event["id"] for event in events if event["destination"] == account}
    for event in events:
        if event["destination"] == account:
            yield event["ts"], "money in"
        elif event["originator"] == account:
            yield event["ts"], "money out"
        elif event["transaction_id"] in received:
            yield event["ts"], "claim"


def _euros(event: Event) -> str:
    return f"{event['amount']} €"


def _listed(parts: Sequence[str]) -> str:
    *some, last = parts
    return f"{', '.join(some)} and {last}" if some else last


def _fraud(save: str | None) -> None:
    """Run the rules on the bundled trace and show everything; with a path, save the picture there."""
    console = terminal.out()
    source, stream = datasets.pattern_path("fraud"), str(datasets.path("fraud"))
    text = source.read_text(encoding="utf-8")
    program = _program(text)
    patterns = "\n".join(line for line in text.splitlines() if line.startswith("pattern "))
    console.print(FRAUDS, end="\n\n")
    rule = text[text.index(f"rule {SHOWN_RULE} ") :].partition("\n\n")[0]
    console.print(coloured(f"{patterns}\n\n{rule}"), end="\n\n")
    spark, steps = started()
    cases: list[Case] = []
    with running([stream]):
        with steps.step("Reading"):
            events = files.read(spark, stream)
        for name in (rule.name for rule in program.program.rules):
            with steps.step(name):
                rows = program.matches(name, events).orderBy("start", "end").toArrow().to_pylist()
            cases += [Case.of(name, row) for row in rows]
    known = datasets.load("fraud")
    for case in cases:
        console.print(str(case), markup=False)
        console.print(as_text(case.lane(known), LETTERS, width=64), markup=False, end="\n\n")
    console.print("I money in   O money out   C claim      └──┴──┘ a match\n")
    console.print("Not found, and why:", end="\n")
    for line in _not_found(text, known, cases):
        console.print(f"  {line}", markup=False)
    console.print(f"\nHow much would this remember on a live stream of {RATES['MoneyTransferred']}?\n")
    console.print(str(program.check(rates=RATES)), markup=False)
    console.print()
    console.print(steps.table())
    if save is not None:
        Path(save).parent.mkdir(parents=True, exist_ok=True)
        Path(save).write_text(picture_of(cases, known), encoding="utf-8")
        console.print(f"\nThe picture is in {_short(save)}.", markup=False)
    console.print(f"\nThe rules: {_short(source)}\nThe trace: {_short(stream)}", markup=False)


def _program(text: str, routes: Sequence[tuple[str, str]] | None = None) -> tocsin.Rules:
    return tocsin.rules(text, tables={"known_route": datasets.known_routes() if routes is None else routes})


def _not_found(text: str, events: list[dict[str, Any]], cases: Sequence[Case]) -> Iterator[str]:
    """Cases that only one condition excludes: the rules are run again without it, in plain Python."""
    for why, program in (
        ("money usually goes this way", _program(text, routes=[])),
        (f"more than {WINDOW} lie between", _program(text.replace(WINDOW, WIDER))),
    ):
        for case in found_by_reference(program, events):
            if case.ids not in [one.ids for one in cases]:
                yield f"{case}; {why}."
    alone = [event for event in events if event["id"] == 1]
    yield from (f"Nothing follows {event['id']}: {_euros(event)} to {event['destination']}." for event in alone)


def found_by_reference(program: tocsin.Rules, events: list[dict[str, Any]]) -> list[Case]:
    """The cases that the definition gives, without Spark."""
    found = tocsin.reference.evaluate(program, events)
    return [Case.of(rule, match) for rule, matches in found.items() for match in matches]


def picture_of(cases: Sequence[Case], events: Sequence[Event]) -> str:
    """The cases as SVG, a lane each."""
    title = "Money mules and a refund scam found in a trace of transfers"
    return as_svg(title, COLORS, [case.lane(events) for case in cases])
