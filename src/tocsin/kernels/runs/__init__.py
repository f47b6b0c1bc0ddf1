"""Automata over columns: ACEL, and SASE+ where a register automaton can decide it (003 §6).

module       what it does
------       ------------
tables       an automaton → what each step asks of an event, which registers decide, what is kept of a run
elements     monoids as numbers
registers    registers as numbers, and the texts of expressions over them
arena        the runs of all starts in one graph, and the matches that are ways through it
stepping     one event more: all runs, and those that end, with registers of any Python value
plain        the search that takes such steps
code         the same search as the text of a function, where registers are numbers
compiled     running that
found        from the steps of runs to matches
graphs       the matches of one end as one graph
compact      such a graph as bytes, and the matches that come out of it
texts        the parts of the generated search that never change
limits       where a search gives up
duplicates   matches that two runs found
running      how the matches of a task are found
kernel       a query compiled: what its rows must carry
"""
