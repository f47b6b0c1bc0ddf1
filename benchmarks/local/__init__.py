"""`engine="local"` next to DuckDB and Polars, without Spark: `python -m benchmarks.local`."""
