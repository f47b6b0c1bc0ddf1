"""The optimizer: rewrite rules, statistics, estimates, costs, and the choice of a strategy. No Spark.

Input    a query of the algebra, its temporal network, and statistics if there are any
Output   an equivalent query, and a `Choice`

Strategies (`tocsin.plan.strategies`) decide whether they can run a query.
"""
