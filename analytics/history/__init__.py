"""Reports as Parquet: a folder a table, a file a store and run, joined by month; gathered."""
