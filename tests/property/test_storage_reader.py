"""The quick way to read a batch of messages finds what the loop finds that follows Java."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.storage.kit import MemoryDisk, message, open_store

from pyritemq.storage.consume_queue import UNIT
from pyritemq.storage.reader import Reader

ROOT = Path("/store")
MESSAGES = 300


@pytest.fixture(scope="module")
def store():
    """Three interleaved queues over many files, of which the last 6,000 bytes count as memory."""
    store = open_store(
        ROOT,
        disk=MemoryDisk(),
        memory_size=15_000,
        transfer_bytes_max_in_memory=3000,
        commit_log_file_size=8192,
    )
    for number in range(MESSAGES):
        body = b"x" * (number * 37 % 200)
        store.put_batch([message(body, queue_id=number // 5 % 3) for _ in range(number % 3)])
    return store


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_quick_and_careful_reading_agree(store, data):
    queue = store.queues.find(b"T", data.draw(st.integers(0, 2)))
    offset = data.draw(st.integers(max(0, queue.max_offset - 70), queue.max_offset - 1))
    count_max = data.draw(st.integers(-1, 70))
    bytes_max = data.draw(st.sampled_from([0, 500, 2000, 1 << 27]))
    limits = (queue.min_offset, queue.max_offset)
    quick = store._reader.get(queue, offset, count_max, bytes_max, None)
    careful = store._reader._collect(queue, offset, count_max, bytes_max, None, None, *limits)
    assert quick == careful


def test_both_ways_are_taken(store):
    """Or the property above would compare the loop with itself."""
    queue = store.queues.find(b"T", 0)
    near, far = queue.max_offset - 5, queue.max_offset - 70
    assert store._reader._take_whole(queue, near, 5, 1 << 27, 0, queue.max_offset) is not None
    assert store._reader._take_whole(queue, far, 5, 1 << 27, 0, queue.max_offset) is None


def fits(store, wanted, memory, disk):
    """How many of the units Java's isTheBatchFull lets into one reply, asked of each."""
    config = store.config
    count = total = 0
    memory_from = store.commit_log.max_offset - config.in_memory_bytes
    for phy_offset, size, _ in UNIT.iter_unpack(wanted):
        counts, sizes = memory if phy_offset >= memory_from else disk
        if count and (count >= counts or total + size > sizes):
            break
        count += 1
        total += size
    return count


LIMITS = st.tuples(st.integers(1, 40), st.sampled_from([100, 700, 3000, 65536]))


@given(memory=LIMITS, disk=LIMITS, back=st.integers(1, 90))
@settings(max_examples=300, deadline=None)
def test_limits_are_those_of_where_each_record_lies_whichever_is_smaller(store, memory, disk, back):
    queue = store.queues.find(b"T", 0)
    offset = max(0, queue.max_offset - back)
    config = replace(
        store.config,
        transfer_count_max_in_memory=memory[0],
        transfer_bytes_max_in_memory=memory[1],
        transfer_count_max_in_disk=disk[0],
        transfer_bytes_max_in_disk=disk[1],
    )
    reader = Reader(config, store.commit_log)
    wanted = fits(store, queue.units(offset, 70), memory, disk)
    assert reader.get(queue, offset, 70, 1 << 27, None).count == wanted
