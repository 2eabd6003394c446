"""What a start finds: after a clean stop, after a crash, after damage, and with files missing."""

import os
from pathlib import Path

import pytest
from unit.storage.kit import (
    MemoryDisk,
    SetClock,
    kill,
    message,
    open_store,
    read_queue,
    small_config,
)

from pyritemq.storage import MessageToStore, recovery
from pyritemq.storage.errors import StoreCorruptError, StoreUnusableError
from pyritemq.storage.record_codec import pack_blank

ROOT = Path("/store")
LOG = ROOT / "commitlog"
QUEUES = ROOT / "consumequeue"


@pytest.fixture
def disk():
    return MemoryDisk()


def put(store, count, *, start=0, size=200, queues=3):
    for number in range(start, start + count):
        body = b"%d:" % number + b"x" * size
        store.put_batch([message(body, queue_id=number % queues)])


def numbers(store, queues=3):
    """The numbers that put() gave its messages, as the queues tell them."""
    found = []
    for queue_id in range(queues):
        records = read_queue(store, queue_id=queue_id)
        first = store.min_offset("T", queue_id)
        assert [record.queue_offset for record in records] == list(
            range(first, first + len(records))
        )
        found += [int(record.body.split(b":")[0]) for record in records]
    return sorted(found)


def log_file(disk, number):
    return disk.files[LOG / f"{number * 4096:020d}"]


def test_a_new_folder_becomes_an_empty_store(disk):
    store = open_store(ROOT, disk=disk)
    assert (store.max_phy_offset, store.topics()) == (0, set())
    assert disk.exists(ROOT / "abort")
    store.close()
    assert not disk.exists(ROOT / "abort")
    assert open_store(ROOT, disk=disk).max_phy_offset == 0


def test_a_clean_stop_loses_nothing_and_the_store_goes_on(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 50)
    end = store.max_phy_offset
    store.close()
    again = open_store(ROOT, disk=disk)
    assert again.max_phy_offset == end
    put(again, 50, start=50)
    assert numbers(again) == list(range(100))


def test_everything_survives_power_loss_after_a_clean_stop(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 50)
    store.close()
    assert numbers(open_store(ROOT, disk=disk.lose_power())) == list(range(50))


@pytest.mark.parametrize("housekeeping", [(), ("flush",), ("persist",), ("persist", "flush")])
def test_kill_9_loses_nothing(disk, housekeeping):
    store = open_store(ROOT, disk=disk)
    put(store, 30)
    for step in housekeeping:
        getattr(store, step)()
    put(store, 30, start=30)
    store.queues.write_out()
    put(store, 30, start=60)
    kill(store)
    again = open_store(ROOT, disk=disk)
    assert numbers(again) == list(range(90))
    put(again, 10, start=90)
    assert numbers(again) == list(range(100))


def test_power_loss_takes_only_what_was_not_flushed(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 30)
    store.persist()
    put(store, 30, start=30)
    store.flush()
    put(store, 30, start=60)
    after = disk.lose_power()
    again = open_store(ROOT, disk=after)
    found = numbers(again)
    assert found == list(range(len(found)))
    assert len(found) >= 60


def test_power_loss_takes_nothing_under_synchronous_flush(disk):
    store = open_store(ROOT, disk=disk, flush_disk_type="SYNC_FLUSH")
    put(store, 60)
    assert numbers(open_store(ROOT, disk=disk.lose_power())) == list(range(60))


def test_queue_units_that_outlived_their_records_are_dropped(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 20)
    store.persist()
    put(store, 20, start=20)
    store.queues.write_out()
    store.queues.sync()  # the units reach the disk, the records do not
    found = disk.lose_power()
    again = open_store(ROOT, disk=found)
    assert numbers(again) == list(range(20))
    put(again, 40, start=20)
    again.close()
    assert numbers(open_store(ROOT, disk=found)) == list(range(60))


@pytest.fixture
def no_recheck(monkeypatch):
    """Let a clean start look back as little as it does in a store of gigabytes."""
    monkeypatch.setattr(recovery, "RECHECK_BYTES", 600)


@pytest.mark.usefixtures("no_recheck")
@pytest.mark.parametrize("torn", [False, True])
def test_units_without_records_are_gone_even_from_queues_that_nobody_asked_for(disk, torn):
    """A queue may stay unused until the log has grown past what its stale units point to."""
    store = open_store(ROOT, disk=disk)
    put(store, 20)
    store.persist()
    store.put_batch([message(b"lost", b"Quiet") for _ in range(40)])
    store.queues.write_out()
    store.queues.sync()
    found = disk.lose_power()
    if torn:  # the kernel had written only the second half of the units
        found.open(QUEUES / "Quiet" / "0" / f"{0:020d}").write_at(0, bytes(20 * 20))
    again = open_store(ROOT, disk=found)
    put(again, 60, start=20)
    again.close()
    later = open_store(ROOT, disk=found)
    assert later.max_offset("Quiet", 0) == 0
    later.put_batch([message(b"new", b"Quiet") for _ in range(25)])
    later.close()
    last = open_store(ROOT, disk=found)
    assert [record.body for record in read_queue(last, "Quiet")] == [b"new"] * 25


def test_a_checkpoint_that_runs_ahead_of_the_commit_logs_sync_is_not_trusted(disk):
    """Java syncs the two on schedules of their own: queues may be durable where the log is not."""
    clock = SetClock()
    store = open_store(ROOT, clock, disk)
    put(store, 6)
    clock.ms += 60_000
    put(store, 6, start=6)
    store.persist()
    kill(store)
    physic = store.checkpoint.physic_msg_timestamp
    disk.open(ROOT / "checkpoint").write_at(0, (physic - 1).to_bytes(8, "big"))
    lost = store.queues.find(b"T", 0).unit(3)[0]
    log_file(disk, 0).buffer[lost + 100] ^= 1
    assert numbers(open_store(ROOT, clock, disk)) == list(range(9))


def test_a_torn_record_is_cut_off(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 10)
    kill(store)
    end = store.max_phy_offset
    log_file(disk, 0).write_at(end - 20, bytes(20))
    again = open_store(ROOT, disk=disk)
    assert numbers(again) == list(range(9))
    assert not any(again.commit_log.files.files[0].view[again.max_phy_offset :])


@pytest.mark.parametrize("stop", ["close", "kill"])
@pytest.mark.parametrize("at", [0, 4, 8, 28, 100])
def test_a_flipped_bit_ends_the_good_records_before_it(disk, stop, at):
    store = open_store(ROOT, disk=disk)
    put(store, 10)
    victim = store.queues.find(b"T", 7 % 3).unit(7 // 3)[0]
    store.close() if stop == "close" else kill(store)
    file = log_file(disk, 0)
    file.buffer[victim + at] ^= 0x40
    again = open_store(ROOT, disk=disk)
    assert numbers(again) == list(range(7))
    again.close()
    put(reopened := open_store(ROOT, disk=disk), 3, start=7)
    assert numbers(reopened) == list(range(10))


def test_a_record_with_an_absurd_queue_offset_ends_the_good_records(disk):
    """The CRC covers only the body: a damaged offset must not make units by the billion."""
    store = open_store(ROOT, disk=disk)
    put(store, 10)
    victim = store.queues.find(b"T", 0).unit(3)[0]
    kill(store)
    log_file(disk, 0).buffer[victim + 20 + 2] ^= 0x40
    assert numbers(open_store(ROOT, disk=disk)) == list(range(9))


def test_damage_with_good_files_behind_it_refuses_the_start_and_names_the_place(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 60)
    victim = store.queues.find(b"T", 0).unit(1)[0]
    kill(store)
    log_file(disk, 0).buffer[victim + 100] ^= 1
    with pytest.raises(StoreCorruptError) as refused:
        open_store(ROOT, disk=disk)
    assert f"{LOG / f'{0:020d}'} is damaged at position {victim}" in str(refused.value)
    assert "CRC" in str(refused.value)
    assert not disk.locked, "a refused start must give the folder up"


def test_damage_is_not_looked_for_when_the_configuration_says_so(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 10)
    kill(store)
    log_file(disk, 0).buffer[150] ^= 1  # in the first body
    again = open_store(ROOT, disk=disk, check_crc_on_recover=False)
    assert again.max_phy_offset == store.max_phy_offset


@pytest.mark.parametrize("stop", ["close", "kill"])
def test_queues_are_rebuilt_when_all_of_them_are_missing(disk, stop):
    store = open_store(ROOT, disk=disk)
    put(store, 60)
    store.close() if stop == "close" else kill(store)
    for path in [path for path in disk.files if path.is_relative_to(QUEUES)]:
        disk.remove(path)
    assert numbers(open_store(ROOT, disk=disk)) == list(range(60))


@pytest.mark.parametrize("stop", ["close", "kill"])
def test_without_a_checkpoint_the_whole_log_is_read(disk, stop):
    store = open_store(ROOT, disk=disk)
    put(store, 60)
    store.close() if stop == "close" else kill(store)
    disk.remove(ROOT / "checkpoint")
    again = open_store(ROOT, disk=disk)
    assert numbers(again) == list(range(60))
    put(again, 5, start=60)
    assert numbers(again) == list(range(65))


def test_a_checkpoint_without_offset_as_older_brokers_wrote_starts_at_a_safe_file(disk):
    clock = SetClock()
    store = open_store(ROOT, clock, disk)
    for start in range(0, 90, 10):
        put(store, 10, start=start)
        clock.ms += 5_000
    store.persist()
    kill(store)
    disk.open(ROOT / "checkpoint").write_at(40, bytes(8))
    again = open_store(ROOT, clock, disk)
    assert again.queues.loader.limit > 0
    assert numbers(again) == list(range(90))


def test_a_crash_between_filler_and_next_file_goes_on_in_the_next_file(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 5)
    end = store.max_phy_offset
    kill(store)
    log_file(disk, 0).write_at(end, pack_blank(4096 - end))
    again = open_store(ROOT, disk=disk)
    assert again.max_phy_offset == 4096
    put(again, 5, start=5)
    assert numbers(again) == list(range(10))


def test_a_last_file_that_was_made_but_not_sized_is_removed(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 5)
    kill(store)
    disk.open(LOG / f"{4096:020d}", create=True)
    assert numbers(open_store(ROOT, disk=disk)) == list(range(5))
    assert disk.names(LOG) == [f"{0:020d}"]


def test_a_prepared_file_is_used_after_a_crash(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 10)
    store.prepare_next()
    kill(store)
    again = open_store(ROOT, disk=disk)
    put(again, 20, start=10)
    assert numbers(again) == list(range(30))


def test_empty_files_made_ahead_are_used_after_a_clean_stop(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 10)
    store.close()
    for number in (1, 2):
        disk.open(LOG / f"{number * 4096:020d}", create=True).resize(4096)
    again = open_store(ROOT, disk=disk)
    put(again, 60, start=10)
    assert numbers(again) == list(range(70))
    starts = [file.from_offset for file in again.commit_log.files.files]
    assert starts == [number * 4096 for number in range(len(starts))]


def test_a_file_of_another_size_refuses_the_start_by_name(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 5)
    store.close()
    with pytest.raises(StoreUnusableError, match="has 4096 bytes, but the configured size is 8192"):
        open_store(ROOT, disk=disk, commit_log_file_size=8192)


def test_a_missing_file_in_the_middle_refuses_the_start_by_name(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 60)
    store.close()
    disk.remove(LOG / f"{4096:020d}")
    with pytest.raises(StoreCorruptError, match="the next one must start at 4096"):
        open_store(ROOT, disk=disk)


def test_files_that_are_not_ours_are_left_alone(disk):
    disk.open(LOG / "notes.txt", create=True)
    disk.open(QUEUES / "T" / "x" / "notes.txt", create=True)
    store = open_store(ROOT, disk=disk)
    put(store, 5)
    store.close()
    assert numbers(open_store(ROOT, disk=disk)) == list(range(5))
    assert disk.exists(LOG / "notes.txt")


def test_a_log_whose_first_files_expired_serves_the_rest(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 60)
    store.close()
    disk.remove(LOG / f"{0:020d}")
    again = open_store(ROOT, disk=disk)
    found = numbers(again)
    assert found == list(range(found[0], 60))
    assert 0 < found[0] < 30
    assert again.min_phy_offset == 4096


def test_queues_rebuilt_from_an_expired_log_keep_their_offsets(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 60)
    store.close()
    disk.remove(LOG / f"{0:020d}")
    expected = numbers(first := open_store(ROOT, disk=disk))
    first.close()
    for path in [path for path in disk.files if path.is_relative_to(QUEUES)]:
        disk.remove(path)
    again = open_store(ROOT, disk=disk)
    assert numbers(again) == expected
    again.close()
    assert numbers(open_store(ROOT, disk=disk)) == expected


def test_consume_queues_of_a_lost_log_start_anew(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 20)
    store.close()
    for path in [path for path in disk.files if path.is_relative_to(LOG)]:
        disk.remove(path)
    again = open_store(ROOT, disk=disk)
    put(again, 5)
    assert numbers(again) == list(range(5))


def test_derived_tags_codes_are_the_ones_that_were_put(disk):
    clock = SetClock()
    store = open_store(ROOT, clock, disk)
    tagged = MessageToStore(b"T", 0, b"", b"TAGS\x01TagA\x02", tags_code=2598919)
    delayed = MessageToStore(b"SCHEDULE_TOPIC_XXXX", 3, b"", b"DELAY\x014\x02", tags_code=None)
    store.put_batch([tagged, delayed, message()])
    kill(store)
    again = open_store(ROOT, SetClock(clock.ms + 99), disk)
    assert again.queues.find(b"T", 0).unit(0)[2] == 2598919
    assert again.queues.find(b"T", 0).unit(1)[2] == 0
    assert again.queues.find(b"SCHEDULE_TOPIC_XXXX", 3).unit(0)[2] == clock.ms + 30_000


def test_a_clean_start_opens_no_queue_that_nobody_asks_for(disk):
    store = open_store(ROOT, disk=disk, commit_log_file_size=1 << 22)
    for number in range(200):
        store.put_batch([message(b"x" * 3000, b"Busy"), message(b"x" * 3000, b"T%d" % number)])
    store.put_batch([message(b"x" * 3000, b"Busy") for _ in range(1100)])
    store.close()
    again = open_store(ROOT, disk=disk, commit_log_file_size=1 << 22)
    assert set(again.queues.queues) == {(b"Busy", 0)}
    assert len(again.topics()) == 201
    assert again.max_offset("T7", 0) == 1
    assert len(read_queue(again, "Busy")) == 1300


def test_a_refused_folder_is_a_sentence(tmp_path):
    (tmp_path / "store").write_text("a file")
    with pytest.raises(StoreUnusableError, match="store cannot be made"):
        open_store(tmp_path / "store")
    assert small_config(tmp_path).commit_log_dir == tmp_path / "commitlog"


def test_the_abort_file_holds_the_process_id_as_javas_does(store):
    assert (store.config.root / "abort").read_text() == str(os.getpid())
