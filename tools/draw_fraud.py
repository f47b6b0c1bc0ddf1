"""Draw the README's picture of the bundled rules: every fraud that they find in the bundled trace.

`python tools/draw_fraud.py > docs/images/fraud.svg`; a test checks that the file is what this prints.
"""

from __future__ import annotations

import tocsin
from tocsin import datasets
from tocsin.cli import demo

SHOWN = ("FraudPassThrough", "FraudDiffusion", "FraudRefundScam")


def drawing() -> str:
    """The picture as SVG."""
    text = datasets.pattern_path("fraud").read_text(encoding="utf-8")
    program = tocsin.rules(text, tables={"known_route": datasets.known_routes()})
    events = datasets.load("fraud")
    cases = [case for case in demo.found_by_reference(program, events) if case.rule in SHOWN]
    return demo.picture_of(cases, events)


if __name__ == "__main__":
    print(drawing(), end="")
