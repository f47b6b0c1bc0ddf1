"""The bundled program on the bundled trace: requirements 61 and 62 as they are shipped."""

from __future__ import annotations

from typing import Any

import pytest

import tocsin
from tocsin import datasets

FOUND = {
    "FraudPassThrough": [(2, 10)],
    "FraudDiffusion": [(4, 6, 9, 200)],
    "FraudDiffusionInAll": [(4, (6, 9, 200))],
    "FraudRefundScam": [(13, 201), (13, 5003)],
}


def shipped(text: str | None = None, **options: Any) -> tocsin.Rules:
    given = {"tables": {"known_route": datasets.known_routes()}} | options
    return tocsin.rules(text or datasets.pattern_path("fraud").read_text(encoding="utf-8"), **given)


def ids(matches: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Each match as the ids of its transfers; those that were gathered as a tuple."""

    def of(value: Any) -> Any:
        return tuple(sorted(event["id"] for event in value)) if isinstance(value, list) else value["id"]

    return sorted(
        tuple(of(value) for name, value in match.items() if name not in ("match_id", "start", "end", "claim"))
        for match in matches
    )


def test_the_bundled_program_finds_the_cases_of_the_trace_and_no_others() -> None:
    program = shipped()
    assert program.warnings == ()
    found = tocsin.reference.evaluate(program, datasets.load("fraud"))
    assert {rule: ids(matches) for rule, matches in found.items()} == FOUND


@pytest.mark.parametrize("rule", FOUND)
def test_the_local_engine_finds_them_too(rule: str) -> None:
    assert ids(shipped().matches(rule, datasets.load("fraud"), engine="local").to_pylist()) == FOUND[rule]


def test_a_case_of_diffusion_is_one_event() -> None:
    emitted = tocsin.reference.events(shipped(), datasets.load("fraud"))
    assert [event["incoming_transactions"] for event in emitted["SuspiciousSequenceDetected"]] == [[2], [4]]
    (found,) = emitted["DiffusionDetected"]
    assert (found["mule_account"], found["sent_on"], found["transfers"]) == ("H", 310, 3)


def test_routes_may_be_a_function_instead_of_a_table() -> None:
    routes = set(datasets.known_routes())
    known = tocsin.function(lambda a, b: (a, b) in routes, gives="boolean", pure=True)
    program = shipped(tables=None, functions={"known_route": known})
    found = tocsin.reference.evaluate(program, datasets.load("fraud"))
    assert {rule: ids(matches) for rule, matches in found.items()} == FOUND
