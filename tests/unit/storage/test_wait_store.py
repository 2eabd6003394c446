"""SYNC_FLUSH and who waits for it: the property WAIT, and FLUSH_DISK_TIMEOUT for each message."""

from pathlib import Path

import pytest
from unit.storage.kit import MemoryDisk, SetClock, open_store, read_queue

from pyritemq.storage import MessageToStore
from pyritemq.storage.appender import _waits
from pyritemq.storage.messages import PutStatus

ROOT = Path("/store")
OK, LATE = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT


def sent(properties=b""):
    return MessageToStore(b"T", 0, b"body", properties)


WAITING = sent(b"WAIT\x01true\x02")
NOT_WAITING = sent(b"KEYS\x01k\x02WAIT\x01false\x02")


class SlowDisk(MemoryDisk):
    """Each sync takes six seconds."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def count_sync(self):
        super().count_sync()
        self.clock.ms += 6_000


@pytest.mark.parametrize(
    ("properties", "waits"),
    [
        (b"", True),
        (b"WAIT\x01true\x02", True),
        (b"WAIT\x01TRUE", True),
        (b"WAIT\x01false\x02", False),
        (b"WAIT\x01no\x02", False),
        (b"XWAIT\x01false\x02", True),
        (b"WAIT\x01\x02", True),
    ],
)
def test_who_waits_is_decided_as_javas_boolean_is_parsed(properties, waits):
    assert _waits(sent(properties)) is waits


def test_a_batch_that_nobody_waits_for_is_not_synced_but_soon_is():
    disk, clock = MemoryDisk(), SetClock()
    store = open_store(ROOT, clock, disk, flush_disk_type="SYNC_FLUSH")
    before = disk.syncs
    assert [result.status for result in store.put_batch([NOT_WAITING] * 3)] == [OK] * 3
    assert disk.syncs == before
    assert len(read_queue(store)) == 3
    clock.ms += 500
    store.housekeep()
    assert store.commit_log.flushed_where == store.max_phy_offset


def test_one_who_waits_is_enough_to_sync_the_batch():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, flush_disk_type="SYNC_FLUSH")
    store.put_batch([NOT_WAITING])
    before = disk.syncs
    store.put_batch([NOT_WAITING, WAITING, NOT_WAITING])
    assert disk.syncs == before + 1
    assert store.commit_log.flushed_where == store.max_phy_offset, "with all that came before"


def test_a_late_sync_is_a_timeout_for_those_who_wait_alone():
    clock = SetClock()
    store = open_store(ROOT, clock, SlowDisk(clock), flush_disk_type="SYNC_FLUSH")
    results = store.put_batch([NOT_WAITING, WAITING, sent(), sent(b"x" * 40_000)])
    refused = PutStatus.PROPERTIES_SIZE_EXCEEDED
    assert [result.status for result in results] == [OK, LATE, LATE, refused]
    assert len(read_queue(store)) == 3, "late is stored all the same"


def test_nobody_waits_under_asynchronous_flush():
    clock = SetClock()
    disk = SlowDisk(clock)
    store = open_store(ROOT, clock, disk)
    before = disk.syncs
    assert [result.status for result in store.put_batch([WAITING, sent()])] == [OK, OK]
    assert disk.syncs == before
