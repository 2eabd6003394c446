"""What the background thread does, and when."""

from pathlib import Path

import pytest
from unit.storage.kit import (
    START_MS,
    MemoryDisk,
    MemoryFile,
    SetClock,
    message,
    open_store,
    read_queue,
)

from pyritemq.storage import PutStatus, mapped_file_queue, queue_table
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.errors import FlushFailedError
from pyritemq.storage.flush import FlushSchedule

ROOT = Path("/store")
PAGES_4 = 4 * 4096


@pytest.fixture
def schedule():
    return FlushSchedule(StoreConfig(root=ROOT), 0)


def test_the_commit_log_is_due_with_four_dirty_pages(schedule):
    assert not schedule.is_commit_log_due(500, PAGES_4 - 1)
    assert schedule.is_commit_log_due(500, PAGES_4)


def test_the_commit_log_is_due_every_ten_seconds_with_anything_dirty(schedule):
    assert not schedule.is_commit_log_due(9_999, 1)
    assert schedule.is_commit_log_due(10_000, 1)
    assert not schedule.is_commit_log_due(10_500, 1)
    assert not schedule.is_commit_log_due(30_000, 0)


def test_queues_are_written_each_second_and_a_checkpoint_each_minute(schedule):
    assert [schedule.is_write_out_due(ms) for ms in (999, 1_000, 1_500, 2_000)] == [
        False,
        True,
        False,
        True,
    ]
    assert [schedule.is_checkpoint_due(ms) for ms in (59_999, 60_000, 60_001)] == [
        False,
        True,
        False,
    ]


def test_a_clock_that_is_set_back_does_not_stop_the_flushing(schedule):
    assert schedule.is_checkpoint_due(10**9)
    assert schedule.is_checkpoint_due(1_000)
    assert not schedule.is_checkpoint_due(60_999)
    assert schedule.is_checkpoint_due(61_000)


def test_housekeeping_flushes_writes_out_and_checkpoints_when_due():
    disk, clock = MemoryDisk(), SetClock()
    store = open_store(ROOT, clock, disk)
    store.put_batch([message()])
    store.housekeep()
    assert store.commit_log.flushed_where == 0
    clock.ms += 1_000
    store.housekeep()
    assert disk.names(ROOT / "consumequeue" / "T" / "0")
    clock.ms += 9_000
    store.housekeep()
    assert store.commit_log.flushed_where == store.max_phy_offset
    clock.ms += 50_000
    store.housekeep()
    assert disk.exists(ROOT / "checkpoint")
    assert store.checkpoint.logics_msg_timestamp == START_MS


def test_of_many_dirty_queues_those_that_waited_longest_are_written_first(monkeypatch):
    monkeypatch.setattr(queue_table, "WRITE_OUT_ALL_MAX", 5)
    disk, clock = MemoryDisk(), SetClock()
    store = open_store(ROOT, clock, disk)
    store.put_batch([message(queue_id=number) for number in range(5)])
    clock.ms += 1_000
    store.housekeep()
    assert len(queue_names(disk)) == 5

    store.put_batch([message(queue_id=number) for number in range(5, 205)])
    for written in (11, 17, 22):  # each time a 32nd of them
        clock.ms += 1_000
        store.put_batch([message(queue_id=5)])
        store.housekeep()
        assert queue_names(disk) == {str(number) for number in range(written)}
    assert [len(read_queue(store, queue_id=number)) for number in (5, 204)] == [4, 1]
    store.persist()
    assert len(queue_names(disk)) == 205
    store.close()


def queue_names(disk):
    """Queues that have a file."""
    return {path.parts[-2] for path in disk.files if "consumequeue" in path.parts}


def test_the_next_file_is_prepared_ahead_and_used_by_the_roll():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    store.put_batch([message(b"x" * 900)])
    store.housekeep()
    assert disk.names(ROOT / "commitlog") == [f"{0:020d}"]
    store.put_batch([message(b"x" * 900) for _ in range(2)])
    store.housekeep()
    assert disk.names(ROOT / "commitlog") == [f"{0:020d}", f"{4096:020d}"]
    store.housekeep()
    prepared = disk.files[ROOT / "commitlog" / f"{4096:020d}"]
    store.put_batch([message(b"x" * 900) for _ in range(3)])
    assert store.commit_log.files.files[1]._file is prepared
    assert len(read_queue(store)) == 6


def test_a_prepared_file_that_was_not_needed_is_gone_after_the_stop():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    store.put_batch([message(b"x" * 900) for _ in range(3)])
    store.prepare_next()
    store.close()
    assert disk.names(ROOT / "commitlog") == [f"{0:020d}"]


def test_a_prepared_file_is_warmed_if_that_is_wanted():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, warm_file_enable=True)
    store.put_batch([message(b"x" * 900) for _ in range(3)])
    space = disk.space
    store.prepare_next()
    assert space - disk.space == 4096
    store.prepare_next()
    assert space - disk.space == 4096
    store.put_batch([message(b"x" * 900) for _ in range(3)])
    assert len(read_queue(store)) == 6
    store.close()


def test_a_roll_in_the_middle_of_warming_loses_nothing(monkeypatch):
    monkeypatch.setattr(mapped_file_queue, "WARM_BYTES", 512)
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, warm_file_enable=True)
    store.put_batch([message(b"x" * 900) for _ in range(3)])
    sync, syncs = MemoryFile.sync, []

    def roll_at_the_second_sync(file):
        sync(file)
        syncs.append(file)
        if len(syncs) == 2:
            store.put_batch([message(b"y" * 900) for _ in range(3)])

    monkeypatch.setattr(MemoryFile, "sync", roll_at_the_second_sync)
    store.prepare_next()
    assert len(syncs) == 2
    assert [record.body[:1] for record in read_queue(store)] == [b"x"] * 3 + [b"y"] * 3
    store.close()


def test_a_full_disk_ends_the_warming_and_nothing_else():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, warm_file_enable=True)
    store.put_batch([message(b"x" * 900) for _ in range(3)])
    disk.space = 1000
    store.housekeep()
    disk.space = 1 << 30
    assert store.put_batch([message()])[0].status is PutStatus.PUT_OK
    store.close()


def test_flush_makes_published_records_durable_in_every_file():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    store.put_batch([message(b"x" * 900) for _ in range(10)])
    store.flush()
    recovered = open_store(ROOT, disk=disk.lose_power())
    assert len(read_queue(recovered)) == 10


def test_a_flush_that_fails_stops_the_store_from_accepting():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    store.put_batch([message()])
    disk.sync_error = OSError(5, "Input/output error")
    with pytest.raises(FlushFailedError, match="could not be synced: Input/output error"):
        store.flush()
    assert not store.is_writable


def test_a_full_disk_while_writing_queues_out_loses_no_unit():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk)
    store.put_batch([message(queue_id=queue_id) for queue_id in range(4)])
    disk.space = 30
    with pytest.raises(Exception, match="no space"):
        store.persist()
    disk.space = 1 << 30
    store.close()
    again = open_store(ROOT, disk=disk)
    assert [again.max_offset("T", queue_id) for queue_id in range(4)] == [1] * 4
