"""The plain reader of records and batches equals the construct declaration."""

from typing import Any

from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.record import (
    BORNHOST_V6,
    MAGIC_V1,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
    BatchEntry,
    Record,
    decode_batch,
    decode_properties,
    decode_record,
    encode_batch,
    encode_properties,
)
from pyritemq.protocol.record_layout import BatchMessage, MessageRecord

i32 = st.integers(-(1 << 31), (1 << 31) - 1)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), min_size=1)


@st.composite
def record_members(draw: Any) -> dict[str, Any]:
    sys_flag = draw(i32)
    magic = draw(st.sampled_from([MAGIC_V1, MAGIC_V2]))
    numbers = {
        name: draw(i32) for name in ("body_crc", "queue_id", "flag", "reconsume_times")
    } | {
        name: draw(i64)
        for name in (
            "queue_offset", "phy_offset", "born_timestamp", "store_timestamp",
            "prepared_transaction_offset",
        )
    }  # fmt: skip
    born_size = 16 if sys_flag & BORNHOST_V6 else 4
    store_size = 16 if sys_flag & STOREHOSTADDRESS_V6 else 4
    return numbers | {
        "magic": magic,
        "sys_flag": sys_flag,
        "born_host": {
            "address": draw(st.binary(min_size=born_size, max_size=born_size)),
            "port": draw(i32),
        },
        "store_host": {
            "address": draw(st.binary(min_size=store_size, max_size=store_size)),
            "port": draw(i32),
        },
        "body": draw(st.binary(max_size=50)),
        "topic": draw(st.text("tT%_-09é", max_size=40)).encode(),
        "properties": draw(st.binary(max_size=50)),
    }


def as_record(parsed: Any) -> Record:
    values = dict(parsed)
    for host in ("born_host", "store_host"):
        values[host] = parsed[host].address + parsed[host].port.to_bytes(4, signed=True)
    values["topic"] = parsed.topic.decode("utf-8", "replace")
    return Record(**{name: values[name] for name in Record._fields})


@given(record_members(), st.binary(max_size=9), st.binary(max_size=9))
def test_record_is_read_as_declared_wherever_it_lies(
    members: dict[str, Any], before: bytes, behind: bytes
) -> None:
    data = MessageRecord.build(members)
    record = decode_record(before + data + behind, len(before))
    assert record == as_record(MessageRecord.parse(data))
    assert record.total_size == len(data)


@given(record_members(), st.data())
def test_damaged_record_is_refused_or_read_as_declared(
    members: dict[str, Any], data: st.DataObject
) -> None:
    damaged = bytearray(MessageRecord.build(members))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        record = decode_record(bytes(damaged))
    except RecordError:
        return
    try:
        assert record == as_record(MessageRecord.parse(bytes(damaged)))
    except ConstructError as error:
        raise AssertionError("the declaration refuses what the reader took") from error


@given(st.binary(max_size=200))
def test_garbage_gives_nothing_but_a_record_error(data: bytes) -> None:
    for decode in (decode_record, decode_batch):
        try:
            decode(data)
        except RecordError:
            continue
    decode_properties(data)


@given(st.lists(st.builds(BatchEntry, i32, st.binary(max_size=30), st.binary(max_size=30))))
def test_batch_is_written_as_declared_and_read_back(entries: list[BatchEntry]) -> None:
    body = encode_batch(entries)
    assert body == b"".join(BatchMessage.build(entry._asdict()) for entry in entries)
    assert decode_batch(body) == entries
    assert decode_batch(memoryview(body)) == entries


@given(st.dictionaries(text, text, max_size=6))
def test_properties_survive(properties: dict[str, str]) -> None:
    assert decode_properties(encode_properties(properties)) == properties
