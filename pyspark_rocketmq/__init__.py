"""The data source ``rocketmq`` for Spark, which searches packages named ``pyspark_*``."""

from analytics.datasource.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
