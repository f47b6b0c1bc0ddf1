"""The sliced kernel: events are shuffled by partition and time slice; a compiled kernel searches the rows of a task.

module      what it does
------      ------------
layout      which columns are shipped and what they mean; the same on the driver and on the workers
kernels     what of a kernel matters here: loops and automata are shipped events and gathered in the same way
events      the user's DataFrames → one DataFrame of the events that can take part, only with the columns needed
flags       of these, what each event may be bound to: conditions on it alone, as bits
values      what is shipped of an event, as a column
slices      which rows meet: by partition and time slice, with copies near the edges of slices
rows        a task's Arrow table → the arrays a kernel searches
gather      what a kernel found → Arrow batches of matches, events that it made included
digests     the digests of these, and of all events where there is no Spark
worker      the function that Spark runs on each task
matches     all of it together, and from the kernel's matches to the columns of the result
joint       the same for several kernels: one DataFrame, one shuffle; `groups` says which, `together` is its worker
clustered   the same without the shuffle of events, for input that lies in order of time
edges       its workers

`layout`, `rows`, `gather` and `worker` need no Spark: `tocsin.physical.local` runs them in one process.
"""
