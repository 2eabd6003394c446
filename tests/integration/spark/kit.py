"""What the data source's tests share: sending, waiting, reading."""

import time
from contextlib import closing

import pyarrow as pa

from pyritemq.spark.cluster import Cluster
from pyritemq.spark.outgoing import MessageMaker
from pyritemq.spark.sender import Sender


def send(namesrv, topic, table, prefix=None):
    """Send a table's rows; returns when name servers know the topic."""
    maker = MessageMaker(topic, idempotency_prefix=prefix)
    with closing(Sender(namesrv, timeout_ms=10_000)) as sender:
        for batch in table.to_batches():
            for message in maker.messages(batch):
                sender.send(message)
        sender.flush()
    wait_for_route(namesrv, topic)
    return sender.stored


def numbers(start, end):
    return pa.table({"value": [str(at) for at in range(start, end)]})


def wait_for_route(namesrv, topic):
    """A broker tells name servers of a topic that a send has made, but not before it answers."""
    with Cluster(namesrv, timeout_ms=10_000) as cluster:
        wait_until(lambda: cluster.route(topic), f"no name server has heard of {topic}")


def wait_until(done, failure, seconds=30):
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit, failure
        time.sleep(0.02)
