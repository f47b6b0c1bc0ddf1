"""Patterns as aggregates over overlapping windows, each window by itself: T-CER, R-CER and plain A (000 §2, §4, §5).

module      what it does
------      ------------
windows     Γ: how long windows are and how far apart
assigned    the windows that an event falls in, and the one that reports a match
folded      T-CER and R-CER, with the step of an automaton as f_C
searched    A: f_U collects the events of a window, f_O searches them
"""
