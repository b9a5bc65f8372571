"""Reports over one or many stores, computed by Spark from the files themselves.

This package reads stores through the light, lock-free view of :mod:`storage` only, because
Spark's workers import it: never :mod:`broker`, never :mod:`client`, nothing that writes. It
is where the lag report lives: a Spark data source over the files, the arithmetic of lag and
age, and the report's tables.
"""
