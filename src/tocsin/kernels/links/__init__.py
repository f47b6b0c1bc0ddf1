"""Selection policies inside the search, for patterns of repeated groups and alternatives (SEMANTICS §4, R2, R17, R45).

A match is a word over a deterministic automaton whose letters are variables, so that every match is found once, in
however many ways the pattern derives it. `next` and contiguity leave a word at most one event to go on with for every
element that may follow: the search never builds a match that the policy would take away.

code        meaning
----        -------
link        a move of the automaton with the event that the policy allows it
place       the index of an event in the sorted list of a task
earliest    the first place at which a word can be complete that takes this event in this state
"""
