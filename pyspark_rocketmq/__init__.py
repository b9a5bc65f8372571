"""Where Spark looks for the data source ``rocketmq`` (it searches packages named ``pyspark_*``)."""

from analytics.datasource.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
