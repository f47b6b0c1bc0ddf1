"""The command line as tests call it, and a program of rules that several of them run."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from tocsin.cli.app import app

PROGRAM = """
template Sent   { account : Integer, amount : Integer }
template Claim  { account : Integer }
template Alert  { account : Integer, amount : Integer }
rule Large where s : Sent { amount > 100, NOT known(account) }
  then emit Alert at s.timestamp + 1 second with { account = s.account, amount = s.amount }
rule Claimed where s : Sent c : Claim { account = s.account } when c in s [0 s, 10 s]
rule Unclaimed where a : Alert no c : Claim { account = a.account } when no c in a [0 s, 10 s]
"""


def tocsin(*arguments: str, stdin: str | None = None) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, list(arguments), input=stdin)


def done(*arguments: str) -> Result:
    """Run a command that succeeds."""
    result = tocsin(*arguments)
    assert result.exit_code == 0, result.output
    return result
