"""Complex event recognition with aggregates alone: the Aggregate operator, and what paper 000 makes of it.

operator               finds                                                         state
--------               -----                                                         -----
aggregate              results of windows: A(Γ(WA, WS, S, f_K, L), f_U, f_O)         per window
sort_and_preprocess    what becomes of events of one time (S&P)                      none
time_cer               sequences of known span, anywhere in time (T-CER)             events of a span
rule_cer               what a rule over all events says, of whatever span (R-CER)    the user's, per key

Functions are the user's, in Python; tables and streams give the same. `docs/explanation/aggregates.md` has examples.
"""

from tocsin.acer.events import Event
from tocsin.acer.operators import aggregate, rule_cer, sort_and_preprocess, time_cer
from tocsin.acer.windows import Window

__all__ = ["Event", "Window", "aggregate", "rule_cer", "sort_and_preprocess", "time_cer"]
