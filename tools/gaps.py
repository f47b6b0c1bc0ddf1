"""Write docs/reference/gaps.md from `tocsin.gaps`, or with --check fail where the page differs."""

from __future__ import annotations

import sys
from pathlib import Path

from tocsin.gaps import Gaps

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "gaps.md"
HEAD = """\
# Gaps

Valid queries that an engine does not run yet. It refuses them with
[`NOT_YET_SUPPORTED`](errors.md#not_yet_supported), and the error's `gap` is the name in the last column. All but the
last two are refused before any data is read. `tocsin.reference.evaluate` runs everything here that concerns neither
Spark DataFrames nor streams.

This page is generated from `src/tocsin/gaps.py` by `python tools/gaps.py`.

| does not run | on | instead | name |
|---|---|---|---|
"""


def page() -> str:
    """The page as the table of gaps has it."""
    return HEAD + "".join(
        f"| {one.value.what} | {', '.join(one.value.engines)} | {one.value.instead} | `{one.name}` |\n" for one in Gaps
    )


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == page():
        print(f"All {len(Gaps)} gaps are documented.")
        return 0
    print("docs/reference/gaps.md differs from src/tocsin/gaps.py. Run: python tools/gaps.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
