"""A half keeps all that its message needs on the way back to its topic."""

import pytest

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import (
    COMPRESSED,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    Record,
    decode_properties,
    decode_record,
    encode_properties,
)
from pyritemq.server.broker.transactions import halves
from pyritemq.storage.messages import MessageToStore, PutResult, PutStatus

HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def half_of(**properties):
    """A message that was sent as a half, as the store gives it back."""
    text = encode_properties({"TRAN_MSG": "true", "PGROUP": "G", "UNIQ_KEY": "id"} | properties)
    sys_flag = COMPRESSED | TRANSACTION_PREPARED
    message = MessageToStore(b"Topic", 3, b"body", text, flag=7, sys_flag=sys_flag)
    halves.prepare(message)
    return stored(message)


def stored(message, *, queue_offset=5, phy_offset=1000):
    return Record(
        total_size=0,
        magic=0,
        body_crc=11,
        queue_id=message.queue_id,
        flag=message.flag,
        queue_offset=queue_offset,
        phy_offset=phy_offset,
        sys_flag=message.sys_flag,
        born_timestamp=123,
        born_host=HOST,
        store_timestamp=456,
        store_host=HOST,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=message.body,
        topic=message.topic.decode(),
        properties=message.properties,
    )


def test_a_half_lies_in_queue_0_of_the_half_topic_and_says_where_it_belongs():
    half = half_of()
    assert (half.topic, half.queue_id) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0)
    assert half.sys_flag == COMPRESSED, "a prepared record would be in no queue"
    properties = decode_properties(half.properties)
    assert properties["REAL_TOPIC"] == "Topic"
    assert properties["REAL_QID"] == "3"
    assert properties["__transactionId__"] == "id"


def test_a_committed_message_is_the_one_that_was_sent():
    message = halves.committed(half_of(TAGS="A"), level_max=18)
    assert (message.topic, message.queue_id, message.body) == (b"Topic", 3, b"body")
    assert (message.flag, message.sys_flag) == (7, COMPRESSED | TRANSACTION_COMMIT)
    assert message.prepared_transaction_offset == 1000
    assert message.tags_code == tags_code("A")
    properties = decode_properties(message.properties)
    assert properties["TRAN_MSG"] == "true"
    assert not {"REAL_TOPIC", "REAL_QID"} & properties.keys()


def test_a_commit_with_a_delay_level_goes_to_the_schedule_topic():
    message = halves.committed(half_of(DELAY="2"), level_max=18)
    assert (message.topic, message.queue_id) == (b"SCHEDULE_TOPIC_XXXX", 1)
    properties = decode_properties(message.properties)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("Topic", "3")
    assert "TRAN_MSG" not in properties


def test_a_record_that_is_no_half_cannot_be_committed():
    with pytest.raises(ValueError, match="where it belongs"):
        halves.committed(half_of()._replace(properties=b"PGROUP\x01G\x02"), level_max=18)


def test_a_half_remembers_the_first_offset_through_all_immune_copies():
    first = half_of()
    once = halves.immune(first, decode_properties(first.properties))
    again = stored(once, queue_offset=9)
    twice = halves.immune(again, decode_properties(again.properties))
    for copy in (once, twice):
        assert decode_properties(copy.properties)["TRAN_PREPARED_QUEUE_OFFSET"] == "5"
        assert (copy.topic, copy.queue_id, copy.flag) == (halves.HALF_TOPIC, 0, 7)


def test_a_resumed_half_is_asked_about_from_the_beginning():
    record = stored(halves.discarded(half_of(TRANSACTION_CHECK_TIMES="15")))
    assert (record.topic, record.queue_id) == ("TRANS_CHECK_MAX_TIME_TOPIC", 0)
    message = halves.resumed(record)
    assert (message.topic, message.queue_id) == (halves.HALF_TOPIC, 0)
    assert decode_properties(message.properties)["TRANSACTION_CHECK_TIMES"] == "0"


def test_ops_are_lists_of_offsets_as_java_writes_them():
    message = halves.op_message([3, 14, 15], host=HOST, now_ms=9)
    assert (message.topic, message.queue_id) == (b"RMQ_SYS_TRANS_OP_HALF_TOPIC", 0)
    assert message.body == b"3,14,15,"
    assert decode_properties(message.properties)["TAGS"] == "d"
    assert message.tags_code == tags_code("d")
    assert halves.decided_offsets(stored(message)) == [3, 14, 15]


@pytest.mark.parametrize(
    ("tags", "body", "offsets"),
    [("d", b"7", [7]), ("d", b"7,x,,-1,8", [7, 8]), ("x", b"7,", []), ("d", b"", [])],
)
def test_only_offsets_under_the_tag_d_count(tags, body, offsets):
    text = encode_properties({"TAGS": tags})
    op = stored(MessageToStore(halves.OP_TOPIC, 0, body, text))
    assert halves.decided_offsets(op) == offsets


def test_a_question_shows_the_message_under_its_own_topic_and_the_halfs_new_place():
    half = half_of(TAGS="A")
    properties = decode_properties(half.properties) | {"TRANSACTION_CHECK_TIMES": "1"}
    place = PutResult(PutStatus.PUT_OK, 4000, 8, 789, 100)
    command = halves.question(half, properties, place, broker_name="broker-a")
    assert command.is_oneway
    assert command.ext_fields == {
        "topic": "RMQ_SYS_TRANS_HALF_TOPIC",
        "tranStateTableOffset": "8",
        "commitLogOffset": "4000",
        "msgId": "id",
        "transactionId": "id",
        "offsetMsgId": (HOST + (4000).to_bytes(8, "big")).hex().upper(),
        "bname": "broker-a",
    }
    shown = decode_record(command.body)
    assert (shown.topic, shown.queue_id, shown.body) == ("Topic", 3, b"body")
    assert (shown.queue_offset, shown.phy_offset) == (8, 4000)
    assert decode_properties(shown.properties)["TRANSACTION_CHECK_TIMES"] == "1"
