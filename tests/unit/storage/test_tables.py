"""JSON tables: replaced whole, with one version back."""

import pytest
from unit.storage.kit import MemoryDisk

from pyritemq.storage.errors import StorageError
from pyritemq.storage.tables import JsonTable, load, save


def test_a_table_that_was_never_saved_is_none(tmp_path):
    assert load(tmp_path / "config" / "topics.json") is None


def test_save_makes_the_folder_and_keeps_one_version_back(tmp_path):
    path = tmp_path / "config" / "topics.json"
    for text in (b"one", b"two", b"three"):
        save(path, text)
    assert load(path) == b"three"
    assert (path.parent / "topics.json.bak").read_bytes() == b"two"
    assert sorted(item.name for item in path.parent.iterdir()) == ["topics.json", "topics.json.bak"]


@pytest.mark.parametrize("leave", ["missing", "empty"])
def test_the_backup_serves_when_the_table_is_missing_or_empty(tmp_path, leave):
    path = tmp_path / "topics.json"
    save(path, b"one")
    save(path, b"two")
    if leave == "missing":
        path.unlink()
    else:
        path.write_bytes(b"")
    assert load(path) == b"one"
    assert JsonTable(path).versions() == [b"one"]


def test_versions_come_newest_first_under_the_files_name(tmp_path):
    table = JsonTable(tmp_path / "topics.json")
    assert table.versions() == []
    table.save(b"one")
    table.save(b"two")
    assert table.versions() == [b"two", b"one"]
    assert table.load() == b"two"
    assert table.name == str(tmp_path / "topics.json")


def test_a_full_disk_leaves_the_old_version_in_place(tmp_path):
    disk = MemoryDisk()
    table = JsonTable(tmp_path / "topics.json", disk=disk)
    table.save(b"one")
    disk.space = 2
    with pytest.raises(StorageError):
        table.save(b"three")
    assert table.load() == b"one"


def test_a_saved_table_survives_power_loss(tmp_path):
    disk = MemoryDisk()
    JsonTable(tmp_path / "topics.json", disk=disk).save(b"one")
    assert JsonTable(tmp_path / "topics.json", disk=disk.lose_power()).load() == b"one"
