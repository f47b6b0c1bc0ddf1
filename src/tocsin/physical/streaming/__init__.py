"""Live streams: a shard retains the events that matches may still need, and searches them micro-batch by micro-batch.

module       role
------       ----
frames       builds the streaming DataFrame: events → shard batches → shards → matches
packing      the first and third stages: rows as one batch for each shard, and matches as rows again
grouped      the second stage: a shard as Spark sees it, a group with a state
step         processes one micro-batch of one shard, for a program of rules or for one pattern
rules        the rules of a shard
search       the matches of one stratum that are emitted in a step
store        the memory of a shard as a step uses it
state        what a shard keeps between micro-batches, as versioned bytes; the store of today
clocks       latest times of the sources, and the watermark
skipping     after-match policies, whose frontier lies in the events
emitting     matches as events, and events as rows of higher strata
outputs      what is emitted beside matches: late events, and the numbers of a micro-batch
shards       how keys are spread
guard        which sources send more than was declared of them
windows      aggregates over all matches, for windows of time
describe     the plan in words
joined       another way, by Spark's own joins of streams
program_*    programs of rules: all strata in one step
"""
