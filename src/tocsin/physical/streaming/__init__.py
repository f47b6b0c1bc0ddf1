"""Live streams: the events that still matter are a shard's state, and each micro-batch runs the batch kernels on them.

module       role
------       ----
frames       builds the streaming DataFrame: events → parcels → shards → matches
packing      the first stage: the rows of a micro-batch as one parcel for each shard, with what time it is
stepping     the second: a shard takes its parcels, gives the matches that are decided, and forgets what is past
unpacking    the third: matches as rows again
state        what a shard remembers between micro-batches, as versioned bytes
clocks       how far time has come, by the sources' own events
shards       how keys are spread
guard        which sources send more than was declared of them
metrics      what a micro-batch tells of itself
windows      aggregates over all matches, told for windows of time
describe     the plan in words
joined       another way, by Spark's own joins of streams
programs     the same for programs of rules: all strata in one step
"""
