"""A CommitLog over several folders: where files go, that all are found, and what is refused."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from unit.storage.kit import MemoryDisk, SetClock, kill, message, open_store, read_queue

from pyritemq.server.cli import main
from pyritemq.storage.errors import StoreCorruptError, StoreUnusableError

ROOT = Path("/store")
A, B, C = Path("/disk-a"), Path("/disk-b"), Path("/disk-c")
FILE_SIZE = 4096


class Disks(MemoryDisk):
    """Several disks of their own use."""

    def __init__(self):
        super().__init__()
        self.used_by = {}

    def used_ratio(self, path):
        return self.used_by.get(path, 0.1)


def put(store, count):
    for number in range(count):
        store.put_batch([message(b"%04d" % number * 100)])


def starts(disk, folder):
    return [int(name) // FILE_SIZE for name in disk.names(folder)]


def test_files_go_to_the_folders_in_turn_and_are_found_again():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, commit_log_paths=(B, A))
    put(store, 50)
    assert starts(disk, A) == [0, 2, 4, 6]
    assert starts(disk, B) == [1, 3, 5]
    store.close()
    store = open_store(ROOT, disk=disk, commit_log_paths=(A, B))
    assert len(read_queue(store)) == 50
    kill(store)
    store = open_store(ROOT, disk=disk, commit_log_paths=(A, B))
    put(store, 50)
    assert len(read_queue(store)) == 100


def test_a_read_only_folder_is_read_and_gets_no_new_file():
    disk = MemoryDisk()
    store = open_store(ROOT, disk=disk, commit_log_paths=(A,))
    put(store, 20)
    store.close()
    before = starts(disk, A)
    settings = {"commit_log_paths": (A, B, C), "commit_log_read_only_paths": (A,)}
    store = open_store(ROOT, disk=disk, **settings)
    put(store, 40)
    assert starts(disk, A) == before
    assert len(starts(disk, B)) > 1
    assert len(starts(disk, C)) > 1
    assert len(read_queue(store)) == 60


def test_new_files_keep_away_from_a_disk_that_is_nearly_full():
    disk, clock = Disks(), SetClock()
    store = open_store(ROOT, clock, disk, commit_log_paths=(A, B))
    put(store, 20)
    before = starts(disk, A)
    disk.used_by[A] = 0.88
    store.clean_files()
    assert store.is_writable  # the other disk has space
    put(store, 40)
    assert starts(disk, A) == before
    disk.used_by[B] = 0.95
    disk.used_by[A] = 0.95
    store.clean_files()
    assert not store.is_writable
    disk.used_by.clear()
    store.clean_files()
    put(store, 40)
    assert len(starts(disk, A)) > len(before)


def test_files_expire_in_their_order_wherever_they_lie():
    disk, clock = MemoryDisk(), SetClock()
    settings = {"delete_commit_log_files_interval_ms": 0, "file_reserved_hours": 1}
    store = open_store(ROOT, clock, disk, commit_log_paths=(A, B), **settings)
    put(store, 50)
    clock.ms += 2 * 3_600_000
    store.expiry.delete_manually()
    store.clean_files()
    assert starts(disk, A) == [6]
    assert starts(disk, B) == []


def test_a_file_that_lies_in_two_folders_is_refused(tmp_path):
    folders = (tmp_path / "a", tmp_path / "b")
    store = open_store(tmp_path / "store", commit_log_paths=folders)
    put(store, 3)
    store.close()
    name = f"{0:020d}"
    (folders[1] / name).write_bytes((folders[0] / name).read_bytes())
    with pytest.raises(StoreUnusableError, match=f"{name} lies in .*a and in .*b"):
        open_store(tmp_path / "store", commit_log_paths=folders)


def test_a_folder_that_is_left_out_is_a_missing_file(tmp_path):
    folders = (tmp_path / "a", tmp_path / "b")
    store = open_store(tmp_path / "store", commit_log_paths=folders)
    put(store, 30)
    store.close()
    with pytest.raises(StoreCorruptError, match="a file is missing between"):
        open_store(tmp_path / "store", commit_log_paths=folders[:1])


def test_no_folder_to_write_to_is_refused():
    with pytest.raises(StoreUnusableError, match="no folder for new files"):
        open_store(ROOT, disk=MemoryDisk(), commit_log_paths=(A,), commit_log_read_only_paths=(A,))


def test_store_check_reads_all_folders_of_a_configuration(tmp_path):
    folders = (tmp_path / "a", tmp_path / "b")
    store = open_store(tmp_path / "store", commit_log_paths=folders)
    put(store, 30)
    store.close()
    conf = tmp_path / "broker.conf"
    conf.write_text(
        f"storePathCommitLog={folders[0]},{folders[1]}\n"
        f"mappedFileSizeCommitLog={FILE_SIZE}\nmappedFileSizeConsumeQueue=1000\n"
    )
    found = CliRunner().invoke(main, ["store", "check", str(tmp_path / "store"), "-c", str(conf)])
    assert found.exit_code == 0, found.output
    assert "30 " in found.output
