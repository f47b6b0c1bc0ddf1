"""When a search is compiled: at once for much data, otherwise when plain Python has cost as much."""

from __future__ import annotations

import math

import pytest

from tocsin.kernels import compile, kept_functions

TEXT = "@compiled\ndef search():\n    return 0, 0, 0, 0\n"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile, "_spent", {})
    monkeypatch.setattr(compile, "_ready", set())
    monkeypatch.setattr(compile, "_price", lambda text: 3.0)


def test_a_worker_rents_until_it_has_paid_the_price() -> None:
    assert not compile.is_worth_compiling(TEXT, 1000)
    for _ in range(3):
        compile.note_plain(TEXT, 0.9)
        assert not compile.is_worth_compiling(TEXT, 1000)
    compile.note_plain(TEXT, 0.9)
    assert compile.is_worth_compiling(TEXT, 0)
    assert not compile.is_worth_compiling(TEXT + "\n", 0)


def test_a_task_that_will_cost_as_much_is_worth_it() -> None:
    assert compile.is_worth_compiling(TEXT, math.ceil(3.0 / compile.PER_ROW))


def test_what_is_compiled_is_used() -> None:
    compile._ready.add(TEXT)
    assert compile.is_worth_compiling(TEXT, 0)


def test_the_price_is_low_for_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    new = compile._price(TEXT)
    monkeypatch.setattr(kept_functions, "has", lambda module: module == compile._name(TEXT))
    assert new - compile._price(TEXT) == pytest.approx(compile.COMPILING - compile.READING)
    monkeypatch.setenv("TOCSIN_JIT", "0")
    assert compile._price(TEXT) == math.inf
