"""Stores that are active, cut, damaged or half deleted: the whole is read, the rest is named."""

import os
import struct

import pytest
from unit.storage.kit import SetClock, kill, open_store

from pyritemq.spark.errors import DataLossError, StoreReadError
from pyritemq.spark.options import parse_source_options
from pyritemq.spark.partitions import ReadPartition
from pyritemq.spark.queues import QueueKey, QueueRange
from pyritemq.spark.source import plan_batch
from pyritemq.spark.store_backend import StoreBackend, open_stores, read_store
from pyritemq.storage import MessageToStore

KEY = QueueKey("T", "store", 0)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


def fill(root, count=100, **changes):
    store = open_store(root, SetClock(), **changes)
    for at in range(count):
        store.put_batch([MessageToStore(b"T", 0, b"body %3d" % at * 5)])
    return store


def killed(store):
    """Ended by kill -9 after the queues were written out, which a server does every second."""
    store.queues.write_out()
    kill(store)


def options(root, **more):
    given = {"path": str(root), "subscribe": "T", "columns": "queueOffset,value", **more}
    return parse_source_options(given, streaming=False)


def read(root, **more):
    chosen = options(root, **more)
    parts = plan_batch(chosen, StoreBackend(chosen))
    return [
        row["queueOffset"]
        for part in parts
        for batch in read_store(chosen, part)
        for row in batch.to_pylist()
    ]


def log_files(root):
    return sorted((root / "commitlog").iterdir())


def overwrite(path, position, data):
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def first_position(file, queue_offset):
    """Where in the file the record with this queue offset starts."""
    data = file.read_bytes()
    at = 0
    while True:
        size, magic = struct.unpack_from(">ii", data, at)
        assert magic == -626843481
        if struct.unpack_from(">q", data, at + 20)[0] == queue_offset:
            return at
        at += size


def test_a_torn_tail_of_a_killed_server_is_never_returned(root):
    killed(fill(root))
    assert (root / "abort").exists()
    assert read(root) == list(range(100))
    last = log_files(root)[-1]
    while not any(last.read_bytes()[:8]):  # prepared ahead, still empty
        last = log_files(root)[log_files(root).index(last) - 1]
    at = first_position(last, 99)
    overwrite(last, at + 100, b"\xff\xff")  # within the body: the CRC tells
    assert read(root) == list(range(99))
    overwrite(last, at, bytes(200))
    assert read(root) == list(range(99))


def test_damage_in_the_middle_names_file_and_position(root):
    fill(root).close()
    file = log_files(root)[1]
    data = file.read_bytes()
    size = struct.unpack_from(">i", data)[0]
    overwrite(file, size + 4, b"\x12\x34\x56\x78")
    with pytest.raises(StoreReadError, match=rf"{file.name} is damaged at position {size} .*magic"):
        read(root)


def test_damage_before_good_files_of_a_killed_server_is_no_tail(root):
    killed(fill(root))  # without a checkpoint: recovery would start at the first file
    file = log_files(root)[1]
    overwrite(file, 4, b"\x12\x34\x56\x78")
    with pytest.raises(StoreReadError, match=rf"{file.name} is damaged at position 0 .*good files"):
        read(root)


def test_a_file_cut_in_the_middle_is_named(root):
    fill(root).close()
    file = log_files(root)[1]
    os.truncate(file, 1000)
    with pytest.raises(StoreReadError, match=rf"{file.name} has 1000 bytes.*cut at position 1000"):
        read(root)


def test_the_last_file_cut_below_what_queues_name(root):
    fill(root, 20).close()
    file = log_files(root)[0]
    os.truncate(file, first_position(file, 5) + 30)
    with pytest.raises(StoreReadError, match=r"damaged at position .*ends within the record"):
        read(root)


def test_a_missing_file_between_others_is_named(root):
    fill(root).close()
    log_files(root)[2].unlink()
    with pytest.raises(StoreReadError, match="a file is missing between"):
        read(root)


def test_first_files_that_are_deleted_shorten_the_queue(root):
    fill(root).close()
    log_files(root)[0].unlink()
    rows = read(root)
    assert rows == list(range(rows[0], 100))
    assert 0 < rows[0] < 100
    start = '{"T": {"0": 1}}'
    with pytest.raises(DataLossError, match=r"messages 1 to \d+ of T/store/0 are gone"):
        read(root, startingOffsets=start)
    assert read(root, startingOffsets=start, failOnDataLoss="false") == rows


def test_files_that_expire_while_a_task_reads(root):
    fill(root).close()
    chosen = options(root)
    parts = plan_batch(chosen, StoreBackend(chosen))
    log_files(root)[0].unlink()
    with pytest.raises(DataLossError, match=r"messages 0 to \d+ of T/store/0 are gone"):
        [list(read_store(chosen, part)) for part in parts]
    loose = options(root, failOnDataLoss="false")
    rows = [
        row["queueOffset"]
        for part in parts
        for batch in read_store(loose, part)
        for row in batch.to_pylist()
    ]
    assert rows == list(range(rows[0], 100))


def test_offsets_behind_the_end(root):
    fill(root, 10).close()
    with pytest.raises(DataLossError, match="it ends at 10"):
        read(root, endingOffsets='{"T": {"0": 12}}')
    assert read(root, endingOffsets='{"T": {"0": 12}}', failOnDataLoss="false") == list(range(10))


def test_a_queue_that_points_to_anothers_records(root):
    store = fill(root, 10)
    store.put_batch([MessageToStore(b"Other", 0, b"x")])
    store.close()
    chosen = parse_source_options({"path": str(root), "subscribe": "Other"}, streaming=False)
    queue = next((root / "consumequeue" / "Other" / "0").iterdir())
    queue.write_bytes(next((root / "consumequeue" / "T" / "0").iterdir()).read_bytes())
    wrong = ReadPartition("store", [QueueRange(QueueKey("Other", "store", 0), 0, 3)])
    with pytest.raises(StoreReadError, match="is not message 0 of Other/store/0"):
        list(read_store(chosen, wrong))


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (struct.pack("<ii", 100, -626843481), "little-endian"),
        (struct.pack(">ii", 100, 0x0BADCAFE), "0x0badcafe belongs to no known message format"),
    ],
)
def test_another_byte_order_or_version(root, head, sentence):
    fill(root, 5).close()
    overwrite(log_files(root)[0], 0, head)
    with pytest.raises(StoreReadError, match=sentence):
        open_stores(str(root), None)


def test_paths_that_are_no_store(tmp_path):
    with pytest.raises(StoreReadError, match="does not exist"):
        open_stores(str(tmp_path / "nothing"), None)
    with pytest.raises(StoreReadError, match="is no RocketMQ store"):
        open_stores(str(tmp_path), None)
    (tmp_path / "rocks" / "commitlog").mkdir(parents=True)
    (tmp_path / "rocks" / "rocksdbstore").mkdir()
    with pytest.raises(StoreReadError, match="keeps its queues in RocksDB"):
        open_stores(str(tmp_path / "rocks"), None)
