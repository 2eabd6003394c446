"""put_batch: where messages go, what is refused, and that a failure leaves nothing behind."""

import errno
from pathlib import Path

import pytest
from unit.storage.kit import MemoryDisk, SetClock, message, open_store, read_queue

from pyritemq.protocol.record import (
    BORNHOST_V6,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    STOREHOSTADDRESS_V6,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    decode_record,
)
from pyritemq.storage import GetStatus, MessageToStore, PutStatus
from pyritemq.storage.layouts import BlankFiller

ROOT = Path("/store")


def test_messages_of_a_batch_lie_one_after_the_other_in_order(store, clock):
    results = store.put_batch([message(b"one"), message(b"two", queue_id=1), message(b"three")])
    assert [result.status for result in results] == [PutStatus.PUT_OK] * 3
    assert [result.queue_offset for result in results] == [0, 0, 1]
    assert results[1].phy_offset == results[0].size
    assert results[2].phy_offset == results[1].phy_offset + results[1].size
    assert {result.store_timestamp for result in results} == {clock.ms}
    assert [record.body for record in read_queue(store)] == [b"one", b"three"]
    assert [record.body for record in read_queue(store, queue_id=1)] == [b"two"]


def test_a_record_holds_every_field_of_its_message(store, clock):
    sent = MessageToStore(
        b"Topic",
        3,
        b"the body",
        b"KEYS\x01k\x02",
        tags_code=7,
        flag=-5,
        sys_flag=1,
        born_timestamp=123,
        born_host=b"\x01\x02\x03\x04\x00\x00\x10\x00",
        store_host=b"\x05\x06\x07\x08\x00\x00\x2a\x9f",
        reconsume_times=2,
        prepared_transaction_offset=9,
    )
    (result,) = store.put_batch([sent])
    record = decode_record(store.record_at(result.phy_offset), 0)
    assert (record.topic, record.queue_id, record.body) == ("Topic", 3, b"the body")
    assert (record.flag, record.sys_flag, record.magic) == (-5, 1, MAGIC_V1)
    assert (record.born_timestamp, record.store_timestamp) == (123, clock.ms)
    assert (record.born_host, record.store_host) == (sent.born_host, sent.store_host)
    assert (record.reconsume_times, record.prepared_transaction_offset) == (2, 9)
    assert record.properties == b"KEYS\x01k\x02"
    assert record.total_size == result.size


def test_queue_offsets_go_on_from_batch_to_batch(store):
    store.put_batch([message(), message()])
    (third,) = store.put_batch([message()])
    assert third.queue_offset == 2
    assert store.max_offset("T", 0) == 3


def test_a_record_that_does_not_fit_goes_to_the_next_file_behind_a_filler(store):
    body = b"x" * 900
    results = store.put_batch([message(body) for _ in range(6)])
    in_first = [result for result in results if result.phy_offset < 4096]
    assert results[len(in_first)].phy_offset == 4096
    blank_at = in_first[-1].phy_offset + in_first[-1].size
    filler = BlankFiller.parse(bytes(store.commit_log.files.files[0].view[blank_at:]))
    assert filler.size == 4096 - blank_at
    assert filler.magic == MAGIC_BLANK
    assert [record.body for record in read_queue(store)] == [body] * 6


def test_a_record_may_fill_a_file_up_to_the_fillers_head(store):
    overhead = store.put_batch([message(b"")])[0].size
    exact = message(b"x" * (4096 - 8 - 2 * overhead))
    assert store.put_batch([exact])[0].phy_offset == overhead
    assert store.max_phy_offset == 4096 - 8
    assert store.put_batch([message()])[0].phy_offset == 4096


def test_a_topic_longer_than_127_bytes_makes_a_version_2_record(store):
    for topic, magic in ((b"t" * 127, MAGIC_V1), (b"t" * 128, MAGIC_V2)):
        (result,) = store.put_batch([MessageToStore(topic, 0, b"body", b"A\x01B\x02")])
        record = decode_record(store.record_at(result.phy_offset), 0)
        assert (record.magic, record.topic.encode()) == (magic, topic)
        assert record.properties == b"A\x01B\x02"


@pytest.mark.parametrize(
    ("born_size", "store_size", "flags"),
    [
        (8, 8, 0),
        (20, 8, BORNHOST_V6),
        (8, 20, STOREHOSTADDRESS_V6),
        (20, 20, BORNHOST_V6 | STOREHOSTADDRESS_V6),
    ],
)
def test_ipv6_hosts_set_their_flags_and_take_their_room(store, born_size, store_size, flags):
    born, stored = b"b" * born_size, b"s" * store_size
    sent = MessageToStore(b"T", 0, b"body", born_host=born, store_host=stored)
    (result,) = store.put_batch([sent])
    record = decode_record(store.record_at(result.phy_offset), 0)
    assert (record.born_host, record.store_host, record.sys_flag) == (born, stored, flags)
    assert store.store_time_at("T", 0, 0) == record.store_timestamp


@pytest.mark.parametrize("kind", [TRANSACTION_PREPARED, TRANSACTION_ROLLBACK])
def test_a_transaction_half_is_stored_but_not_queued(store, kind):
    half = MessageToStore(b"T", 0, b"half", sys_flag=kind)
    plain, (result, after) = message(b"plain"), store.put_batch([half, message(b"after")])
    assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, 0)
    assert decode_record(store.record_at(result.phy_offset), 0).body == b"half"
    assert after.queue_offset == 0
    store.put_batch([plain])
    assert [record.body for record in read_queue(store)] == [b"after", b"plain"]


def test_a_committed_transaction_is_queued(store):
    store.put_batch([MessageToStore(b"T", 0, b"done", sys_flag=TRANSACTION_COMMIT)])
    assert [record.body for record in read_queue(store)] == [b"done"]


def test_what_is_too_large_is_refused_and_the_rest_of_the_batch_stored(opened):
    store = opened(message_size_max=100)
    results = store.put_batch(
        [
            message(b"x" * 100),
            message(b"x" * 101),
            MessageToStore(b"T", 0, b"", b"p" * 32768),
            MessageToStore(b"T", 0, b"x" * 101, b"p" * 32768),
            message(b"last"),
        ]
    )
    assert [result.status for result in results] == [
        PutStatus.PUT_OK,
        PutStatus.MESSAGE_ILLEGAL,
        PutStatus.PROPERTIES_SIZE_EXCEEDED,
        PutStatus.PROPERTIES_SIZE_EXCEEDED,
        PutStatus.PUT_OK,
    ]
    assert [record.body for record in read_queue(store)] == [b"x" * 100, b"last"]
    assert results[4].queue_offset == 1


def test_properties_may_be_as_long_as_a_java_short(opened):
    store = opened(commit_log_file_size=1 << 17)
    (result,) = store.put_batch([MessageToStore(b"T", 0, b"", b"p" * 32767)])
    assert result.status is PutStatus.PUT_OK
    assert len(read_queue(store)[0].properties) == 32767


def test_a_record_larger_than_a_file_is_refused_without_rolling(store):
    results = store.put_batch([message(), message(b"x" * 4096), message()])
    assert results[1].status is PutStatus.MESSAGE_ILLEGAL
    assert [result.queue_offset for result in (results[0], results[2])] == [0, 1]
    assert len(store.commit_log.files.files) == 1


def test_an_empty_batch_stores_nothing(store):
    assert store.put_batch([]) == []
    assert store.max_phy_offset == 0


def test_the_store_derives_the_tags_code_when_the_message_has_none(store, clock):
    store.put_batch(
        [
            MessageToStore(b"T", 0, b"", b"A\x01b\x02TAGS\x01TagA\x02", tags_code=None),
            MessageToStore(b"SCHEDULE_TOPIC_XXXX", 2, b"", b"DELAY\x013\x02", tags_code=None),
        ]
    )
    assert store.queues.find(b"T", 0).unit(0)[2] == 2598919  # "TagA".hashCode()
    delayed = store.queues.find(b"SCHEDULE_TOPIC_XXXX", 2).unit(0)
    assert delayed[2] == clock.ms + 10_000


def test_a_full_disk_refuses_the_batch_and_leaves_nothing_behind():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    store.put_batch([message(b"kept")])
    end = store.max_phy_offset
    disk.space = 4200  # the first file's part fits, the second file's does not
    results = store.put_batch([message(b"x" * 900) for _ in range(6)])
    assert {result.status for result in results} == {PutStatus.SERVICE_NOT_AVAILABLE}
    assert (store.max_phy_offset, store.max_offset("T", 0)) == (end, 1)
    assert not any(store.commit_log.files.files[0].view[end:])
    assert [record.body for record in read_queue(store)] == [b"kept"]

    disk.space = 1 << 30
    (result, *_) = store.put_batch([message(b"x" * 900) for _ in range(6)])
    assert (result.phy_offset, result.queue_offset) == (end, 1)
    assert [record.queue_offset for record in read_queue(store)] == list(range(7))


def test_synchronous_flush_syncs_a_batch_once_and_before_it_is_visible():
    class Watching(MemoryDisk):
        def count_sync(self) -> None:
            super().count_sync()
            seen.append(store.max_phy_offset)

    seen: list[int] = []
    disk = Watching()
    store = open_store(ROOT, disk=disk, flush_disk_type="SYNC_FLUSH")
    store.put_batch([message(queue_id=queue_id) for queue_id in range(8)])
    assert seen == [0]
    assert store.commit_log.flushed_where == store.max_phy_offset > 0


def test_a_synchronous_flush_that_takes_too_long_is_reported_and_the_messages_are_there():
    class Slow(MemoryDisk):
        def count_sync(self) -> None:
            clock.ms += 5001

    clock = SetClock()
    store = open_store(ROOT, clock, Slow(), flush_disk_type="SYNC_FLUSH")
    (result,) = store.put_batch([message(b"late")])
    assert result.status is PutStatus.FLUSH_DISK_TIMEOUT
    assert [record.body for record in read_queue(store)] == [b"late"]


def test_a_failed_sync_makes_the_store_read_only():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, flush_disk_type="SYNC_FLUSH")
    store.put_batch([message(b"safe")])
    disk.sync_error = OSError(errno.EIO, "Input/output error")
    assert store.put_batch([message(b"lost")])[0].status is PutStatus.SERVICE_NOT_AVAILABLE
    disk.sync_error = None
    assert store.put_batch([message(b"more")])[0].status is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.is_writable
    assert [record.body for record in read_queue(store)] == [b"safe"]
    store.close()
    assert disk.exists(ROOT / "abort"), "the next start must check what is there"


def test_a_closed_store_takes_no_messages(store):
    store.close()
    assert store.put_batch([message()])[0].status is PutStatus.SERVICE_NOT_AVAILABLE


def test_slices_outlive_the_store(store):
    store.put_batch([message(b"still here")])
    result = store.get("T", 0, 0, count_max=1)
    assert result.status is GetStatus.FOUND
    store.close()
    del store
    assert decode_record(result.slices[0], 0).body == b"still here"
