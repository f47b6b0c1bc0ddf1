"""Fail unless every condition a user can meet has a `### CONDITION` entry in docs/reference/errors.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tocsin import errors

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "errors.md"
HEADING = re.compile(r"^### +`?([A-Z][A-Z0-9_]*)`? *$", re.MULTILINE)


def conditions_of(family: type[errors.TocsinError]) -> set[str]:
    """The conditions of a class and of all below it; a family without one of its own adds none."""
    own = getattr(family, "condition", None)
    below = (conditions_of(member) for member in family.__subclasses__())
    return set().union({own} if own else set(), *below)


def main() -> int:
    """List what is missing and return 1, or return 0."""
    conditions = conditions_of(errors.TocsinError) | set(getattr(errors, "WARNINGS", {}))
    documented = set(HEADING.findall(PAGE.read_text(encoding="utf-8"))) if PAGE.exists() else set()
    missing = sorted(conditions - documented)
    if missing:
        print(f"docs/reference/errors.md lacks {len(missing)} of {len(conditions)} conditions. Add for each:")
        print(*(f"  ### {condition}" for condition in missing), sep="\n")
        return 1
    print(f"All {len(conditions)} error and warning conditions are documented.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
