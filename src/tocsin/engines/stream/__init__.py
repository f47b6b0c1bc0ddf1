"""Live streams: a shard retains the events that matches may still need, and searches them micro-batch by micro-batch.

module       role
------       ----
pipeline     builds the streaming DataFrame: events and heartbeats → shard batches → shards → matches
packing      the first and third stages: rows as one batch for each shard, and matches as rows again
grouped      the second stage: a shard as Spark sees it, a group with a state
step         processes one micro-batch of one shard, for a program of rules or for one pattern
shard_rules  the rules of a shard, their after-match policies, and the events they emit
affected     the matches of one stratum that are emitted in a step
store        the memory of a shard: watermark and events, as a step uses them, and as versioned bytes
outputs      late events and metrics, beside matches
guard        counts events beyond the declared rates
every        aggregates over all matches, for windows of time
joined       stream-stream joins of Spark, instead of all this
live_plan    plans the rules of a program for a stream; program_run runs all strata in one step
"""
