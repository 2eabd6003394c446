"""Check points and acks against what Java 5.5.0 writes (printed by its own classes, 2026-11-18)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyritemq.protocol.record import decode_properties
from pyritemq.server.broker.pop.handles import Handle, handle_text, parse_handle
from pyritemq.server.broker.pop.revive_records import (
    Ack,
    ReviveRecordError,
    check_point,
    decode_ack,
    decode_check_point,
    revive_message,
)

JAVA_POINT = (
    b'{"bm":0,"bn":"broker-a","c":"G","d":[0,2],"it":60000,"n":2,"pt":1700000000000,"q":3,'
    b'"reviveTime":1700000060000,"ro":0,"so":5,"sp":false,"t":"T"}'
)
JAVA_POINT_AGAIN = (
    b'{"bm":0,"bn":"broker-a","c":"G","d":[0,2],"it":60000,"n":2,"pt":1700000000000,"q":3,'
    b'"reviveTime":1700000060000,"ro":0,"rp":"1","so":5,"sp":true,"t":"T"}'
)
JAVA_ACK = b'{"ao":7,"bn":"broker-a","c":"G","pt":1700000000000,"q":3,"so":5,"t":"T"}'
JAVA_BATCH_ACK = (
    b'{"ao":-1,"aol":[5,7],"bn":"broker-a","c":"G","pt":1700000000000,"q":3,"so":5,"t":"T"}'
)
NAMES = st.text("abcXYZ019_-%", min_size=1, max_size=20)
LONGS = st.integers(0, 2**62)


def point(**more):
    fields = {
        "topic": "T",
        "group": "G",
        "queue_id": 3,
        "start_offset": 5,
        "offsets": [5, 7],
        "pop_time": 1_700_000_000_000,
        "invisible_time": 60_000,
        "broker_name": "broker-a",
    }
    return check_point(**fields | more)


def test_a_check_point_is_written_and_read_as_java_does():
    assert point().body() == JAVA_POINT
    assert point(re_put_times=1, suspend=True).body() == JAVA_POINT_AGAIN
    assert decode_check_point(JAVA_POINT) == point()
    assert decode_check_point(JAVA_POINT_AGAIN) == point(re_put_times=1, suspend=True)


def test_acks_are_written_and_read_as_java_does():
    ack = Ack("T", "G", 3, 5, 1_700_000_000_000, "broker-a", (7,))
    batch = Ack("T", "G", 3, 5, 1_700_000_000_000, "broker-a", (5, 7), is_batch=True)
    assert ack.body() == JAVA_ACK
    assert batch.body() == JAVA_BATCH_ACK
    assert decode_ack(JAVA_ACK, own_broker="x") == ack
    assert decode_ack(JAVA_BATCH_ACK, own_broker="x") == batch
    assert ack.key == batch.key == point().key


def test_records_of_old_brokers_are_understood():
    old = json.loads(JAVA_POINT)
    for name in ("d", "bn", "sp"):
        del old[name]
    read = decode_check_point(json.dumps(old).encode())
    assert (read.offsets, read.broker_name) == ([5, 6], "")
    long_names = {"ackOffset": 7, "startOffset": 5, "consumerGroup": "G", "topic": "T"}
    long_names |= {"queueId": 3, "popTime": 1_700_000_000_000}
    ack = decode_ack(json.dumps(long_names).encode(), own_broker="broker-a")
    assert ack == Ack("T", "G", 3, 5, 1_700_000_000_000, "broker-a", (7,))


def test_a_check_point_knows_what_is_acked():
    popped = point()
    assert popped.unacked == [5, 7]
    assert popped.ack(7)
    assert not popped.ack(6)
    assert popped.unacked == [5]
    assert popped.ack(5)
    assert popped.all_acked


def test_a_record_is_delivered_by_the_timers_and_has_javas_id():
    message = revive_message(
        point(), revive_topic="R", revive_queue_id=1, deliver_ms=9, now_ms=5, host=b"\x7f" * 8
    )
    properties = decode_properties(message.properties)
    assert properties == {
        "TAGS": "ck",
        "TIMER_DELIVER_MS": "9",
        "UNIQ_KEY": "T@3@5@G@1700000000000@broker-a@ck",
    }
    assert (message.topic, message.queue_id, message.born_timestamp) == (b"R", 1, 5)


@given(
    topic=NAMES,
    group=NAMES,
    start=LONGS,
    diffs=st.lists(st.integers(0, 10_000), min_size=1, max_size=32, unique=True),
    pop_time=LONGS,
    invisible=LONGS,
)
def test_any_check_point_survives_its_body(topic, group, start, diffs, pop_time, invisible):
    made = point(
        topic=topic,
        group=group,
        start_offset=start,
        offsets=[start + diff for diff in diffs],
        pop_time=pop_time,
        invisible_time=invisible,
    )
    assert decode_check_point(made.body()) == made


@given(st.binary(max_size=200) | st.lists(LONGS | NAMES).map(lambda v: json.dumps(v).encode()))
def test_garbage_is_refused(body):
    for decode in (decode_check_point, lambda data: decode_ack(data, own_broker="b")):
        with pytest.raises(ReviveRecordError):
            decode(body)


@given(st.builds(Handle, LONGS, LONGS, LONGS, st.integers(0, 999), st.sampled_from("012"), NAMES))
def test_any_handle_is_read_back(handle):
    assert parse_handle(handle_text(handle, 3, 7)) == handle


@given(st.text(max_size=60))
def test_a_bad_handle_is_a_value_error(text):
    try:
        parse_handle(text)
    except ValueError:
        return
    assert len(text.split(" ")) >= 6
