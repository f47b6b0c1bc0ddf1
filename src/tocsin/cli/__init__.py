"""The command `tocsin`: match files from a shell, check and explain patterns. Thin: the work is done by the library."""

from __future__ import annotations

import sys

NEEDS = "The command `tocsin` needs the packages typer and rich: pip install 'tocsin[cli]'"


def main() -> None:
    """Run the command line; the entry point of the package."""
    try:
        from tocsin.cli.app import app
    except ModuleNotFoundError as missing:
        # Only what the extra brings: a fault of our own should be seen as such.
        if missing.name is None or missing.name.split(".")[0] not in ("typer", "rich"):
            raise
        print(NEEDS, file=sys.stderr)
        raise SystemExit(1) from None
    app()
