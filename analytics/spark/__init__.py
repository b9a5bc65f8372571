"""Spark through PySpark: finding a Java, starting quickly and quietly, and the imports of
workers."""
