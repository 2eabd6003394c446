"""A queue that is missing or short is rebuilt; damage is named, and what is cut off is kept."""

import logging
from pathlib import Path

import pytest
from unit.storage.kit import MemoryDisk, SetClock, kill, message, open_store, read_queue

from pyritemq.storage.checkpoint import Checkpoint
from pyritemq.storage.consume_queue import UNIT_SIZE
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.queue_ends import pack_queue_ends, unpack_queue_ends
from pyritemq.storage.salvage import FOLDER

ROOT = Path("/store")
LOG = ROOT / "commitlog"
LOG_FILE = 1 << 20  # larger than what a start checks again, so that damage can lie before it
STOPS = ["close", "kill"]


@pytest.fixture
def disk():
    return MemoryDisk()


def open_large(disk, **changes):
    return open_store(ROOT, SetClock(), disk, commit_log_file_size=LOG_FILE, **changes)


def quiet_and_busy(disk, stop):
    """Queue Quiet/0 has 10 old messages, Busy/0 enough to leave them far behind."""
    store = open_large(disk)
    store.put_batch([message(b"%d" % number, b"Quiet") for number in range(10)])
    store.put_batch([message(b"x" * 3000, b"Busy") for _ in range(200)])
    store.persist()
    store.close() if stop == "close" else kill(store)
    return store


def quiet_file(disk):
    return disk.files[ROOT / "consumequeue" / "Quiet" / "0" / f"{0:020d}"]


def bodies(store, topic="Quiet"):
    return [record.body for record in read_queue(store, topic)]


@pytest.mark.parametrize("stop", STOPS)
def test_one_missing_queue_is_rebuilt_and_named(disk, stop, caplog):
    quiet_and_busy(disk, stop)
    disk.remove(quiet_file(disk).path)
    with caplog.at_level(logging.WARNING):
        store = open_large(disk)
    assert bodies(store) == [b"%d" % number for number in range(10)]
    assert len(bodies(store, "Busy")) == 200
    assert "Quiet/0 is missing or short" in caplog.text
    assert store.put_batch([message(b"next", b"Quiet")])[0].queue_offset == 10


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("units", [0, 4, 9])
def test_a_queue_that_lost_its_last_units_is_rebuilt(disk, stop, units):
    quiet_and_busy(disk, stop)
    file = quiet_file(disk)
    file.write_at(units * UNIT_SIZE, bytes(file.size() - units * UNIT_SIZE))
    assert bodies(open_large(disk)) == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("size", [0, 30, 5000])
def test_a_queue_file_of_a_wrong_size_is_rebuilt(disk, size):
    quiet_and_busy(disk, "close")
    quiet_file(disk).resize(size)
    assert bodies(open_large(disk)) == [b"%d" % number for number in range(10)]


def test_a_short_queue_is_rebuilt_without_a_list_when_a_record_shows_the_gap(disk, caplog):
    """A Java broker leaves no list; its own start would give the queue a hole."""
    store = quiet_and_busy(disk, "kill")
    disk.remove(ROOT / "queueends")
    store.put_batch([message(b"10", b"Quiet")])
    quiet_file(disk).write_at(4 * UNIT_SIZE, bytes(UNIT_SIZE * 46))
    with caplog.at_level(logging.WARNING):
        again = open_large(disk)
    assert bodies(again) == [b"%d" % number for number in range(11)]
    assert "Quiet/0 has 4 units where 10 belong" in caplog.text


def test_a_lost_queue_whose_messages_have_expired_goes_on_at_its_end(disk):
    store = open_store(ROOT, disk=disk)
    store.put_batch([message(b"%d" % number, b"Quiet") for number in range(10)])
    store.put_batch([message(b"x" * 300, b"Busy") for _ in range(40)])
    store.close()
    disk.remove(LOG / f"{0:020d}")
    disk.remove(ROOT / "consumequeue" / "Quiet" / "0" / f"{0:020d}")
    again = open_store(ROOT, disk=disk)
    assert bodies(again) == []
    assert again.put_batch([message(b"next", b"Quiet")])[0].queue_offset == 10


def test_a_list_of_another_checkpoint_is_not_believed(disk):
    """A Java broker in between may have deleted the queue, and writes a checkpoint of its own."""
    ends = {(b"T", 3): 7}
    written = Checkpoint(logics_msg_timestamp=5, logics_physical_offset=100)
    data = pack_queue_ends(ends, written)
    assert unpack_queue_ends(data, written) == ends
    assert unpack_queue_ends(data, Checkpoint(logics_msg_timestamp=6)) == {}
    assert unpack_queue_ends(data[:-1], written) == {}
    assert unpack_queue_ends(b"", written) == {}


@pytest.mark.parametrize("stop", STOPS)
def test_damage_before_the_checkpoint_is_refused_when_the_whole_log_is_read(disk, stop):
    store = quiet_and_busy(disk, stop)
    victim = store.queues.find(b"Busy", 0).unit(5)[0]
    disk.files[LOG / f"{0:020d}"].buffer[victim + 100] ^= 1
    if stop == "close":
        assert len(bodies(open_large(disk), "Quiet")) == 10, "the rest is served"
        return
    disk.remove(quiet_file(disk).path)
    with pytest.raises(StoreCorruptError, match=f"damaged at position {victim} .*were safe follow"):
        open_large(disk)


@pytest.mark.parametrize("stop", STOPS)
def test_what_is_cut_off_is_kept_and_named(disk, stop, caplog):
    store = open_large(disk)
    store.put_batch([message(b"%d" % number) for number in range(10)])
    victim, end = store.queues.find(b"T", 0).unit(7)[0], store.max_phy_offset
    store.close() if stop == "close" else kill(store)
    file = disk.files[LOG / f"{0:020d}"]
    file.buffer[victim + 4] ^= 0x40
    cut = bytes(file.buffer[victim:end]).rstrip(b"\0")
    with caplog.at_level(logging.WARNING):
        assert len(bodies(open_large(disk), "T")) == 7
    kept = disk.files[ROOT / FOLDER / f"{victim:020d}"]
    assert bytes(kept.buffer) == cut
    assert f"position={victim} reason=magic code" in caplog.text
    assert str(kept.path) in caplog.text


def test_a_second_cut_at_one_place_keeps_both(disk):
    for _ in range(2):
        store = open_store(ROOT, disk=disk)
        store.put_batch([message()])
        kill(store)
        disk.files[LOG / f"{0:020d}"].buffer[4] ^= 0x40
    open_store(ROOT, disk=disk)
    assert disk.names(ROOT / FOLDER) == [f"{0:020d}", f"{0:020d}.1"]
