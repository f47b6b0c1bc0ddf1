"""Flink's interval join and MATCH_RECOGNIZE next to Tocsin and DuckDB: `python -m benchmarks.flink`."""
