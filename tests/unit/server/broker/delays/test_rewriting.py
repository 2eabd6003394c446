"""Where a delayed message goes, and what it is when it comes out again."""

import pytest

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    Record,
    decode_properties,
    encode_properties,
)
from pyritemq.server.broker.delays.rewriting import NotDeliverable, delay, due_message
from pyritemq.storage.messages import MessageToStore

SCHEDULE = b"SCHEDULE_TOPIC_XXXX"


def message(sys_flag=0, **properties):
    return MessageToStore(
        b"Topic", 3, b"body", encode_properties(properties), tags_code=65, sys_flag=sys_flag
    )


def record(**properties):
    return Record(
        total_size=0,
        magic=0,
        body_crc=0,
        queue_id=2,
        flag=7,
        queue_offset=0,
        phy_offset=0,
        sys_flag=1,
        born_timestamp=11,
        born_host=b"12345678",
        store_timestamp=22,
        store_host=b"87654321",
        reconsume_times=2,
        prepared_transaction_offset=99,
        body=b"body",
        topic="SCHEDULE_TOPIC_XXXX",
        properties=encode_properties(properties),
    )


def test_a_level_sends_the_message_to_its_queue_and_keeps_the_real_place():
    delayed = message(TAGS="A", DELAY="5")
    assert delay(delayed, level_max=18)
    assert (delayed.topic, delayed.queue_id, delayed.tags_code) == (SCHEDULE, 4, None)
    assert decode_properties(delayed.properties) == {
        "TAGS": "A",
        "DELAY": "5",
        "REAL_TOPIC": "Topic",
        "REAL_QID": "3",
    }


def test_a_level_above_the_last_is_the_last():
    delayed = message(DELAY="99")
    assert delay(delayed, level_max=4)
    assert delayed.queue_id == 3
    assert decode_properties(delayed.properties)["DELAY"] == "4"


@pytest.mark.parametrize("properties", [{}, {"DELAY": "0"}, {"DELAY": "-1"}, {"KEYS": "DELAY"}])
def test_a_message_without_a_level_stays_as_it_is(properties):
    ordinary = message(**properties)
    assert not delay(ordinary, level_max=18)
    assert (ordinary.topic, ordinary.queue_id, ordinary.tags_code) == (b"Topic", 3, 65)
    assert decode_properties(ordinary.properties) == properties


def test_a_level_wins_over_timers():
    delayed = message(DELAY="1", TIMER_DELAY_SEC="5", TIMER_DELIVER_MS="7", TIMER_DELAY_MS="9")
    assert delay(delayed, level_max=18)
    assert set(decode_properties(delayed.properties)) == {"DELAY", "REAL_TOPIC", "REAL_QID"}


@pytest.mark.parametrize("kind", [TRANSACTION_PREPARED, TRANSACTION_ROLLBACK])
def test_halves_of_transactions_are_not_delayed(kind):
    assert not delay(message(kind, DELAY="1"), level_max=18)


def test_a_committed_transaction_may_be_delayed():
    assert delay(message(TRANSACTION_COMMIT, DELAY="1"), level_max=18)


def test_a_level_that_is_no_number_is_an_error():
    with pytest.raises(ValueError, match="abc"):
        delay(message(DELAY="abc"), level_max=18)


def test_a_due_message_is_the_stored_one_in_its_real_place():
    due = due_message(record(TAGS="A", DELAY="3", REAL_TOPIC="Topic", REAL_QID="6"))
    assert (due.topic, due.queue_id, due.body) == (b"Topic", 6, b"body")
    assert due.tags_code == tags_code("A")
    assert (due.flag, due.sys_flag, due.reconsume_times) == (7, 1, 2)
    assert (due.born_timestamp, due.born_host, due.store_host) == (11, b"12345678", b"87654321")
    assert due.prepared_transaction_offset == 0
    assert decode_properties(due.properties)["DELAY"] == "3", "Java's consumers see the level"


@pytest.mark.parametrize(
    "properties",
    [
        {"REAL_QID": "0"},
        {"REAL_TOPIC": "Topic"},
        {"REAL_TOPIC": "Topic", "REAL_QID": "x"},
        {"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"},
    ],
)
def test_a_record_without_a_real_place_is_not_deliverable(properties):
    with pytest.raises(NotDeliverable):
        due_message(record(DELAY="1", **properties))
