"""A deleted topic is gone, stays gone whatever a start derives anew, and can be made again."""

import json
import shutil

import pytest
from unit.storage.kit import MemoryDisk, kill, message, open_store, read_queue

from pyritemq.storage.errors import StoreCorruptError


def bodies(store, topic="T"):
    return [record.body for record in read_queue(store, topic)]


def fill(store, count, topic=b"T", start=0):
    store.put_batch([message(b"%d" % n, topic) for n in range(start, start + count)])


def test_deleted_topic_has_no_queue_and_no_files(tmp_path):
    store = open_store(tmp_path)
    fill(store, 60)
    fill(store, 3, b"Other")
    store.persist()
    assert store.delete_topics(["T", "Unknown"]) == 1
    assert store.topics() == {"Other"}
    assert (store.min_offset("T", 0), store.max_offset("T", 0)) == (0, 0)
    assert not (tmp_path / "consumequeue" / "T").exists()
    assert len(bodies(store, "Other")) == 3
    store.close()


def test_units_that_were_not_yet_written_do_not_bring_the_files_back(tmp_path):
    store = open_store(tmp_path)
    fill(store, 5)
    store.delete_topics(["T"])
    store.persist()
    assert not (tmp_path / "consumequeue" / "T").exists()
    store.close()


def test_topic_made_again_starts_at_offset_0(tmp_path):
    store = open_store(tmp_path)
    fill(store, 5)
    store.delete_topics(["T"])
    (result,) = store.put_batch([message(b"new")])
    assert result.queue_offset == 0
    assert bodies(store) == [b"new"]
    store.close()


@pytest.mark.parametrize("end", ["stop", "kill", "kill and lose all queues", "kill, then stop"])
@pytest.mark.parametrize("made_again", [0, 2, 9])
def test_no_start_brings_a_deleted_topic_back(tmp_path, end, made_again):
    store = open_store(tmp_path)
    fill(store, 5)
    fill(store, 3, b"Other")
    store.delete_topics(["T"])
    fill(store, made_again, start=100)
    for how in end.split(", then "):
        store.close() if how == "stop" else kill(store)
        if "lose all" in how:
            shutil.rmtree(tmp_path / "consumequeue")
        store = open_store(tmp_path)
        assert bodies(store) == [b"%d" % n for n in range(100, 100 + made_again)]
        assert bodies(store, "Other") == [b"0", b"1", b"2"]
        assert ("T" in store.topics()) == bool(made_again)
    store.close()


def test_deletion_that_was_cut_short_is_ended_by_the_next_start(tmp_path):
    store = open_store(tmp_path)
    fill(store, 5)
    store.persist()
    store._deletions.begin([b"T"], store.max_phy_offset)
    kill(store)
    store = open_store(tmp_path)
    assert store.topics() == set()
    assert store._deletions.underway == []
    fill(store, 1)
    kill(store)
    store = open_store(tmp_path)
    assert bodies(store) == [b"0"]
    store.close()


def test_deleted_topic_stays_deleted_after_power_loss(tmp_path):
    disk = MemoryDisk()
    store = open_store(tmp_path, disk=disk)
    fill(store, 5)
    store.delete_topics(["T"])
    fill(store, 2, b"Other")
    store.flush()
    store = open_store(tmp_path, disk=disk.lose_power())
    assert store.topics() == {"Other"}


def test_deletions_are_forgotten_with_the_records(tmp_path):
    store = open_store(tmp_path)
    fill(store, 60)
    store.delete_topics(["T"])
    fill(store, 60)
    store.close()
    for path in sorted((tmp_path / "commitlog").iterdir())[:2]:
        path.unlink()
    store = open_store(tmp_path)
    store.delete_topics(["T"])
    table = json.loads((tmp_path / "config" / "deletedTopics.json").read_text())
    assert table == {"topics": {"T": store.max_phy_offset}, "underway": []}
    store.close()


def test_table_of_deletions_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "deletedTopics.json").write_text("[]")
    with pytest.raises(StoreCorruptError, match=r"deletedTopics\.json is not understood"):
        open_store(tmp_path)
