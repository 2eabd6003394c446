"""The real disk: what it promises to the rest of the store."""

import contextlib
import errno
import os
from pathlib import Path

import pytest
from unit.storage.kit import message

from pyritemq.storage.disk import RealDisk
from pyritemq.storage.errors import DiskFullError, StoreCorruptError, StoreUnusableError
from pyritemq.storage.file_cache import FileCache

DISK = RealDisk()


def open_below(folder):
    """How many descriptors of this process lead to files in the folder."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
    return count


def test_a_mapping_shows_what_is_written_later(tmp_path):
    file = DISK.open(tmp_path / "file", create=True)
    file.resize(8192)
    view = file.map(8192)
    file.write_at(5000, b"later")
    assert bytes(view[5000:5005]) == b"later"
    assert file.read_at(5000, 5) == b"later"
    with pytest.raises(TypeError):
        view[0] = 1


def test_a_mapping_outlives_its_file_and_the_name(tmp_path):
    file = DISK.open(tmp_path / "file", create=True)
    file.write_at(0, b"x" * 4096)
    view = file.map(4096)[:5]
    DISK.remove(file.path)
    del file
    assert bytes(view) == b"xxxxx"


def test_files_are_sparse_until_written(tmp_path):
    file = DISK.open(tmp_path / "file", create=True)
    file.resize(1 << 30)
    assert os.stat(file.path).st_blocks == 0
    assert file.size() == 1 << 30


def test_a_full_device_is_a_disk_full_error():
    file = DISK.open(Path("/dev/full"))
    with pytest.raises(DiskFullError, match="no space left for /dev/full"):
        file.write_at(0, b"x")


def test_another_write_error_keeps_its_errno(tmp_path):
    file = DISK.open(tmp_path / "file", create=True)
    with pytest.raises(OSError, match="Invalid argument") as raised:
        file.write_at(-1, b"x")
    assert raised.value.errno == errno.EINVAL


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(StoreUnusableError, match=f"{tmp_path} cannot be opened: Is a directory"):
        DISK.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        DISK.open(tmp_path / "none")


def test_all_files_of_a_file_system_can_be_synced_at_once(tmp_path):
    DISK.sync_all(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        DISK.sync_all(tmp_path / "none")


def test_a_missing_folder_has_no_names(tmp_path):
    assert DISK.names(tmp_path / "none") == []
    (tmp_path / "file").touch()
    assert DISK.names(tmp_path / "file") == []
    assert DISK.names(tmp_path) == ["file"]


def test_the_cache_keeps_a_bounded_number_of_files_open(tmp_path):
    cache = FileCache(DISK, capacity=5)
    for number in range(20):
        cache.open_sized(tmp_path / str(number % 3) / str(number), 100).write_at(0, b"%d" % number)
    assert len(cache) == 5
    assert open_below(tmp_path) == 5
    assert cache.open(tmp_path / "0" / "0").read_at(0, 1) == b"0"
    cache.clear()
    assert open_below(tmp_path) == 0


def test_a_dropped_file_serves_its_reader_to_the_end(tmp_path):
    cache = FileCache(DISK, capacity=1)
    first = cache.open_sized(tmp_path / "first", 10)
    cache.open_sized(tmp_path / "second", 10)
    assert first.read_at(0, 10) == bytes(10)


def test_the_cache_names_a_file_that_is_missing(tmp_path):
    with pytest.raises(StoreCorruptError, match="none is missing"):
        FileCache(DISK).open(tmp_path / "none")


def test_a_store_closes_all_its_files(opened, tmp_path):
    store = opened()
    store.put_batch([message(b"x" * 900, queue_id=number) for number in range(10)])
    store.persist()
    assert open_below(tmp_path) > 10
    store.close()
    assert open_below(tmp_path) == 0
