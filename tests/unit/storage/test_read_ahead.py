"""Units read ahead are the queue's own, however readers move and whatever is written meanwhile."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk

from pyritemq.storage import read_ahead
from pyritemq.storage.block_sizes import BlockSizes
from pyritemq.storage.consume_queue import ConsumeQueue
from pyritemq.storage.file_cache import FileCache
from pyritemq.storage.queue_loader import QueueLoader
from pyritemq.storage.read_ahead import AHEAD_UNITS, ReadAhead

FILE_UNITS = 700  # a chunk that is read ahead ends at a file's end now and then


class CountingFiles(FileCache):
    """Counts how often somebody wants to read a file."""

    opened = 0

    def open(self, path):
        self.opened += 1
        return super().open(path)


def add(queue, count):
    for _ in range(count):
        offset = queue.next_offset
        queue.stage(offset * 100, 100, -offset)
    queue.max_offset = queue.next_offset


def old_queue(count, topic=b"T"):
    """A queue as after a restart: all its units are in files, none in memory."""
    disk = MemoryDisk()
    where = {
        "folder": Path("/store/consumequeue/T/0"),
        "file_units": FILE_UNITS,
        "sizes": BlockSizes(),
    }
    queue = ConsumeQueue(topic, 0, files=FileCache(disk), **where)
    add(queue, count)
    queue.write_out()
    again = ConsumeQueue(topic, 0, files=CountingFiles(disk), **where)
    loader = QueueLoader(disk, FileCache(disk))
    loader.limit, loader.min_phy_offset, loader.always_cut = 1 << 60, 0, False
    loader.load(again)
    assert again.max_offset == again.in_memory_from == count
    return again


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 1999), st.integers(1, 700), st.integers(0, 3)), max_size=30
    )
)
def test_every_read_gives_what_the_queue_itself_gives(steps):
    queue, ahead = old_queue(1500), ReadAhead()
    for offset, count, growth in steps:
        add(queue, growth)
        offset %= queue.max_offset
        assert bytes(ahead.units(queue, offset, count)) == bytes(queue.units(offset, count))


def test_one_read_of_the_file_serves_many_pulls_in_a_row():
    queue, ahead = old_queue(AHEAD_UNITS), ReadAhead()
    for offset in range(0, AHEAD_UNITS, 32):
        assert len(ahead.units(queue, offset, 32)) == 32 * 20
    assert queue._files.opened == 1


def test_a_reader_close_behind_the_writer_reads_no_file():
    queue, ahead = old_queue(10), ReadAhead()
    add(queue, 40)
    ahead.units(queue, 10, 32)
    assert queue._files.opened == 0


def test_memory_is_bounded_by_the_queues_read_last(monkeypatch):
    monkeypatch.setattr(read_ahead, "QUEUES_MAX", 2)
    ahead = ReadAhead()
    first, second, third = queues = [old_queue(100, topic) for topic in (b"A", b"B", b"C")]
    for queue in queues:
        ahead.units(queue, 0, 1)
    for queue, opened in ((third, 1), (second, 1), (first, 2)):
        ahead.units(queue, 1, 1)
        assert queue._files.opened == opened


@pytest.mark.parametrize("count", [AHEAD_UNITS + 1, 5 * AHEAD_UNITS])
def test_more_than_a_chunk_may_be_asked_for(count):
    queue = old_queue(600)
    assert len(ReadAhead().units(queue, 0, count)) == min(count, 600) * 20
