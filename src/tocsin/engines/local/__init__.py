"""The local engine: files, Arrow tables, DataFrames or plain rows in one process, without a JVM.

module           role
------           ----
match            runs a plan, or rules that share a search
shards           the rows of a large search, one shard per thread
rule_tables      programs of rules
arrow_inputs     inputs of any kind as Arrow tables
normal_columns   columns in the types that Spark has too
paths            paths, directories and globs → files of one format
read_files       files → tables
parquet          Parquet files as tables of which columns are read when they are asked for
text_files       CSV and JSON-lines files → columns
inferred_types   texts of files → typed columns, by Spark's rules
unreadable       what is wrong with files, in words for people
"""
