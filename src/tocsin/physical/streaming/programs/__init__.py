"""Programs of rules on live streams: all strata in one stateful operator, so that Spark needs no second one.

module       role
------       ----
run          what users ask: matches of rules, events of templates, on streaming DataFrames
plan         what rules ask of a stream: kernels, delays, keys; and what workers have to know
shipping     the columns that travel: one row for each event, for all rules of all strata
stepping     a step of a shard: stratum by stratum, what one gives are events of the next
emitting     matches → events → rows as Spark ships them
sharding     by which key a program can be split, or why by none
claims       what does not run
"""
