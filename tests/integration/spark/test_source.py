"""`spark.read.format("rocketmq")` in a real session."""

import pytest
from unit.storage.kit import SetClock, open_store

from integration.spark.kit import numbers, send
from pyritemq.spark.columns import ALL_COLUMNS
from pyritemq.spark.report import make_report
from pyritemq.spark.report_html import render
from pyritemq.storage import MessageToStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """1000 messages: 250 in each of four queues, one a second."""
    root = tmp_path_factory.mktemp("stores") / "broker-a"
    clock = SetClock()
    store = open_store(root, clock, commit_log_file_size=1 << 16)
    for at in range(250):
        clock.ms += 1000
        properties = b"KEYS\x01k%d\x02TAGS\x01%s\x02" % (at, b"odd" if at % 2 else b"even")
        store.put_batch([MessageToStore(b"A", q, b"%d" % at, properties) for q in range(4)])
    store.close()
    return root


def reader(spark, root, **options):
    return spark.read.format("rocketmq").options(path=str(root), subscribe="A", **options)


def test_all_columns_are_there_and_sql_works_on_them(spark, root):
    frame = reader(spark, root, minPartitions="3").load()
    assert tuple(frame.columns) == ALL_COLUMNS
    assert frame.rdd.getNumPartitions() >= 3
    found = frame.selectExpr(
        "count(*)", "sum(cast(cast(value as string) as int))", "count(distinct queueId)",
        "count(distinct messageId)", "sum(int(properties['TAGS'] = tags))", "min(brokerName)",
        "max(unix_millis(storeTimestamp)) - min(unix_millis(storeTimestamp))",
    ).first()  # fmt: skip
    assert tuple(found) == (1000, 4 * sum(range(250)), 4, 1000, 1000, "broker-a", 249_000)


def test_columns_offsets_and_times_bound_the_read(spark, root):
    start = reader(spark, root, columns="value").load().schema
    assert start.names == ["value"]
    by_offset = reader(
        spark,
        root,
        columns="queueId,queueOffset",
        startingOffsets='{"A": {"0": 240, "1": -2, "2": -1, "3": 0}}',
        endingOffsets='{"A": {"0": -1, "1": 3, "2": -1, "3": 0}}',
    ).load()
    rows = {(row.queueId, row.queueOffset) for row in by_offset.collect()}
    assert rows == {(0, at) for at in range(240, 250)} | {(1, at) for at in range(3)}
    first = reader(spark, root).load().selectExpr("min(unix_millis(storeTimestamp))").first()[0]
    by_time = reader(
        spark, root, startingTimestamp=str(first + 5000), endingTimestamp=str(first + 8000)
    )
    assert {row.key for row in by_time.load().select("key").collect()} == {"k5", "k6", "k7"}


def test_a_mistake_is_told_on_the_driver(spark, root):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="did you mean 'minPartitions'"):
        reader(spark, root, minPartitons="2").load()
    with pytest.raises(AnalysisException, match="the folder /nowhere does not exist"):
        reader(spark, "/nowhere").load().count()


def test_the_report_of_a_store(spark, root):
    report = make_report(spark, str(root))
    assert report.messages == 1000
    (topic,) = report.topics
    assert (topic["topic"], topic["messages"], topic["size_max"]) == ("A", 1000, 3)
    assert (topic["last"] - topic["first"], topic["latency"][2] >= 0) == (249_000, True)
    assert sum(slot["messages"] for slot in report.per_slot) == 1000
    assert {(row["tags"], row["messages"]) for row in report.tags} == {("even", 500), ("odd", 500)}
    assert report.hot_keys[0]["messages"] == 4
    assert "1,000 messages in 1 topics" in render(report)


def test_rows_go_to_brokers_and_come_back(spark, live):
    running, _ = live
    frame = spark.range(5000).selectExpr(
        "cast(id as string) as value",
        "concat('k', id) as key",
        "if(id % 2 = 0, 'even', null) as tags",
        "map('shop', concat('s', id % 7)) as properties",
    )
    writer = frame.write.format("rocketmq").mode("append")
    writer.options(namesrv=running.namesrv, topic="Written", idempotencyKey="auto").save()
    send(running.namesrv, "Written", numbers(5000, 5001))  # waits until the topic is known
    source = spark.read.format("rocketmq").options(namesrv=running.namesrv, subscribe="Written")
    back = source.load().where("key is not null")
    found = back.selectExpr(
        "count(*)", "sum(cast(cast(value as string) as int))", "count(tags)",
        "count(distinct properties['IDEMPOTENCY_KEY'])", "count(distinct properties['shop'])",
    ).first()  # fmt: skip
    assert tuple(found) == (5000, sum(range(5000)), 2500, 5000, 7)
    wrong = spark.range(1).selectExpr("id as value").write.format("rocketmq").mode("append")
    with pytest.raises(Exception, match="column 'value' must be a string or binary"):
        wrong.options(namesrv=running.namesrv, topic="Written").save()
