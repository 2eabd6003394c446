"""The store's fast packing is the declared layout, and checking survives any bytes."""

from pathlib import Path
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk, SetClock, open_store

from pyritemq.protocol.record import BORNHOST_V6, MAGIC_V1, MAGIC_V2, STOREHOSTADDRESS_V6
from pyritemq.protocol.record_layout import MessageRecord
from pyritemq.storage import MessageToStore
from pyritemq.storage.consume_queue import UNIT_SIZE
from pyritemq.storage.layouts import QueueUnit
from pyritemq.storage.record_codec import (
    BadRecord,
    Blank,
    CheckedRecord,
    check_record,
    store_timestamp_of,
)

ROOT = Path("/store")
I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
HOST = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20))
TOPIC = st.builds(  # drawing 300 letters one by one would be most of the time
    lambda first, length: (first + "bXYZ_-%|" * 40)[:length],
    st.sampled_from("aX%|_"),
    st.integers(1, 300) | st.sampled_from([127, 128]),
)
# compression, multi tags, inner batch …: all but the bits that the store itself sets or acts on
PLAIN_SYS_FLAG = st.integers(0, 2**12 - 1).map(lambda flag: flag & ~0x3C)

messages = st.builds(
    MessageToStore,
    TOPIC.map(str.encode),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=300),
    st.binary(max_size=300),
    tags_code=I64,
    flag=I32,
    sys_flag=PLAIN_SYS_FLAG,
    born_timestamp=I64,
    born_host=HOST,
    store_host=HOST,
    reconsume_times=I32,
    prepared_transaction_offset=I64,
)


def declared(message, result):
    """The record as the declaration builds it from its meaning."""
    hosts_v6 = BORNHOST_V6 if len(message.born_host) == 20 else 0
    hosts_v6 |= STOREHOSTADDRESS_V6 if len(message.store_host) == 20 else 0
    return MessageRecord.build(
        {
            "magic": MAGIC_V1 if len(message.topic) <= 127 else MAGIC_V2,
            "body_crc": crc32(message.body) & 0x7FFFFFFF,
            "queue_id": message.queue_id,
            "flag": message.flag,
            "queue_offset": result.queue_offset,
            "phy_offset": result.phy_offset,
            "sys_flag": message.sys_flag | hosts_v6,
            "born_timestamp": message.born_timestamp,
            "born_host": host(message.born_host),
            "store_timestamp": result.store_timestamp,
            "store_host": host(message.store_host),
            "reconsume_times": message.reconsume_times,
            "prepared_transaction_offset": message.prepared_transaction_offset,
            "body": message.body,
            "topic": message.topic,
            "properties": message.properties,
        }
    )


def host(packed):
    return {"address": packed[:-4], "port": int.from_bytes(packed[-4:], "big", signed=True)}


@given(st.lists(messages, min_size=1, max_size=5), st.integers(0, 2**62))
@settings(max_examples=100, deadline=None)
def test_packed_records_and_units_are_what_the_layouts_declare(batch, now):
    store = open_store(ROOT, SetClock(now), MemoryDisk(), commit_log_file_size=1 << 14)
    results = store.put_batch(batch)
    for message, result in zip(batch, results, strict=True):
        record = store.record_at(result.phy_offset)
        assert bytes(record) == declared(message, result)
        assert store_timestamp_of(record) == now
        queue = store.queues.find(message.topic, message.queue_id)
        unit = {
            "phy_offset": result.phy_offset,
            "size": result.size,
            "tags_code": message.tags_code,
        }
        units = bytes(queue.units(result.queue_offset, 1))
        assert units == QueueUnit.build(unit)
        assert len(units) == UNIT_SIZE


@given(messages, st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_a_good_record_checks_and_tells_what_deriving_needs(message, now):
    store = open_store(ROOT, SetClock(now), MemoryDisk())
    (result,) = store.put_batch([message])
    found = check_record(store.record_at(result.phy_offset), 0, phy_offset=0, check_crc=True)
    assert isinstance(found, CheckedRecord)
    assert (found.size, found.topic, found.queue_id) == (
        result.size,
        message.topic,
        message.queue_id,
    )
    assert (found.queue_offset, found.phy_offset) == (0, 0)
    assert (found.store_timestamp, found.properties) == (now, message.properties)


@given(messages, st.data())
@settings(max_examples=120, deadline=None)
def test_checking_never_raises_and_never_passes_a_cut_record(message, data):
    store = open_store(ROOT, SetClock(), MemoryDisk())
    (result,) = store.put_batch([message])
    whole = bytes(store.record_at(0))
    cut = data.draw(st.integers(0, len(whole) - 1))
    found = check_record(memoryview(whole[:cut]), 0, phy_offset=0, check_crc=True)
    assert isinstance(found, BadRecord)
    at = data.draw(st.integers(0, result.size - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    found = check_record(memoryview(changed), 0, phy_offset=0, check_crc=True)
    assert isinstance(found, CheckedRecord | BadRecord | Blank)


@given(st.binary(max_size=200), st.integers(-10, 250))
def test_checking_survives_any_bytes(junk, position):
    position = max(position, 0)
    found = check_record(memoryview(junk), position, phy_offset=position, check_crc=True)
    assert isinstance(found, CheckedRecord | BadRecord | Blank)
