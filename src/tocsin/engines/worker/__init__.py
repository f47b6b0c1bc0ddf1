"""What runs in a task: rows of events in, batches of matches, totals or graphs out. It needs no Spark.

module        role
------        ----
tasks         runs one search or several on the rows of a task
process       the process of a worker of Spark
rows          a task's Arrow table → the arrays that a search reads
gather        what a search found → Arrow batches of matches, events that it made included
digests       the digests of these events, and of all events where there is no Spark
summaries     totals and compact rows in place of matches
results       RETURN, HAVING and GROUP BY in this process
compacted     which queries have compact rows, and how one is enumerated
lazy_tables   tables in pieces outside of memory, of which the columns and pieces are read that are needed
arrow_scan    Arrow tables → one table with the rows of a manifest
vectors       expressions over one event, evaluated on columns
event_tables  the events of Arrow tables that can take part
threads       work on the cores of this machine
event_order   the order of events as Python values
arrow_types   the types of Arrow and those of the analysis; columns in other types, and under other names
"""
