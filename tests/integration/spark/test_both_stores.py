"""Stores that the Java broker and PyriteMQ wrote: every column of every row is the consumer's.

Official clients send every kind of message, over IPv4 and then over IPv6, and read each queue back
whole: delayed and half messages, retries and dead letters in their system topics included. The data
source reads the folder and the live broker, and both must show what the official consumer got. No
Spark session takes part: what tasks hand to it is compared.
"""

from base64 import b64decode
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from integration.java.test_turns import Application
from integration.spark.kit import wait_until
from pyritemq.conformance.processes import Child, free_broker_port
from pyritemq.conformance.servers import java
from pyritemq.conformance.servers.cluster import pyrite_namesrv, pyritemq_command
from pyritemq.protocol.codes import RequestCode
from pyritemq.protocol.record import (
    COMPRESSION_LZ4,
    COMPRESSION_MASK,
    COMPRESSION_ZLIB,
    COMPRESSION_ZSTD,
)
from pyritemq.spark.backend import open_backend, read_partition
from pyritemq.spark.cluster import Cluster
from pyritemq.spark.columns import ALL_COLUMNS
from pyritemq.spark.hosts import format_host
from pyritemq.spark.live_backend import LiveBackend
from pyritemq.spark.options import parse_source_options
from pyritemq.spark.source import plan_batch
from pyritemq.spark.store_backend import StoreBackend

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).with_name("Columns.java")
SECONDS = 120.0
CODECS = (COMPRESSION_LZ4, COMPRESSION_ZSTD, COMPRESSION_ZLIB)
KINDS = {
    "Columns",
    "SCHEDULE_TOPIC_XXXX",
    "rmq_sys_wheel_timer",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "%RETRY%columns_readers",
    "%DLQ%columns_readers",
}
OF_THE_CLIENT = ("MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME")  # not stored: set on arrival


@contextmanager
def broker(kind, folder, **settings):
    folder.mkdir(exist_ok=True)
    properties = {
        "brokerName": "broker-a",
        "storePathRootDir": folder / "broker-a",
        "mappedFileSizeCommitLog": 1 << 17,
        "mappedFileSizeConsumeQueue": 20 * 50,
        "timerWheelEnable": "true",
        "messageDelayLevel": "1s 1s 1s 1s",
        "transactionOpBatchInterval": 100,
        **settings,
    }
    if kind == "java":
        started = java.start_broker(folder / "java", properties=properties)
    else:
        config = java.write_properties(folder / "ours.conf", properties)
        started = Child("broker", [*pyritemq_command(), "broker", "-c", str(config)], folder=folder)
    with started as running:
        running.wait_for_line(java.BROKER_READY, timeout=SECONDS)
        yield
        running.stop(timeout=SECONDS)


def host(text):
    address, _, port = text.rpartition(":")
    return format_host(bytes.fromhex(address) + int(port).to_bytes(4, "big"))


def word(text):
    return None if text == "-" else b64decode(text[1:]).decode()


def consumer_row(line):
    """What the consumer said of a message, as a row of the source."""
    cells = dict(zip(ALL_COLUMNS, line.split("\t"), strict=True))
    pairs = (pair.split(":") for pair in cells["properties"].split(","))
    properties = {word(name): word(value) for name, value in pairs}
    return {
        name: _READ.get(name, int)(cell) for name, cell in cells.items() if name != "properties"
    } | {"properties": {k: v for k, v in properties.items() if k not in OF_THE_CLIENT}}


_READ = (
    dict.fromkeys(("key", "tags"), word)
    | dict.fromkeys(("topic", "brokerName", "messageId"), str)
    | dict.fromkeys(("bornHost", "storeHost"), host)
    | {"value": lambda text: b64decode(text[1:])}
)


def rows_of(**given):
    """What the tasks of a batch read hand to Spark."""
    options = parse_source_options({"includeSystemTopics": "true", **given}, streaming=False)
    rows = []
    with closing(open_backend(options)) as backend:
        for part in plan_batch(options, backend):
            rows += [row for batch in read_partition(options, part) for row in batch.to_pylist()]
    for row in rows:
        row["properties"] = dict(row["properties"])
        for name in ("bornTimestamp", "storeTimestamp"):
            row[name] = round(row[name].timestamp() * 1000)
    return rows


def in_order(rows):
    return sorted(rows, key=lambda row: row["commitLogOffset"])


def stored_queues(store):
    """All queues with messages; a running server writes them out about once a second."""
    given = {"path": str(store), "subscribePattern": ".*", "includeSystemTopics": "true"}
    backend = StoreBackend(parse_source_options(given, streaming=False))
    bounds = backend.bounds(backend.queues(None))
    return [key for key, (start, end) in bounds.items() if start < end]


def committed_is_what_a_group_is_told(namesrv):
    given = {"namesrv": namesrv, "subscribe": "Columns", "groupId": "columns_readers"}
    with closing(LiveBackend(parse_source_options(given, streaming=True))) as backend:
        keys = backend.queues(["Columns"])
        ends = {key: end for key, (_, end) in backend.bounds(keys).items()}
        backend.commit(ends)
        with Cluster(namesrv, timeout_ms=5000) as cluster:
            for key, end in ends.items():
                code = RequestCode.QUERY_CONSUMER_OFFSET
                assert cluster.offset(key, code, consumerGroup="columns_readers") == end


@pytest.mark.parametrize("kind", ["java", "pyritemq"])
def test_every_column_of_every_row_is_what_the_official_consumer_got(tmp_path, kind):
    store = tmp_path / "broker" / "broker-a"
    with pyrite_namesrv(tmp_path / "namesrv", host="127.0.0.1") as namesrv:
        port = free_broker_port()
        settings = {"listenPort": port, "namesrvAddr": namesrv}
        application = Application(tmp_path / "application", namesrv, PROGRAM)
        try:
            with broker(kind, tmp_path / "broker", brokerIP1="127.0.0.1", **settings):
                application("send", "four")
            with broker(kind, tmp_path / "broker", brokerIP1="::1", bindAddress="::", **settings):
                application("send", "six")
                wait_until(
                    lambda: {key.topic for key in stored_queues(store)} >= KINDS,
                    "a kind of message is not written",
                )
                read = [f"{key.topic}/{key.queue_id}" for key in stored_queues(store)]
                got = in_order([consumer_row(line) for line in application("read", *read)])
                live = rows_of(namesrv=namesrv, subscribe="Columns")
                committed_is_what_a_group_is_told(namesrv)
        finally:
            application.close()
    assert {row["topic"] for row in got} >= KINDS
    hosts = {name: {row[name][0] for row in got} for name in ("bornHost", "storeHost")}
    assert hosts == {"bornHost": {"1", "["}, "storeHost": {"1", "["}}, "IPv4 and IPv6"
    assert {row["sysFlag"] & COMPRESSION_MASK for row in got} >= {0, *CODECS}
    assert {row["reconsumeTimes"] for row in got} >= {0, 1}
    assert in_order(live) == [row for row in got if row["topic"] == "Columns"]

    last = got[-1]["commitLogOffset"]  # a clean stop may add a record of the server's own
    options = {"path": str(store), "subscribePattern": ".*", "minPartitions": "5"}
    rows = in_order(rows_of(**options))
    assert [row for row in rows if row["commitLogOffset"] <= last] == got
    files = sorted(file for file in (store / "commitlog").iterdir() if any(file.read_bytes()[:8]))
    assert len(files) > 3
    for gone in files[:2]:
        gone.unlink()
    first = int(files[2].name)
    rows = in_order(rows_of(**options))
    assert [row for row in rows if row["commitLogOffset"] <= last] == [
        row for row in got if row["commitLogOffset"] >= first
    ]
