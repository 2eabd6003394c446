"""`spark.readStream.format("rocketmq")`: exactly once through restarts, limits, new queues."""

import json
import random
import threading
from contextlib import closing

import pytest

from integration.spark.kit import numbers, send, wait_for_route, wait_until
from pyritemq.protocol.codes import RequestCode
from pyritemq.spark import lag
from pyritemq.spark.cluster import Cluster
from pyritemq.spark.outgoing import MessageMaker
from pyritemq.spark.sender import Sender

pytestmark = pytest.mark.slow

ROUNDS = 10
MESSAGES = 20_000


def start(spark, folder, trigger=None, **options):
    """A query whose sink, Parquet files, writes each batch once."""
    stream = spark.readStream.format("rocketmq").options(startingOffsets="earliest", **options)
    writer = stream.load().selectExpr("topic", "cast(cast(value as string) as int) as number")
    return (
        writer.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**(trigger or {"processingTime": "100 milliseconds"}))
        .start()
    )


def written(spark, folder):
    return sorted(row.number for row in spark.read.parquet(str(folder / "out")).collect())


def planned(folder):
    """How many batches the checkpoint knows of."""
    offsets = folder / "checkpoint" / "offsets"
    return sum(name.name.isdecimal() for name in offsets.iterdir()) if offsets.is_dir() else 0


class Producing(threading.Thread):
    """Sends numbers until all are stored; slowly, so that each restart finds some, until it is told
    to finish."""

    def __init__(self, namesrv, topic, pause):
        super().__init__()
        self.namesrv, self.topic, self.pause = namesrv, topic, pause
        self.may_finish = threading.Event()

    def run(self):
        maker = MessageMaker(self.topic, idempotency_prefix=None)
        with closing(Sender(self.namesrv, timeout_ms=10_000)) as sender:
            for at in range(0, MESSAGES, 200):
                for batch in numbers(at, at + 200).to_batches():
                    for message in maker.messages(batch):
                        sender.send(message)
                sender.flush()
                self.may_finish.wait(self.pause)


def test_a_query_killed_ten_times_writes_each_message_once(spark, live, tmp_path):
    running, store = live
    send(running.namesrv, "Killed", numbers(-200, 0))
    wait_until(lambda: (store / "consumequeue" / "Killed").is_dir(), "no queue is written")
    producer = Producing(running.namesrv, "Killed", 1.0)
    producer.start()
    source = {"path": str(store), "subscribe": "Killed", "maxOffsetsPerTrigger": "2000"}
    dice = random.Random(5)
    for _ in range(ROUNDS):
        before = planned(tmp_path)
        query = start(spark, tmp_path, **source)
        wait_until(lambda before=before: planned(tmp_path) > before, "no batch is planned", 60)
        threading.Event().wait(dice.uniform(0, 0.6))  # anywhere in this batch or the next
        query.stop()
    producer.may_finish.set()
    producer.join()

    def all_there():
        start(spark, tmp_path, {"availableNow": True}, **source).awaitTermination()
        return len(written(spark, tmp_path)) >= MESSAGES + 200

    wait_until(all_there, "messages are missing", seconds=60)
    assert written(spark, tmp_path) == list(range(-200, MESSAGES))


def test_brokers_as_a_stream_with_a_new_topic_and_limits(spark, live, tmp_path):
    running, _ = live
    send(running.namesrv, "Stream_1", numbers(0, 1000))
    source = {"namesrv": running.namesrv, "subscribePattern": "Stream_.*"}
    source |= {"maxOffsetsPerTrigger": "400", "minPartitions": "2", "groupId": "stream_group"}
    with Cluster(running.namesrv, timeout_ms=10_000) as cluster:
        code, body = (
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            b'{"groupName":"stream_group"}',
        )
        cluster.client(running.broker).call(code, {}, body)
    query = start(spark, tmp_path, **source)
    wait_until(
        lambda: (
            (query.lastProgress or {}).get("sources", [{}])[0].get("endOffset") is not None
            and len(written(spark, tmp_path)) == 1000
        ),
        "the first topic is not read",
        seconds=60,
    )
    assert max(each["numInputRows"] for each in query.recentProgress) == 400
    send(running.namesrv, "Stream_2", numbers(1000, 1300))
    wait_until(lambda: len(written(spark, tmp_path)) == 1300, "the new topic is not read", 60)
    assert lag(query.lastProgress) == 0
    assert set(json.loads(query.lastProgress["sources"][0]["endOffset"])) == {
        "Stream_1",
        "Stream_2",
    }
    wait_until(lambda: committed(running.namesrv, "Stream_1") == 1000, "the group has no offsets")
    query.stop()
    assert written(spark, tmp_path) == list(range(1300))


def committed(namesrv, topic):
    """What the broker knows of the group's offsets; Spark reports a batch when the next begins."""
    with Cluster(namesrv, timeout_ms=10_000) as cluster:
        asked = {"consumerGroup": "stream_group", "setZeroIfNotFound": "true"}
        return sum(
            cluster.offset(key, RequestCode.QUERY_CONSUMER_OFFSET, **asked)
            for key in cluster.queues([topic])
        )


def test_a_batch_that_is_written_again_has_the_same_keys(spark, live, tmp_path):
    running, _ = live
    send(running.namesrv, "Piped", numbers(0, 500))
    brokers = {"namesrv": running.namesrv, "topic": "PipedOn", "idempotencyKey": "auto"}

    def pipe():
        stream = spark.readStream.format("rocketmq")
        stream = stream.options(namesrv=running.namesrv, subscribe="Piped")
        frame = stream.option("startingOffsets", "earliest").load().select("value", "key")
        writer = frame.writeStream.format("rocketmq").options(**brokers).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination()

    def sent():
        source = spark.read.format("rocketmq").options(namesrv=running.namesrv, subscribe="PipedOn")
        shown = "count(*)", "count(distinct properties['IDEMPOTENCY_KEY'])", "count(distinct value)"
        return tuple(source.load().selectExpr(*shown).first())

    pipe()
    wait_for_route(running.namesrv, "PipedOn")
    assert sent() == (500, 500, 500)
    pipe()
    assert sent() == (500, 500, 500), "nothing is new"
    for name in (tmp_path / "commits").glob("*0*"):
        name.unlink()  # killed after it sent, and before Spark noted that it had
    pipe()
    assert sent() == (1000, 500, 500)
