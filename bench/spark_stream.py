"""A streaming query that follows the official Producer at full speed: is it left behind?

Server, Producer and Spark share the machine. The lag is what the broker has stored less what the
query's last finished batch covers, looked at twice a second.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from bench.drivers import Drivers
from bench.progress import BrokerProbe
from pyritemq.conformance.servers.cluster import pyrite_cluster
from pyritemq.spark.queues import offsets_from_json

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

TOPIC = "BenchStream"
THREADS = 64
SIZE = 128
POLL_SECONDS = 0.5
CATCH_UP_SECONDS = 60.0


def follow(spark: SparkSession, work: Path, messages: int) -> dict[str, Any]:
    """Messages sent and read, and by how much reading was behind."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    with pyrite_cluster(work / "stream") as cluster, BrokerProbe(cluster.broker) as probe:
        drivers = Drivers(work / "clients", cluster.namesrv)
        drivers.produce(TOPIC, messages=1000, threads=1, size=SIZE)  # makes the topic
        stream = spark.readStream.format("rocketmq").options(
            namesrv=cluster.namesrv, subscribe=TOPIC, startingOffsets="earliest"
        )
        query = (
            stream.load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(processingTime="500 milliseconds")
            .start()
        )
        _catch_up(probe, query)
        begin = time.monotonic()
        run = drivers.start_producer(TOPIC, messages=messages, threads=THREADS, size=SIZE)
        lags = []
        with run:
            while run.returncode is None:
                lags.append([round(time.monotonic() - begin, 1), _lag(probe, query)])
                time.sleep(POLL_SECONDS)
        ended = time.monotonic()
        _catch_up(probe, query)
        caught_up = time.monotonic() - ended
        query.stop()
        stored = probe.stored(TOPIC)
    read = sum(each["numInputRows"] for each in query.recentProgress)
    sending = ended - begin
    return {
        "sent": stored,
        "read": read,
        "messages/s sent": round(stored / sending),
        "largest lag, messages": max(lag for _, lag in lags),
        "lag in the middle and at the end, messages": [lags[len(lags) // 2][1], lags[-1][1]],
        "seconds to catch up after the last message": round(caught_up, 1),
        "lags": lags,
    }


def _lag(probe: BrokerProbe, query: StreamingQuery) -> int:
    return probe.stored(TOPIC) - _covered(query)


def _covered(query: StreamingQuery) -> int:
    progress = query.lastProgress
    end = progress["sources"][0]["endOffset"] if progress else None
    tree = json.loads(end) if isinstance(end, str) else end
    return sum(offsets_from_json(tree or {}).values())


def _catch_up(probe: BrokerProbe, query: StreamingQuery) -> None:
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while not query.lastProgress or _lag(probe, query) > 0:
        if (failure := query.exception()) is not None:
            raise failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"the query is {_lag(probe, query)} messages behind")
        time.sleep(POLL_SECONDS)
