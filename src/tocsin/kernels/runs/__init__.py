"""Automata over columns: ACEL, and SASE+ where a register automaton can decide it (003 §6).

module               what it holds
------               -------------
automaton_tables     what each step of an automaton asks of an event, which registers decide, what is kept of a run
registers            registers as numbers, and the texts of expressions over them
object_registers     registers as Python objects, for all that numbers cannot hold
writers              the search, and the replay of derived events, as the texts of functions
texts                the parts of the search that never change, and the arena of histories
functions            how these functions are called
found                the steps of runs → matches, or graphs of them; which matches are equal
packed               a graph as bytes, and the matches that come out of it
register_automaton   a query → what its rows must carry, the functions that search them, and how matches are found
"""
