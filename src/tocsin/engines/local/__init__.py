"""The local engine: Arrow tables, pandas DataFrames or plain rows in one process, without a JVM."""
