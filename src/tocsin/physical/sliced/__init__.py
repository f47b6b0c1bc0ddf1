"""The sliced kernel: events are shuffled by partition and time slice; a compiled kernel searches the rows of a task.

module          role
------          ----
scan            renders a manifest: the DataFrames of the user as one, with the events that can take part
event_columns   what Spark computes of single events: the columns of a manifest, and flags
slices          which rows meet: by partition and time slice, with copies near the edges of slices
rows            a task's Arrow table → the arrays a search reads
gather          what a search found → Arrow batches of matches, events that it made included
digests         the digests of these, and of all events where there is no Spark
worker          the function that Spark runs on each task, for one search or for several
summaries       members of a task that write totals or graphs in place of matches
matches         all of it together, and from matches to the columns of the result
compact         the columns of compact rows
joint           several searches: one DataFrame, one shuffle
clustered       a search without the shuffle of events, for input that lies in order of time
edges           its workers

`rows`, `gather`, `worker` and `summaries` need no Spark: `tocsin.physical.local` runs them in one process.
"""
