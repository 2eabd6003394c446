"""Sender and live reader against a server, without Spark: what tasks do over the wire."""

from contextlib import closing

import pyarrow as pa
import pytest

from integration.spark.kit import send, wait_until
from pyritemq.conformance.servers.cluster import pyrite_cluster
from pyritemq.protocol.codes import RequestCode
from pyritemq.spark.cluster import Cluster
from pyritemq.spark.errors import BrokerError, DataLossError, OptionError, SparkSourceError
from pyritemq.spark.live_backend import LiveBackend
from pyritemq.spark.live_reader import read_live
from pyritemq.spark.options import parse_source_options
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.queues import QueueKey, QueueRange
from pyritemq.spark.selection import select_queues
from pyritemq.spark.source import plan_batch
from pyritemq.spark.store_backend import StoreBackend, read_store


def options(running, topic, *, streaming=False, **more):
    given = {"namesrv": running.namesrv, "subscribe": topic, **more}
    return parse_source_options(given, streaming=streaming)


def read(chosen):
    with closing(LiveBackend(chosen)) as backend:
        batches = [
            batch for part in plan_batch(chosen, backend) for batch in read_live(chosen, part)
        ]
    return pa.Table.from_batches(batches)


def read_files(chosen, count):
    """A running server writes its queues' ends about once a second."""
    backend = StoreBackend(chosen)

    def written():
        bounds = backend.bounds(backend.queues(chosen.topics))
        return sum(end for _, end in bounds.values()) == count

    wait_until(written, "the queues are not written")
    return [batch for part in plan_batch(chosen, backend) for batch in read_store(chosen, part)]


def test_what_is_sent_is_read_from_brokers_and_from_files_alike(live):
    running, store = live
    count = 3000
    table = pa.table(
        {
            "value": [f"body {at}".encode() * (at % 50) for at in range(count)],
            "key": [f"k{at}" for at in range(count)],
            "tags": [None if at % 3 else "T" for at in range(count)],
            "properties": pa.array(
                [[("color", "rot" if at % 2 else "grün")] for at in range(count)],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )
    assert send(running.namesrv, "LiveA", table, prefix="run-0") == count
    chosen = options(running, "LiveA", minPartitions="7")
    rows = read(chosen).to_pylist()
    by_key = {row["key"]: row for row in rows}
    assert len(rows) == len(by_key) == count
    for at, body in enumerate(table.column("value").to_pylist()):
        row = by_key[f"k{at}"]
        assert row["value"] == body
        assert row["tags"] == (None if at % 3 else "T")
        properties = dict(row["properties"])
        assert properties["color"] == ("rot" if at % 2 else "grün")
        assert properties["IDEMPOTENCY_KEY"] == f"run-0-{at}"
    assert {row["queueId"] for row in rows} == {0, 1, 2, 3}

    files = parse_source_options(
        {"path": str(store), "subscribe": "LiveA", "brokerName": rows[0]["brokerName"]},
        streaming=False,
    )
    from_files = read_files(files, count)
    order = [("commitLogOffset", "ascending")]
    assert pa.Table.from_batches(from_files).sort_by(order) == read(chosen).sort_by(order)


def test_queue_id_and_sharding_key_choose_the_queue(live):
    running, _ = live
    table = pa.table({"value": ["x"] * 40, "queueId": [at % 3 for at in range(40)]})
    assert send(running.namesrv, "LiveB", table) == 40
    ids = read(options(running, "LiveB")).column("queueId").to_pylist()
    assert sorted(ids) == sorted(at % 3 for at in range(40))
    sharded = pa.table(
        {"value": [f"{at}" for at in range(60)], "shardingKey": [f"s{at % 5}" for at in range(60)]}
    )
    assert send(running.namesrv, "LiveC", sharded) == 60
    rows = read(options(running, "LiveC")).to_pylist()
    for shard in range(5):
        mine = [row for row in rows if dict(row["properties"])["__SHARDINGKEY"] == f"s{shard}"]
        assert len({row["queueId"] for row in mine}) == 1
        bodies = [int(row["value"]) for row in sorted(mine, key=lambda row: row["queueOffset"])]
        assert bodies == list(range(shard, 60, 5))
    with pytest.raises(SparkSourceError, match="topic 'LiveB' has no queue 99"):
        send(running.namesrv, "LiveB", pa.table({"value": ["x"], "queueId": [99]}))


def test_reading_disturbs_no_group_and_a_group_is_committed_only_when_it_exists(live):
    running, _ = live
    send(running.namesrv, "LiveD", pa.table({"value": ["x"] * 10}))
    read(options(running, "LiveD"))
    chosen = options(running, "LiveD", streaming=True, groupId="spark_group")
    backend = LiveBackend(chosen)
    keys = backend.queues(["LiveD"])
    with pytest.raises(BrokerError, match="'spark_group' of option 'groupId' does not exist"):
        backend.commit(dict.fromkeys(keys, 1))
    with Cluster(running.namesrv, timeout_ms=5000) as cluster:
        for group in ("TOOLS_CONSUMER", "spark_group"):
            fields = {"topic": "LiveD", "queueId": 0, "consumerGroup": group}
            wire = cluster.client(cluster.address(keys[0]))
            reply = wire.receive(wire.send(RequestCode.QUERY_CONSUMER_OFFSET, fields))
            assert reply.ext_fields.get("offset") in (None, "0")
        body = b'{"groupName":"spark_group","consumeEnable":true}'
        cluster.client(running.broker).call(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body
        )
        ends = {key: bounds[1] for key, bounds in backend.bounds(keys).items()}
        backend.commit(ends)
        for key, end in ends.items():
            asked = cluster.offset(
                key, RequestCode.QUERY_CONSUMER_OFFSET, consumerGroup="spark_group"
            )
            assert asked == end
    backend.close()


def test_offsets_beyond_the_end_are_data_loss_and_never_a_short_answer(live):
    running, _ = live
    send(running.namesrv, "LiveE", pa.table({"value": ["x"] * 8, "queueId": [0] * 8}))
    strict, loose = (
        options(running, "LiveE", failOnDataLoss=word, columns="queueOffset")
        for word in ("true", "false")
    )
    backend = LiveBackend(strict)
    key = backend.queues(["LiveE"])[0]
    assert isinstance(key, QueueKey)
    beyond = ReadPartition(key.broker, [QueueRange(key, 5, 50)])
    with pytest.raises(DataLossError, match=r"messages 8 to 49 of LiveE/.*/0 are gone"):
        list(read_live(strict, beyond))
    rows = [row for batch in read_live(loose, beyond) for row in batch.to_pylist()]
    assert [row["queueOffset"] for row in rows] == [5, 6, 7]
    backend.close()


def test_no_name_server_and_no_topic_are_one_sentence(live):
    running, _ = live
    nowhere = parse_source_options(
        {"namesrv": "127.0.0.1:1", "subscribe": "A", "timeoutMs": "500"}, streaming=False
    )
    with pytest.raises(BrokerError, match=r"cannot connect to 127\.0\.0\.1:1"):
        select_queues(nowhere, LiveBackend(nowhere))
    with pytest.raises(OptionError, match="topic 'Missing' does not exist"):
        read(options(running, "Missing"))


def test_a_broker_that_goes_away_in_the_middle_is_named_and_ends_the_read(tmp_path):
    with pyrite_cluster(tmp_path) as running:
        send(
            running.namesrv, "Gone", pa.table({"value": ["x" * 8000] * 1500, "queueId": [0] * 1500})
        )
        chosen = options(running, "Gone", columns="value", timeoutMs="2000")
        with closing(LiveBackend(chosen)) as backend:
            (part,) = plan_batch(chosen, backend)
        batches = read_live(chosen, part)
        first = next(batches)
        assert first.num_rows < 1500
        running.children[0].kill()
        with pytest.raises(BrokerError, match=r"127\.0\.0\.1:\d+"):
            list(batches)
