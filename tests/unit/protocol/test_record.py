import pytest

from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.record import (
    BORNHOST_V6,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
    BatchEntry,
    decode_batch,
    decode_properties,
    decode_record,
    decode_records,
    encode_batch,
    encode_properties,
)
from pyritemq.protocol.record_layout import MessageRecord

V4 = {"address": b"\x7f\0\0\x01", "port": 10911}
V6 = {"address": bytes(15) + b"\x01", "port": 10911}


def build(**changes: object) -> bytes:
    sys_flag = int(str(changes.get("sys_flag", 0)))
    members: dict[str, object] = {
        "magic": MAGIC_V1,
        "body_crc": 1,
        "queue_id": 2,
        "flag": 3,
        "queue_offset": 4,
        "phy_offset": 5,
        "sys_flag": 0,
        "born_timestamp": 6,
        "born_host": V6 if sys_flag & BORNHOST_V6 else V4,
        "store_timestamp": 7,
        "store_host": V6 if sys_flag & STOREHOSTADDRESS_V6 else V4,
        "reconsume_times": 8,
        "prepared_transaction_offset": 9,
        "body": b"hello",
        "topic": b"TopicTest",
        "properties": b"TAGS\x01a\x02",
    }
    data: bytes = MessageRecord.build(members | changes)
    return data


def test_smallest_record_has_the_91_bytes_that_java_counts() -> None:
    assert len(build(body=b"", topic=b"", properties=b"")) == 91


@pytest.mark.parametrize(
    ("sys_flag", "more"),
    [(0, 0), (BORNHOST_V6, 12), (STOREHOSTADDRESS_V6, 12), (BORNHOST_V6 | STOREHOSTADDRESS_V6, 24)],
)
def test_hosts_take_the_size_that_the_sys_flag_says(sys_flag: int, more: int) -> None:
    data = build(sys_flag=sys_flag)
    record = decode_record(data)
    assert record.total_size == len(data) == len(build()) + more
    assert (record.topic, record.body, record.properties) == (
        "TopicTest",
        b"hello",
        b"TAGS\x01a\x02",
    )
    assert record.store_host[-4:] == (10911).to_bytes(4)


def test_long_topic_takes_a_two_byte_length_in_a_v2_record() -> None:
    record = decode_record(build(magic=MAGIC_V2, topic=b"t" * 200))
    assert record.topic == "t" * 200


def test_records_of_a_pull_body_follow_one_another() -> None:
    body = build(queue_offset=1) + build(queue_offset=2, body=b"") + build(queue_offset=3)
    assert [record.queue_offset for record in decode_records(memoryview(body))] == [1, 2, 3]
    assert decode_record(body, len(build())).queue_offset == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        build()[:-1],
        build()[:7],
        (8).to_bytes(4) + (MAGIC_BLANK & 0xFFFFFFFF).to_bytes(4),
        (8).to_bytes(4) + (MAGIC_V1 & 0xFFFFFFFF).to_bytes(4),
        bytes(4) + build()[4:],
        (len(build()) - 1).to_bytes(4) + build()[4:],
        (len(build()) + 1).to_bytes(4) + build()[4:] + b"x",
        b"\xff\xff\xff\xff" + build()[4:],
        build()[:84] + b"\xff\xff\xff\xff" + build()[88:],  # negative body length
        build()[:84] + b"\x7f\xff\xff\xff" + build()[88:],
        build()[:93] + b"\xff" + build()[94:],  # negative topic length
    ],
)
def test_record_that_does_not_add_up_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        decode_record(data)


def test_properties_are_written_with_a_separator_behind_each() -> None:
    data = encode_properties({"KEYS": "k1 k2", "TAGS": "é"})
    assert data == b"KEYS\x01k1 k2\x02TAGS\x01\xc3\xa9\x02"
    assert decode_properties(data) == {"KEYS": "k1 k2", "TAGS": "é"}


@pytest.mark.parametrize(
    ("data", "properties"),
    [
        (b"", {}),
        (b"a\x01b", {"a": "b"}),  # 4.9.8 leaves the last separator out
        (b"a\x01b\x02\x02\x02c\x01d\x02", {"a": "b", "c": "d"}),
        (b"\x01b\x02a\x01\x02alone\x02k\x01v\x01w\x02", {"k": "v\x01w"}),
        (b"a\x011\x02a\x012\x02", {"a": "2"}),
    ],
)
def test_properties_are_read_as_javas_string2message_properties_reads_them(
    data: bytes, properties: dict[str, str]
) -> None:
    assert decode_properties(data) == properties


def test_batch_body_gives_its_messages_in_order() -> None:
    entries = [
        BatchEntry(1, b"one", b"a\x01b\x02"),
        BatchEntry(-2, b"", b""),
        BatchEntry(0, b"3", b""),
    ]
    assert decode_batch(encode_batch(entries)) == entries
    assert decode_batch(b"") == []


@pytest.mark.parametrize(
    "body",
    [
        encode_batch([BatchEntry(0, b"body", b"p")])[:-1],
        encode_batch([BatchEntry(0, b"body", b"p")]) + b"x",
        bytes(16) + b"\xff\xff\xff\xff" + bytes(2),
        bytes(20) + b"\xff\xff",
        bytes(16) + b"\x7f\xff\xff\xff" + bytes(2),
    ],
)
def test_broken_batch_body_is_refused(body: bytes) -> None:
    with pytest.raises(RecordError):
        decode_batch(body)
