"""Snapshots in object stores and HDFS, read by ranges through a folder that is filled on demand."""
