"""Rows as messages: what the sink takes, and what it refuses with one sentence."""

import datetime as dt

import pyarrow as pa
import pytest

from pyritemq.protocol.record import decode_properties
from pyritemq.spark.errors import OptionError, SparkSourceError
from pyritemq.spark.outgoing import MessageMaker, check_columns
from pyritemq.spark.sink import parse_sink_options

MAP = pa.map_(pa.string(), pa.string())


def messages(columns, topic="T", prefix=None, schema=None):
    table = pa.table(columns, schema=schema)
    maker = MessageMaker(topic, idempotency_prefix=prefix)
    return [message for batch in table.to_batches() for message in maker.messages(batch)]


def properties(message):
    return decode_properties(message.properties.encode())


def test_columns_become_properties():
    at = dt.datetime(2026, 11, 18, tzinfo=dt.UTC)
    (message,) = messages(
        {
            "value": ["grün"],
            "topic": ["Other"],
            "key": ["k"],
            "tags": ["t"],
            "properties": pa.array([[("a", "1"), ("b", None)]], MAP),
            "shardingKey": ["s"],
            "deliverTime": pa.array([at], pa.timestamp("us", tz="UTC")),
            "idempotencyKey": ["mine"],
        },
        prefix="run",
    )
    assert (message.topic, message.body) == ("Other", "grün".encode())
    assert message.alone
    found = properties(message)
    assert len(found.pop("UNIQ_KEY")) == 32
    assert found == {
        "a": "1",
        "WAIT": "true",
        "KEYS": "k",
        "TAGS": "t",
        "__SHARDINGKEY": "s",
        "TIMER_DELIVER_MS": str(int(at.timestamp() * 1000)),
        "IDEMPOTENCY_KEY": "mine",
    }


def test_every_attempt_of_a_task_gives_its_rows_the_same_keys_and_new_ids():
    first, second = (messages({"value": ["a", "b", "c"]}, prefix="run-7-0") for _ in range(2))
    keys = [properties(each)["IDEMPOTENCY_KEY"] for each in first]
    assert keys == ["run-7-0-0", "run-7-0-1", "run-7-0-2"]
    assert keys == [properties(each)["IDEMPOTENCY_KEY"] for each in second]
    ids = {properties(each)["UNIQ_KEY"] for each in first + second}
    assert len(ids) == 6


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ({"value": [1]}, "T", "column 'value' must be a string or binary"),
        ({"body": ["a"]}, "T", "column 'body' cannot be written; the sink takes value, topic"),
        ({"key": ["a"]}, "T", "column 'value' is missing"),
        ({"value": ["a"]}, None, "a topic must be given"),
        ({"value": ["a"], "queueId": ["x"]}, "T", "column 'queueId' must be an integer"),
        ({"value": ["a"], "queueId": [1], "shardingKey": ["s"]}, "T", "exclude each other"),
        ({"value": ["a"], "delayTimeLevel": [1], "deliverTime": [5]}, "T", "exclude each other"),
        ({"value": ["a"], "properties": ["s"]}, "T", "'properties' must be a map of strings"),
    ],
)
def test_columns_that_cannot_be_written_are_named(columns, topic, sentence):
    with pytest.raises(OptionError, match=sentence):
        check_columns(pa.table(columns).schema, topic=topic)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"value": pa.array([None], pa.string())}, "row 0 has no value"),
        ({"value": ["a", "b"], "key": ["k", "x\x01y"]}, "row 1: property .* holds a character 1"),
        ({"value": ["a"], "key": ["k" * 40_000]}, "row 0: the properties are longer"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(columns, sentence):
    with pytest.raises(SparkSourceError, match=sentence):
        messages(columns)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"topic": "T"}, "'namesrv' must be given"),
        ({"path": "/store"}, "write with option 'namesrv', not 'path'"),
        ({"namesrv": "a:1", "idempotencyKey": "yes"}, "must be auto or none, not 'yes'"),
        ({"namesrv": "a"}, "must be host:port"),
        ({"namesrv": "a:1", "topik": "T"}, "did you mean 'topic'"),
    ],
)
def test_options_of_the_sink(given, sentence):
    with pytest.raises(OptionError, match=sentence):
        parse_sink_options(given)
