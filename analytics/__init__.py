"""Reports over one or many stores, computed by Spark from the files themselves.

This package reads stores only through the light, lock-free view of :mod:`storage`, because Spark's
workers import it: never :mod:`broker`, never :mod:`client`, nothing that writes. It holds the lag
report: a Spark data source over the files, the arithmetic of lag and age, and the report's tables.
"""
