"""An application for a Spark cluster, run by test_cluster.py: MASTER STORE NAMESRV TOPIC.

It registers nothing: Spark finds the format by itself.
"""

import json
import sys

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    # as many executors as the cluster has, before the first job
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
    "spark.pyspark.python": sys.executable,
    "spark.pyspark.driver.python": sys.executable,
}
SHOWN = ("count(*)", "sum(cast(cast(value as string) as int))", "count(distinct messageId)")


def main(master: str, store: str, namesrv: str, topic: str) -> None:
    builder = SparkSession.builder.master(master).appName("cluster")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    source = spark.read.format("rocketmq").option("minPartitions", "8").option("subscribe", topic)
    files = source.option("path", store).option("brokerName", "shared").load()
    found = {"files": list(files.selectExpr(*SHOWN).first())}
    hosts = files.rdd.mapPartitions(lambda _: [executor()]).distinct().collect()
    found["executors"] = sorted(hosts)
    live = spark.read.format("rocketmq").options(namesrv=namesrv, subscribe=topic).load()
    found["brokers"] = list(live.selectExpr(*SHOWN).first())
    written = files.selectExpr("value", "messageId as key").write.format("rocketmq").mode("append")
    written.options(namesrv=namesrv, topic=f"{topic}Again", idempotencyKey="auto").save()
    spark.stop()
    print("found " + json.dumps(found))


def executor() -> str:
    """A worker's process is started in the folder of its executor."""
    import os

    return os.getcwd()


if __name__ == "__main__":
    main(*sys.argv[1:])
