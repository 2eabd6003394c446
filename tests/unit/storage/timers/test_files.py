"""Wheel, log and checkpoint agree after any end, and old files of the log go."""

import pytest

from pyritemq.storage.disk import RealDisk
from pyritemq.storage.errors import DiskFullError
from pyritemq.storage.timers.checkpoint import TimerCheckpoint
from pyritemq.storage.timers.files import TimerFiles
from pyritemq.storage.timers.log import BLANK, UNIT, TimerLog
from pyritemq.storage.timers.wheel import Slot

NOW_MS = 1_795_000_000_000
UNITS_A_FILE = 4
FILE_SIZE = UNITS_A_FILE * UNIT.size + BLANK.size


def open_files(root):
    return TimerFiles(root, precision_ms=1000, log_file_size=FILE_SIZE)


def append(log, phy_offset, prev_pos=-1):
    return log.append(
        prev_pos=prev_pos,
        magic=1,
        enqueue_ms=NOW_MS,
        delay_ms=5000,
        phy_offset=phy_offset,
        phy_size=100,
        topic_hash=7,
    )


def test_units_that_no_slot_knows_of_are_put_into_their_slots(tmp_path):
    files = open_files(tmp_path)
    first = append(files.log, 1)
    files.log.write()
    files.wheel.put(Slot(NOW_MS + 5000, first, first, 1))
    second = append(files.log, 2, first)
    files.log.write()
    files = open_files(tmp_path)
    assert files.wheel.slot(NOW_MS + 5000) == Slot(NOW_MS + 5000, first, second, 1)
    assert files.log.end == second + UNIT.size


def test_what_the_checkpoint_does_not_count_is_named(tmp_path):
    files = open_files(tmp_path)
    append(files.log, 1)
    files.log.write()
    files.save(lambda _: TimerCheckpoint(last_timer_log_flush_pos=UNIT.size))
    append(files.log, 2)
    files.log.write()
    assert open_files(tmp_path).logged == {2}


def test_a_log_goes_on_over_its_files(tmp_path):
    files = open_files(tmp_path)
    places = [append(files.log, number) for number in range(3 * UNITS_A_FILE)]
    files.log.write()
    assert places[UNITS_A_FILE] == FILE_SIZE
    assert [files.log.read(place).phy_offset for place in places] == list(range(len(places)))
    names = sorted(path.name for path in (tmp_path / "timerlog").iterdir())
    assert names == [f"{number * FILE_SIZE:020d}" for number in range(3)]


def test_files_go_when_the_message_of_their_last_timer_is_gone(tmp_path):
    files = open_files(tmp_path)
    for number in range(3 * UNITS_A_FILE):
        append(files.log, number)
    files.log.write()
    files.log.expire(UNITS_A_FILE - 1)
    assert len(list((tmp_path / "timerlog").iterdir())) == 3
    files.log.expire(UNITS_A_FILE)
    assert len(list((tmp_path / "timerlog").iterdir())) == 2
    assert files.log.read(0) is None


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    log = TimerLog(RealDisk(), tmp_path, file_size=FILE_SIZE)
    log.load()
    assert list(log.recover(0)) == []
    append(log, 1)
    log.write()
    append(log, 2)
    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(DiskFullError):
            log.write()
    assert log.read(UNIT.size) is None
    assert append(log, 3) == UNIT.size
    log.write()
    assert log.read(UNIT.size).phy_offset == 3
