"""The local engine: Arrow tables, pandas DataFrames or plain rows in one process, without a JVM.

module        role
------        ----
match         runs a plan, or rules that share a search
arrow_inputs  inputs as Arrow tables
shards        the rows of a large search, one shard per thread
rule_tables   programs of rules
"""
