"""Plans on Spark, locally and on streams: inputs come in, one DataFrame or table of matches comes out.

Only `analyze` runs a job. Modules of Spark build Columns and DataFrames on public APIs, so that they run over Spark
Connect too.
"""
