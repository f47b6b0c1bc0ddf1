"""The engines: each renders a plan by five stages, scan → exchange → search → emit → result.

package   role
-------   ----
worker    what runs in a task of any engine: Arrow table → rows → search → Arrow batches of matches, ids, totals
spark     one lazy DataFrame of a batch; stream builds on its scans and its SQL
local     Arrow tables in this process
stream    the memory of shards, and a step for each micro-batch

`dispatch` checks options and imports the engine that is asked for. Nothing runs a job but `spark.analyze`. DataFrames
are built on public APIs alone, so that all of it runs over Spark Connect too.
"""
