"""Installed as the module `pyspark_rocketmq`, where Spark looks for data sources by itself."""

from pyritemq.spark.source import RocketMQDataSource


class DefaultSource(RocketMQDataSource):
    """The name that Spark looks for."""
