"""The store as a Spark data source: `register(spark)`, then `spark.read.format("rocketmq")`."""

from pyritemq.spark.helpers import lag, latest_offsets
from pyritemq.spark.source import RocketMQDataSource, register

__all__ = ["RocketMQDataSource", "lag", "latest_offsets", "register"]
