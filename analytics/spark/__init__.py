"""Spark through PySpark: finding a Java, starting quickly and quietly, and what workers load."""
