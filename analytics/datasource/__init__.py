"""The Spark data source ``rocketmq``: stores as tables and as streams."""
