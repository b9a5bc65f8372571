"""Snapshots in object stores and in HDFS: planned, and read by ranges."""
