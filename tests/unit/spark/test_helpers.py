"""latest_offsets and lag; the module that Spark finds by itself."""

import json

import pyspark_rocketmq
from pyspark.sql.datasource import DataSource
from unit.storage.kit import SetClock, open_store

from pyritemq.spark import lag, latest_offsets
from pyritemq.spark.options import parse_source_options
from pyritemq.storage import MessageToStore


def test_latest_offsets_are_what_ending_offsets_take(tmp_path):
    store = open_store(tmp_path / "broker-a", SetClock())
    store.put_batch([MessageToStore(b"A", at % 2, b"x") for at in range(5)])
    store.put_batch([MessageToStore(b"B", 0, b"x"), MessageToStore(b"SCHEDULE_TOPIC_XXXX", 1, b"")])
    store.close()
    path = str(tmp_path / "broker-a")
    found = latest_offsets(path)
    assert found == {"A": {"broker-a:0": 3, "broker-a:1": 2}, "B": {"broker-a:0": 1}}
    assert latest_offsets(path, topics="B") == {"B": {"broker-a:0": 1}}
    given = {"path": path, "subscribe": "A", "endingOffsets": json.dumps({"A": found["A"]})}
    ending = parse_source_options(given, streaming=False).ending.by_queue
    assert ending == {"A": {("broker-a", 0): 3, ("broker-a", 1): 2}}


def test_lag_counts_what_is_not_read_whether_spark_gives_text_or_a_tree():
    latest = {"A": {"b": {"0": 10, "1": 4}}, "New": {"b": {"0": 3}}}
    done = {"A": {"b": {"0": 7, "1": 4}}}
    tree = {"latestOffset": latest, "endOffset": done}
    text = {"latestOffset": json.dumps(latest), "endOffset": json.dumps(done)}
    assert lag({"sources": [tree]}) == lag({"sources": [text]}) == 6
    assert lag({"sources": [tree, text]}) == 12
    assert lag({"sources": [{"latestOffset": None, "endOffset": None}]}) == 0


def test_spark_finds_the_format_in_a_module_of_its_own():
    assert issubclass(pyspark_rocketmq.DefaultSource, DataSource)
    assert pyspark_rocketmq.DefaultSource.name() == "rocketmq"
