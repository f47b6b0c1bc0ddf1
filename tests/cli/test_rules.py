"""Programs of rules on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tocsin.cli.app import app

BANK = "template Transfer { account : String, amount : Amount } template Alert { account : String }\n"
FRAUD = """use bank
rule Large where
  t : Transfer { amount > 1000, unusual(account) }
  no other : Transfer { account = t.account }
when
  no other in t [1 second, 60 seconds]
then
  emit Alert at t.timestamp with { account = t.account }
"""


@pytest.fixture
def fraud(tmp_path: Path) -> str:
    (tmp_path / "bank.parte").write_text(BANK)
    path = tmp_path / "fraud.parte"
    path.write_text(FRAUD)
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_check_reads_modules_beside_the_file_and_tells_lifetimes_and_sizes(fraud: str) -> None:
    result = run("check", fraud, "--function", "unusual=boolean", "--rate", "Transfer=10/s")
    assert result.exit_code == 0, result.output
    assert "NOT other  59 s" in result.output
    assert "0        Transfer  10/s  1 min  610     43.9 kB  610" in result.output
    assert "rule Large, reference only:" in result.output or "Spark, local and reference" in result.output


def test_check_for_tools(fraud: str) -> None:
    result = run("check", fraud, "--function", "unusual=boolean", "--rate", "Transfer=10/s", "--format", "json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["rules"][0]["lifetimes_us"] == {"t": 60_000_000, "other": 59_000_000}


def test_check_refuses_a_program_that_may_keep_too_much(fraud: str) -> None:
    given = ["check", fraud, "--function", "unusual=boolean", "--rate", "Transfer=10/s", "--max-state"]
    assert run(*given, "44 kB").exit_code == 0
    wrong = run(*given, "43kB", "--format", "json")
    assert wrong.exit_code == 1
    assert json.loads(wrong.stdout)["error"]["condition"] == "STATE_TOO_LARGE"


def test_streaming_needs_the_rates_of_a_program(fraud: str) -> None:
    refused = run("check", fraud, "--function", "unusual=boolean", "--streaming")
    assert refused.exit_code == 1
    assert "[MISSING_RATE]" in refused.output
    assert "Rule S14" in refused.output


def test_check_against_schemas(fraud: str) -> None:
    given = ["check", fraud, "--function", "unusual=boolean", "--schema"]
    assert run(*given, "Transfer=ts timestamp, account string, amount double").exit_code == 0
    wrong = run(*given, "Transfer=ts timestamp, account bigint, amount double")
    assert wrong.exit_code != 0
    assert "[TYPE_MISMATCH]" in wrong.output


def test_errors_show_their_place_and_restriction(fraud: str) -> None:
    result = run("check", fraud)
    assert result.exit_code != 0
    assert "[UNKNOWN_FUNCTION]" in result.output
    assert "fraud.parte:3:" in result.output
    streaming = run("check", fraud, "--function", "unusual=boolean", "--streaming")
    assert "Rule S14:" in streaming.output


def test_explain(fraud: str) -> None:
    result = run("explain", fraud, "--function", "unusual=boolean")
    assert result.exit_code == 0, result.output
    assert "== Rule Large ==" in result.output


def test_run_has_no_functions_of_ones_own(fraud: str) -> None:
    result = run("run", fraud, "--input", "Transfer=transfers.csv")
    assert result.exit_code != 0
    assert "[UNKNOWN_FUNCTION]" in result.output
