"""The search for matches as generated nested loops: one file per kind of step.

A pattern becomes one function whose loops follow the pattern: an event is a loop over its candidates, an iteration a
walk with its own stack, the parts of a SEQ or AND stand inside each other, and the innermost place writes a match.
Conditions and absences are tested as soon as all they speak of is bound. What cannot stand in one nest of loops, an OR
and an iteration of a composite, is found first and becomes a table of sub-matches, over which the outer function loops
as if they were events with a length.

The text is a subset of Python that numba compiles; without numba it runs as it is.
"""
