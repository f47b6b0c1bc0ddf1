"""From a query of the algebra to Spark: which patterns run, how they are joined, what the result looks like.

Nothing here runs a job: DataFrames come in, one DataFrame comes out. `claims` and `plan` decide without Spark and can
be read without it; the other modules build Columns and DataFrames on public APIs only, so that they run over Spark
Connect too.
"""
