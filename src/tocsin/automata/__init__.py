"""Register automata: a pattern as a machine that reads events one by one (003 §6)."""

from __future__ import annotations

from tocsin.automata.construct import automaton, refusal
from tocsin.automata.model import Automaton, most_events

__all__ = ["Automaton", "automaton", "most_events", "refusal"]
