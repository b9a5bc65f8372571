"""Reports as Parquet: a folder a table, a file a store and run; gathered elsewhere."""
