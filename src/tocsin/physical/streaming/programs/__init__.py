"""Programs of rules on live streams: all strata in one stateful operator, so that Spark needs no second one.

module       role
------       ----
run          what users ask: matches of rules, events of templates, on streaming DataFrames
plan         the searches of the rules, their delays, and the step of a shard
shipping     the columns that travel: one row for each event, for all rules of all strata
claims       what does not run
"""
