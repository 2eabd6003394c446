"""One queue between its three parties: the send lane, the flusher and readers."""

import threading
from pathlib import Path

import pytest
from unit.storage.kit import MemoryDisk

from pyritemq.storage.block_sizes import (
    BLOCK_UNITS_MAX,
    BLOCK_UNITS_MIN,
    BLOCKS_KEPT_MAX,
    UNITS_BYTES_MAX,
    BlockSizes,
)
from pyritemq.storage.consume_queue import (
    BLANK_SIZE,
    UNIT,
    ConsumeQueue,
    first_live,
)
from pyritemq.storage.errors import DiskFullError, StoreCorruptError
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.queue_loader import QueueLoader

FOLDER = Path("/store/consumequeue/T/0")
UNITS = 1000


@pytest.fixture
def disk():
    return MemoryDisk()


def make_queue(disk, file_units=UNITS, queues=1):
    """One of so many queues."""
    sizes = BlockSizes()
    sizes.fit(queues)
    files = FileCache(disk)
    return ConsumeQueue(b"T", 0, folder=FOLDER, files=files, file_units=file_units, sizes=sizes)


def load_queue(disk, *, limit=1 << 60, min_phy_offset=0, file_units=UNITS, always_cut=False):
    queue = make_queue(disk, file_units)
    loader = QueueLoader(disk, FileCache(disk))
    loader.limit, loader.min_phy_offset, loader.always_cut = limit, min_phy_offset, always_cut
    loader.load(queue)
    return queue


def add(queue, count):
    """Units whose three fields tell their own queue offset."""
    for _ in range(count):
        offset = queue.next_offset
        assert queue.stage(offset * 100, 100, -offset) == offset
    queue.max_offset = queue.next_offset


def all_units(queue):
    units = []
    offset = queue.min_offset
    while offset < queue.max_offset:
        units += list(UNIT.iter_unpack(queue.units(offset, UNITS)))
        offset = queue.min_offset + len(units)
    return units


def expected(start, end):
    return [(offset * 100, 100, -offset) for offset in range(start, end)]


def test_staged_units_are_not_visible_before_they_are_published(disk):
    queue = make_queue(disk)
    queue.stage(0, 100, 0)
    assert queue.max_offset == 0
    assert queue.unit(0) is None
    queue.max_offset = queue.next_offset
    assert queue.unit(0) == (0, 100, 0)


def test_units_are_read_across_blocks_and_files(disk):
    queue = make_queue(disk, file_units=300)
    add(queue, 1000)
    assert all_units(queue) == expected(0, 1000)
    queue.write_out()
    assert all_units(queue) == expected(0, 1000)
    assert disk.names(FOLDER) == [f"{start * 20:020d}" for start in (0, 300, 600, 900)]
    assert {file.length for file in disk.files.values()} == {6000}


def test_what_was_written_out_is_read_after_its_blocks_have_gone(disk):
    queue = make_queue(disk, file_units=100_000)
    count = BLOCK_UNITS_MAX * BLOCKS_KEPT_MAX * 3
    add(queue, count)
    queue.write_out()
    assert len(queue._blocks) <= BLOCKS_KEPT_MAX
    assert queue.unit(0) == (0, 100, 0)
    assert all_units(queue) == expected(0, count)
    add(queue, 10)
    assert all_units(queue) == expected(0, count + 10)


@pytest.mark.parametrize("queues", [1, 3_000, 13_000, 50_000, 1_000_000])
def test_busy_queues_share_the_memory_for_units(disk, queues):
    queue = make_queue(disk, file_units=100_000, queues=queues)
    most = 0
    for _ in range(200):  # rounds of the flusher
        add(queue, 97)
        queue.write_out()
        most = max(most, sum(len(block) for _, block in queue._blocks))
    assert all_units(queue) == expected(0, queue.max_offset)
    # a block is the least that a queue can do with
    assert most * queues <= UNITS_BYTES_MAX or most <= BLOCK_UNITS_MIN * UNIT.size


def test_queues_that_were_busy_give_memory_up_when_there_are_many_more(disk):
    queue = make_queue(disk, file_units=100_000)
    add(queue, 10_000)
    queue.write_out()
    before = len(queue._blocks)
    queue._sizes.fit(50_000)
    add(queue, 10)
    queue.write_out()
    assert len(queue._blocks) < 3 < before
    assert all_units(queue) == expected(0, 10_010)


def test_letting_go_of_blocks_spares_units_that_are_not_written_yet(disk):
    queue = make_queue(disk, file_units=100_000)
    count = BLOCK_UNITS_MAX * (BLOCKS_KEPT_MAX + 10)
    add(queue, count)
    for offset in range(count, count + BLOCK_UNITS_MAX * BLOCKS_KEPT_MAX):
        queue.stage(offset * 100, 100, -offset)
    queue.write_out()
    queue.max_offset = queue.next_offset
    assert all_units(queue) == expected(0, queue.max_offset)


@pytest.mark.parametrize("published", [0, 1, 16, 17, 47, 48])
def test_rolling_back_takes_staged_units_away_even_across_a_new_block(disk, published):
    queue = make_queue(disk)
    add(queue, published)
    for _ in range(100):
        queue.stage(1, 1, 1)
    queue.roll_back()
    assert (queue.next_offset, queue.max_offset) == (published, published)
    add(queue, 60)
    assert all_units(queue) == expected(0, published + 60)


def test_a_failed_write_out_is_made_good_by_the_next_one(disk):
    queue = make_queue(disk)
    add(queue, 40)
    disk.space = 100
    with pytest.raises(DiskFullError):
        queue.write_out()
    disk.space = 1 << 30
    add(queue, 1)
    queue.write_out()
    assert all_units(load_queue(disk)) == expected(0, 41)


def test_a_queue_is_found_again_with_its_end_and_goes_on(disk):
    queue = make_queue(disk, file_units=30)
    add(queue, 70)
    queue.write_out()
    again = load_queue(disk, file_units=30)
    assert (again.min_offset, again.max_offset) == (0, 70)
    add(again, 5)
    again.write_out()
    assert all_units(load_queue(disk, file_units=30)) == expected(0, 75)


@pytest.mark.parametrize("count", [1, 29, 30, 31, 60])
def test_units_at_or_beyond_the_limit_are_dropped_for_good(disk, count):
    queue = make_queue(disk, file_units=30)
    add(queue, 61)
    queue.write_out()
    assert load_queue(disk, limit=count * 100, file_units=30).max_offset == count
    assert load_queue(disk, file_units=30).max_offset == count


def test_units_behind_a_hole_are_cleared_after_a_crash(disk):
    queue = make_queue(disk)
    add(queue, 20)
    queue.write_out()
    disk.open(queue.file_path(0)).write_at(10 * 20, bytes(5 * 20))
    assert load_queue(disk, limit=1000, always_cut=True).max_offset == 10
    assert load_queue(disk).max_offset == 10


def test_the_first_valid_unit_is_found_when_the_log_has_lost_its_start(disk):
    queue = make_queue(disk, file_units=30)
    add(queue, 70)
    queue.write_out()
    assert load_queue(disk, min_phy_offset=1001, file_units=30).min_offset == 11
    assert load_queue(disk, min_phy_offset=5000, file_units=30).min_offset == 50
    gone = load_queue(disk, min_phy_offset=10_000, file_units=30)
    assert (gone.min_offset, gone.max_offset) == (70, 70)


def test_a_queue_that_begins_late_has_blanks_before_its_first_unit(disk):
    queue = make_queue(disk)
    QueueLoader(disk, FileCache(disk)).restart(queue, 1010)
    add(queue, 3)
    queue.write_out()
    assert disk.names(FOLDER) == [f"{20_000:020d}"]
    file = disk.open(queue.file_path(1010))
    assert UNIT.unpack(file.read_at(9 * 20, 20)) == (0, BLANK_SIZE, 0)
    again = load_queue(disk)
    assert (again.min_offset, again.max_offset) == (1010, 1013)
    assert all_units(again) == expected(1010, 1013)


def test_a_file_of_the_wrong_size_is_named(disk):
    queue = make_queue(disk)
    add(queue, 1)
    queue.write_out()
    disk.open(queue.file_path(0)).resize(123)
    with pytest.raises(StoreCorruptError, match=f"{0:020d} has 123 bytes, not 20000"):
        load_queue(disk)


def test_an_empty_last_file_is_removed(disk):
    queue = make_queue(disk, file_units=30)
    add(queue, 30)
    queue.write_out()
    disk.open(queue.file_path(30), create=True)
    assert load_queue(disk, file_units=30).max_offset == 30
    assert disk.names(FOLDER) == [f"{0:020d}"]


def test_sync_makes_every_file_durable_that_was_written(disk):
    queue = make_queue(disk, file_units=30)
    add(queue, 70)
    queue.write_out()
    queue.sync()
    assert disk.syncs == 3
    assert all_units(load_queue(disk.lose_power(), file_units=30)) == expected(0, 70)
    queue.sync()
    assert disk.syncs == 3


def test_readers_see_whole_units_while_the_others_write_and_flush(disk):
    queue = make_queue(disk, file_units=5000)
    total = 30_000
    wrong: list[object] = []

    def write() -> None:
        while queue.max_offset < total:
            add(queue, 7)

    def flush() -> None:
        while queue.written < total:
            queue.write_out()

    def read() -> None:
        offset = 0
        while offset < total:
            units = list(UNIT.iter_unpack(queue.units(offset, min(32, queue.max_offset - offset))))
            wrong.extend(set(units) ^ set(expected(offset, offset + len(units))))
            offset += len(units)

    threads = [threading.Thread(target=target) for target in (write, flush, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("blanks", [range(50), range(40, 60), range(95, 100), (50,), (99,), ()])
@pytest.mark.parametrize("first", [0, 1, 45, 50, 55, 99, 100])
def test_blanks_wherever_they_lie_do_not_hide_the_first_live_unit(blanks, first):
    """A repaired store has blanks in the middle; bisection must not take them for the beginning."""
    units = [UNIT.pack(number * 100, 100, 0) for number in range(100)]
    for number in blanks:
        units[number] = UNIT.pack(0, BLANK_SIZE, 0)
    live = [number for number in range(first, 100) if number not in blanks]

    def read(offset, count):
        return b"".join(units[offset : offset + count])

    assert first_live(read, 0, 100, min_phy_offset=first * 100) == (live or [100])[0]
