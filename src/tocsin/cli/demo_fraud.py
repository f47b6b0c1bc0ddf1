"""`tocsin demo`: money mules and a refund scam among 21 transfers, found by rules on a local Spark, and drawn."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tocsin
from tocsin import datasets, errors
from tocsin.cli import files, picture, terminal, timeline
from tocsin.cli.session import start, task_progress
from tocsin.cli.shown import coloured, short

STORY = """\
Some days of a small bank: 21 transfers and a claim. Some accounts are mules: they
get money and pass it on, at once or in parts. Somebody sends money, gets it back,
and claims that it was a mistake. Four rules say what to look for; here is one."""
SHOWN_RULE = "FraudPassThrough"
RATES = {"MoneyTransferred": "10 per second", "FraudulentTransactionClaimed": "1 per minute"}
COLORS = {"money in": "#3ca951", "money out": "#4269d0", "claim": "#a463f2"}
LETTERS = {"money in": "I", "money out": "O", "claim": "C"}
WINDOW, WIDER = "14 days", "21 days"

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A match: its rule, its transfers in order of time, the claim if it has one, and the account it is about."""

    rule: str
    transfers: tuple[Event, ...]
    claims: tuple[Event, ...]

    @classmethod
    def of(cls, rule: str, match: Mapping[str, Any]) -> Case:
        """From a row of matches."""
        bound = [held for name, held in match.items() if name not in ("match_id", "start", "end")]
        events = [event for held in bound for event in (held if isinstance(held, list) else [held])]
        ordered = sorted(events, key=lambda event: (event["ts"], event["id"] or 0))
        transfers = tuple(event for event in ordered if event["id"] is not None)
        return cls(rule, transfers, tuple(event for event in ordered if event["id"] is None))

    @property
    def account(self) -> str:
        """The mule, or the victim."""
        return str(self.transfers[0]["destination"])

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of its transfers."""
        return tuple(transfer["id"] for transfer in self.transfers)

    def numbers(self) -> str:
        """The same in words."""
        return _listed(list(map(str, self.ids)))

    def words(self) -> str:
        """Who did what."""
        first, *others = self.transfers
        sent = f"{_euros(first)} from {first['originator']} to {first['destination']}"
        parts = [f"{_euros(other)} to {other['destination']}" for other in others]
        return f"{sent}, then {_listed(parts)}" + (", and a claim" if self.claims else "")


def demo(save: str | None) -> None:
    """Run the rules on the bundled trace and show everything; with a path, save the picture there."""
    if save is not None and not save.endswith(".svg"):
        raise errors.InvalidOptionError(
            f"`--picture {save}` is not the name of a .svg file.", hint="write `--picture fraud.svg`."
        )
    console = terminal.out()
    source, stream = datasets.pattern_path("fraud"), str(datasets.path("fraud"))
    text = source.read_text(encoding="utf-8")
    program = _program(text)
    console.print(STORY, end="\n\n")
    console.print(coloured(_rule(text, SHOWN_RULE)), end="\n\n")
    steps = terminal.Steps()
    with steps.step("Starting Spark"):
        spark = start()
    progress = task_progress(spark)
    cases: list[Case] = []
    with files.running([stream]):
        with steps.step("Reading", progress):
            events = files.read(spark, stream)
        for rule in program.program.rules:
            with steps.step(rule.name, progress):
                rows = program.matches(rule.name, events).orderBy("start", "end").toArrow().to_pylist()
            cases += [Case.of(rule.name, row) for row in rows]
    known = datasets.load("fraud")
    for case in cases:
        console.print(f"{case.rule} of {case.numbers()}: {case.words()}", markup=False)
        console.print(_timeline(case, known), markup=False, end="\n\n")
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
        Path(save).write_text(drawing(cases, known), encoding="utf-8")
        console.print(f"\nThe picture is in {short(save)}.", markup=False)
    console.print(f"\nThe rules: {short(source)}\nThe trace: {short(stream)}", markup=False)


def _program(text: str, routes: Sequence[tuple[str, str]] | None = None) -> tocsin.Rules:
    return tocsin.rules(text, tables={"known_route": datasets.known_routes() if routes is None else routes})


def _rule(text: str, name: str) -> str:
    """The text of one rule, with what the named patterns in it say."""
    patterns = "\n".join(line for line in text.splitlines() if line.startswith("pattern "))
    return f"{patterns}\n\n{text[text.index(f'rule {name} ') :].partition(chr(10) * 2)[0]}"


# --- what was not found ---------------------------------------------------------------------------


def _not_found(text: str, events: list[dict[str, Any]], cases: Sequence[Case]) -> Iterator[str]:
    """What would have been found but for one condition: the rules are run again without it, in plain Python."""
    for why, program in (
        ("money usually goes this way", _program(text, routes=[])),
        (f"more than {WINDOW} lie between", _program(text.replace(WINDOW, WIDER))),
    ):
        for case in found_by_reference(program, events):
            if case.ids not in [one.ids for one in cases]:
                yield f"{case.rule} of {case.numbers()}: {case.words()}; {why}."
    alone = [event for event in events if event["id"] == 1]
    yield from (f"Nothing follows {event['id']}: {_euros(event)} to {event['destination']}." for event in alone)


def found_by_reference(program: tocsin.Rules, events: list[dict[str, Any]]) -> list[Case]:
    """The cases that the definition gives, without Spark."""
    found = tocsin.reference.evaluate(program, events)
    return [Case.of(rule, match) for rule, matches in found.items() for match in matches]


# --- pictures -------------------------------------------------------------------------------------


def _marks(account: str, events: Sequence[Event]) -> Iterator[tuple[dt.datetime, str]]:
    own = {event["id"] for event in events if event["destination"] == account}
    for event in events:
        if event["destination"] == account:
            yield event["ts"], "money in"
        elif event["originator"] == account:
            yield event["ts"], "money out"
        elif event["transaction_id"] in own:
            yield event["ts"], "claim"


def _span(case: Case) -> list[dt.datetime]:
    times = sorted(event["ts"] for event in (*case.transfers, *case.claims))
    return [time.replace(tzinfo=dt.UTC) for time in times]


def _timeline(case: Case, events: Sequence[Event]) -> str:
    times = _span(case)
    marks = tuple(timeline.Mark(at, LETTERS[kind]) for at, kind in _marks(case.account, events))
    line = timeline.Line(f"account {case.account}", marks, (tuple(times),))
    around = (times[-1] - times[0]) / 12
    return timeline.draw([line], times[0] - around, times[-1] + around, width=64)


def drawing(cases: Sequence[Case], events: Sequence[Event]) -> str:
    """The cases as SVG, a lane each."""
    lanes = []
    for case in cases:
        times = _span(case)
        around = (times[-1] - times[0]) / 12
        found = picture.Found(times[0], times[-1], f"{case.rule}: {case.words()}")
        lanes.append(
            picture.Lane(
                f"account {case.account}",
                times[0] - around,
                times[-1] + around,
                tuple(_marks(case.account, events)),
                (found,),
            )
        )
    return picture.draw("Money mules and a refund scam found in a trace of transfers", COLORS, lanes)


def _euros(event: Event) -> str:
    return f"{event['amount']} €"


def _listed(parts: Sequence[str]) -> str:
    *some, last = parts
    return f"{', '.join(some)} and {last}" if some else last
