"""Finding matches in columns of numbers: NumPy, and numba where it imports. No Spark, no Arrow, no pandas.

The kernels are the same whoever calls them: a Spark task on its slice, the local engine, later a stream's shard.
"""
