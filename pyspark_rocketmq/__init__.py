"""The data source ``rocketmq`` for Spark, which searches packages named ``pyspark_*``.

    import pyspark_rocketmq

    spark = pyspark_rocketmq.builder().getOrCreate()
    spark.read.format("rocketmq").load("/data/*/store")

In a session that exists, or where only ``--py-files`` brings the packages to the workers:
``pyspark_rocketmq.register(spark)``. ``python -m pyspark_rocketmq rmqctl.zip`` writes that file.
"""

from analytics.datasource.session import builder, register
from analytics.datasource.shipping import zip_packages
from analytics.datasource.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource", "builder", "register", "zip_packages"]
