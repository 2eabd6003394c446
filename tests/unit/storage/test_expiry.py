"""What expires when, what a full disk does, and that readers and queues follow."""

import logging
import time
from pathlib import Path

import pytest
from unit.storage.kit import (
    START_MS,
    MemoryDisk,
    SetClock,
    kill,
    message,
    open_store,
    read_queue,
    small_config,
)

from pyritemq.storage.expiry import Levels, Space, is_delete_hour, judge_space, levels
from pyritemq.storage.messages import GetStatus, PutStatus

ROOT = Path("/store")
LOG = ROOT / "commitlog"
HOUR = 3_600_000
AT = Levels(0.75, 0.85, 0.90)


@pytest.fixture
def disk():
    return MemoryDisk()


@pytest.fixture
def clock():
    return SetClock()


def hour_now():
    return f"{time.localtime(START_MS / 1000).tm_hour:02d}"


def other_hour():
    return f"{(time.localtime(START_MS / 1000).tm_hour + 5) % 24:02d}"


def filled(disk, clock, **changes):
    """60 messages of T/0 over several CommitLog files, every queue file written."""
    settings = {"delete_when": other_hour(), "delete_commit_log_files_interval_ms": 0, **changes}
    store = open_store(ROOT, clock, disk, **settings)
    for number in range(120):
        store.put_batch([message(b"%d" % number * 20)])
    store.persist()
    return store


def log_files(disk):
    return disk.names(LOG)


def numbers(store):
    return [int(record.body[: len(record.body) // 20]) for record in read_queue(store)]


@pytest.mark.parametrize(
    ("log", "queues", "expected"),
    [
        (0.10, 0.10, Space(False, clean_at_once=False, reclaim=False)),
        (0.75, 0.75, Space(False, clean_at_once=False, reclaim=False)),
        (0.76, 0.10, Space(False, clean_at_once=False, reclaim=True)),
        (0.10, 0.76, Space(False, clean_at_once=False, reclaim=True)),
        (0.86, 0.10, Space(None, clean_at_once=True, reclaim=True)),
        (0.10, 0.86, Space(False, clean_at_once=True, reclaim=True)),
        (0.91, 0.10, Space(True, clean_at_once=True, reclaim=True)),
        (0.10, 0.91, Space(True, clean_at_once=True, reclaim=True)),
        (-1.0, 0.10, Space(False, clean_at_once=False, reclaim=True)),
    ],
)
def test_what_a_disk_that_is_so_full_asks_for(log, queues, expected):
    assert judge_space(log, queues, AT) == expected


def test_levels_are_held_within_javas_bounds(tmp_path):
    high = small_config(
        tmp_path, disk_space_warning_level_ratio=99, disk_space_clean_forcibly_ratio=99
    )
    low = small_config(
        tmp_path, disk_space_warning_level_ratio=1, disk_space_clean_forcibly_ratio=1
    )
    assert levels(high) == (0.75, 0.85, 0.90)
    assert levels(low) == (0.75, 0.30, 0.35)


def test_delete_when_takes_several_hours():
    assert is_delete_hour(f"{other_hour()};{hour_now()}", START_MS)
    assert not is_delete_hour(other_hour(), START_MS)


def test_files_go_at_the_hour_once_they_are_old_enough(disk, clock):
    store = filled(disk, clock, file_reserved_hours=72, delete_when=hour_now())
    before = log_files(disk)
    store.clean_files()
    assert log_files(disk) == before, "too young"
    disk.files[LOG / before[0]].modified -= 72 * HOUR
    disk.files[LOG / before[1]].modified -= 72 * HOUR
    disk.files[LOG / before[3]].modified -= 72 * HOUR
    store.clean_files()
    assert log_files(disk) == before[2:], "and none behind one that must stay"


def test_files_stay_at_another_hour_unless_asked_for(disk, clock):
    store = filled(disk, clock, file_reserved_hours=0)
    before = log_files(disk)
    store.clean_files()
    assert log_files(disk) == before
    store.expiry.delete_manually()
    store.clean_files()
    assert log_files(disk) == before[-1:], "the last file never goes"


def test_a_round_deletes_no_more_than_its_batch(disk, clock):
    store = filled(disk, clock, file_reserved_hours=0, delete_file_batch_max=2)
    before = log_files(disk)
    store.expiry.delete_manually()
    store.clean_files()
    assert log_files(disk) == before[2:]


def test_above_the_first_level_expired_files_go_at_any_hour(disk, clock):
    store = filled(disk, clock, file_reserved_hours=0)
    disk.used = 0.76
    store.clean_files()
    assert len(log_files(disk)) == 1


@pytest.mark.parametrize(("forcibly", "left"), [(True, 1), (False, None)])
def test_above_the_second_level_young_files_go_too_if_that_is_enabled(disk, clock, forcibly, left):
    store = filled(disk, clock, clean_file_forcibly_enable=forcibly)
    before = len(log_files(disk))
    disk.used = 0.86
    store.clean_files()
    assert len(log_files(disk)) == (left or before)
    assert store.put_batch([message()])[0].status is PutStatus.PUT_OK


def test_above_the_third_level_sends_are_refused_until_the_second_is_reached(disk, clock, caplog):
    store = filled(disk, clock)
    disk.used = 0.91
    with caplog.at_level(logging.WARNING):
        store.clean_files()
        store.clean_files()
        assert store.put_batch([message()])[0].status is PutStatus.SERVICE_NOT_AVAILABLE
        assert not store.is_writable
        assert numbers(store), "reads go on"
        disk.used = 0.87
        store.clean_files()
        assert not store.is_writable, "full until it is clearly better, as in Java"
        disk.used = 0.85
        store.clean_files()
    assert store.put_batch([message()])[0].status is PutStatus.PUT_OK
    assert caplog.text.count("sends are refused") == 1
    assert caplog.text.count("has space again") == 1


def test_queues_begin_with_the_first_message_that_is_left(disk, clock):
    store = filled(disk, clock, file_reserved_hours=0, delete_file_batch_max=3)
    store.expiry.delete_manually()
    store.clean_files()
    left = numbers(store)
    assert left == list(range(left[0], 120))
    assert left[0] > 0
    assert store.min_offset("T", 0) == left[0]
    result = store.get("T", 0, 0, count_max=1)
    assert (result.status, result.next_begin_offset) == (GetStatus.OFFSET_TOO_SMALL, left[0])
    again = [store.close(), open_store(ROOT, clock, disk)][1]
    assert numbers(again) == left


def test_whole_queue_files_go_with_the_log_and_the_last_one_stays(disk, clock):
    store = filled(disk, clock, file_reserved_hours=0)
    folder = ROOT / "consumequeue" / "T" / "0"
    assert len(disk.names(folder)) == 3
    store.expiry.delete_manually()
    store.clean_files()
    assert disk.names(folder) == [f"{2 * 50 * 20:020d}"]
    assert numbers(store)[-1] == 119


@pytest.mark.parametrize("stop", ["close", "kill"])
def test_queues_that_nobody_opened_are_cleaned_as_well(disk, clock, stop):
    store = filled(disk, clock)
    store.put_batch([message(b"x" * 300, b"Other") for _ in range(20)])
    store.persist()
    store.close() if stop == "close" else kill(store)
    again = open_store(ROOT, clock, disk, file_reserved_hours=0, delete_when=hour_now())
    again.clean_files()
    assert disk.names(ROOT / "consumequeue" / "T" / "0") == [f"{2 * 50 * 20:020d}"]
    assert again.max_offset("T", 0) == 120


def test_a_reader_keeps_its_slices_of_a_deleted_file(tmp_path, clock, caplog):
    store = open_store(tmp_path, clock, delete_when=hour_now(), file_reserved_hours=0)
    store.put_batch([message(b"%d" % number * 20) for number in range(120)])
    clock.ms = time.time_ns() // 1_000_000 + HOUR
    store.config.delete_when = f"{time.localtime(clock.ms / 1000).tm_hour:02d}"
    held = store.get("T", 0, 0, count_max=1).slices
    content = bytes(held[0])
    store.clean_files()
    assert store.min_phy_offset > 0
    assert not (tmp_path / "commitlog" / f"{0:020d}").exists()
    assert bytes(held[0]) == content
    clock.ms += 200_000
    with caplog.at_level(logging.WARNING):
        store.clean_files()
    assert f"deleted file still read file={tmp_path / 'commitlog' / f'{0:020d}'}" in caplog.text
    store.close()


def test_a_file_that_cannot_be_deleted_is_tried_again(disk, clock, caplog):
    store = filled(disk, clock, file_reserved_hours=0)
    before = log_files(disk)
    disk.remove_error = PermissionError(1, "Operation not permitted")
    store.expiry.delete_manually()
    store.clean_files()
    assert log_files(disk) == before
    assert len(numbers(store)) == 120
    assert "file not deleted" in caplog.text
    disk.remove_error = None
    store.clean_files()
    assert len(log_files(disk)) == 1


def test_housekeeping_cleans_after_a_minute_and_then_each_interval(disk, clock):
    store = filled(disk, clock)
    disk.used = 0.91
    clock.ms += 59_000
    store.housekeep()
    assert store.is_writable
    clock.ms += 1_000
    store.housekeep()
    assert not store.is_writable
    disk.used = 0.1
    clock.ms += 10_000
    store.housekeep()
    assert store.is_writable


def test_a_full_disk_is_told_once_and_forgotten_when_there_is_space(disk, clock, caplog):
    store = filled(disk, clock)
    space, disk.space = disk.space, 0
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert store.put_batch([message()])[0].status is PutStatus.SERVICE_NOT_AVAILABLE
            clock.ms += 1_000
            store.housekeep()
        assert len(numbers(store)) == 120
        disk.space = space
        assert store.put_batch([message(b"120" * 20)])[0].queue_offset == 120
    assert caplog.text.count("append refused") == 1
    assert caplog.text.count("append works again") == 1
    assert numbers(store)[-1] == 120


@pytest.mark.parametrize("end", ["close", "kill"])
def test_queues_whose_messages_have_all_expired_can_be_deleted_and_start_anew(disk, clock, end):
    store = filled(disk, clock)
    store.put_batch([message(b"kept", topic=b"Young")])
    store.commit_log.files.drop_first(store.commit_log.files.files[0])
    while len(store.commit_log.files.files) > 1:
        store.commit_log.files.drop_first(store.commit_log.files.files[0])
    for number in range(60):  # T/0 has a message only in files that are gone
        store.put_batch([message(b"%d" % number * 20, topic=b"Young")])
    while len(store.commit_log.files.files) > 1:
        store.commit_log.files.drop_first(store.commit_log.files.files[0])
    assert store.delete_expired_queues(keep=lambda topic: topic == "T") == 0
    assert store.max_offset("T", 0) == 120
    assert store.delete_expired_queues(keep=lambda topic: False) == 1
    assert store.topics() == {"Young"}
    assert store.max_offset("T", 0) == 0
    young = store.max_offset("Young", 0)
    assert store.put_batch([message(b"0" * 20)])[0].queue_offset == 0
    store.close() if end == "close" else kill(store)
    again = open_store(ROOT, clock, disk)
    assert numbers(again) == [0]
    assert again.max_offset("Young", 0) == young
