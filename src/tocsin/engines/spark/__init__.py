"""The Spark engine: a plan and the user's DataFrames → one lazy DataFrame of matches.

module           role
------           ----
engine           resolves inputs and renders a plan by its form
inputs           checks the DataFrames, and routes an event by each of its keys
scan             renders a manifest: the DataFrames of the user as one, with the events that can take part
event_columns    what Spark computes of single events: the columns of a manifest, and flags
slices           the exchange: which rows meet, by partition and time slice, with copies near the edges of slices
search           all of it together, and from matches to the columns of the result
joint, strata    several searches: one DataFrame, one shuffle; all strata of a program as one plan
in_place, edges  a search without the shuffle of events, for input that lies in order of time
joins/           native joins instead of a search
overall          aggregation over all matches; compact, the columns of compact rows
sql/             Spark's expressions as text; columns, typed_columns, bags and tables compile conditions to them
computed         user-defined functions and aggregates in results
match_ids        the definition of `match_id`
analyze          measures inputs, the one place that runs a job
compat           asks what kind of Spark session there is
"""
