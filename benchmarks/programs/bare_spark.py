"""A plain program: a default session, and one job with Python workers."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[*]").getOrCreate()
print(spark.sparkContext.parallelize(range(4), 2).map(lambda number: number * number).sum())
spark.stop()
