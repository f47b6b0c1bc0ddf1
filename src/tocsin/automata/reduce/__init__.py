"""What makes no difference is left out: each rule keeps the set of complex events, and is tried until none applies."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.automata.draft import Draft
from tocsin.automata.reduce.equal_states import merge_states, merge_twins
from tocsin.automata.reduce.equal_steps import merge_steps
from tocsin.automata.reduce.known_values import replace_known
from tocsin.automata.reduce.unread_registers import drop_unread
from tocsin.automata.reduce.useless_states import drop_useless

# Twins before registers are dropped: what is dropped on the way to one of them may be needed in the other.
RULES: tuple[Callable[[Draft], Draft], ...] = (
    drop_useless,
    merge_steps,
    replace_known,
    merge_twins,
    drop_unread,
    merge_states,
)


def reduced(draft: Draft) -> Draft:
    """The draft after every rule, over and over; each makes it smaller or simpler, so that this ends."""
    while True:
        before = draft
        for rule in RULES:
            draft = rule(draft)
        if draft == before:
            return draft
