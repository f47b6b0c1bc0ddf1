"""The planner's brain: rewrite rules, statistics, estimates and costs, and the choice of a strategy. No Spark.

A query of the algebra, its temporal network and perhaps statistics go in; an equal query and a `Choice` come out. How a
strategy runs, and whether an engine can run a query at all, is for the engines to say.
"""
