"""Messages are found by key: at once, from the index, across files, stops and crashes."""

from types import SimpleNamespace

import pytest
from unit.storage.kit import MemoryDisk, SetClock, kill, open_store, split_records

from pyritemq.protocol.record import TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from pyritemq.storage import MessageToStore, message_index
from pyritemq.storage.index_file import index_file_size

ALL = {"begin": 0, "end": 1 << 62}


def keyed(number, topic=b"T", *, keys="", unique="", tags="", sys_flag=0):
    named = {"KEYS": keys, "UNIQ_KEY": unique, "TAGS": tags}
    properties = "".join(f"{name}\x01{value}\x02" for name, value in named.items() if value)
    return MessageToStore(topic, 0, b"%d" % number, properties.encode(), sys_flag=sys_flag)


def found(store, key, topic="T", count_max=64, index_type=None, **times):
    result = store.query(topic, key, count_max, index_type=index_type, **(ALL | times))
    return [int(record.body) for record in split_records(result.records)]


@pytest.fixture(params=["just sent", "indexed", "stopped and started"])
def settle(request, tmp_path):
    """The three ages of a message, as far as queries are concerned."""

    def run(store):
        if request.param == "just sent":
            return store
        store.index.catch_up()
        assert not store.index.lag_bytes
        if request.param == "stopped and started":
            store.close()
            store = open_store(tmp_path)
        return store

    return run


def test_message_is_found_by_unique_key_by_each_key_and_by_tag(tmp_path, settle):
    store = open_store(tmp_path)
    store.put_batch(
        [
            keyed(1, keys="a bb", unique="U1", tags="Tag"),
            keyed(2, keys="bb  c", tags="Tag"),
            keyed(3, b"Other", keys="a", unique="U1", tags="Tag"),
        ]
    )
    store = settle(store)
    assert found(store, "U1") == found(store, "a") == [1]
    assert found(store, "bb") == [1, 2]
    assert found(store, "c") == [2]
    assert found(store, "Tag", index_type="T") == [1, 2]
    assert found(store, "a", "Other") == [3]
    assert found(store, "Tag") == found(store, "a bb") == found(store, "A") == []
    assert found(store, "") == found(store, "a", index_type="T") == []
    store.close()


def test_keys_beyond_ascii_and_of_any_length_are_found(tmp_path, settle):
    store = open_store(tmp_path)
    keys = ["客户", "😀", "k" * 255, "k" * 256, "k" * 700, "0123456789ABCDEF", "0123456789ABCDEFG"]
    store.put_batch([keyed(number, keys=key) for number, key in enumerate(keys)])
    store = settle(store)
    assert [found(store, key) for key in keys] == [[number] for number in range(len(keys))]
    store.close()


def test_rolled_back_halves_are_not_indexed_prepared_and_committed_ones_are(tmp_path, settle):
    store = open_store(tmp_path)
    flags = (TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK)
    store.put_batch([keyed(n, keys="k", sys_flag=flag) for n, flag in enumerate(flags)])
    store = settle(store)
    assert found(store, "k") == [0, 1]
    store.close()


def test_key_in_a_body_or_in_another_property_is_not_a_key(tmp_path, settle):
    store = open_store(tmp_path)
    properties = b"OTHERKEYS\x01secret\x02note\x01secret\x02"
    store.put_batch([MessageToStore(b"T", 0, b"KEYS\x01secret\x02", properties)])
    store = settle(store)
    assert found(store, "secret") == []
    store.close()


def test_newest_of_many_are_returned_oldest_first(tmp_path, settle):
    store = open_store(tmp_path)
    for number in range(200):
        store.put_batch([keyed(number, keys="k", unique=f"u{number}")])
    store = settle(store)
    assert len(list((tmp_path / "index").glob("*"))) in (0, 2)
    assert found(store, "k", count_max=3) == [197, 198, 199]
    assert found(store, "k", count_max=1000) == list(range(136, 200))  # maxMsgsNumBatch
    assert found(store, "k", count_max=0) == found(store, "k", count_max=-1) == []
    assert found(store, "u0") == [0]
    store.close()


def test_time_range_includes_both_ends(tmp_path, settle):
    clock = SetClock(1_700_000_000_000)
    store = open_store(tmp_path, clock)
    for number in range(10):
        store.put_batch([keyed(number, keys="k")])
        clock.ms += 1000
    store = settle(store)
    start = 1_700_000_000_000
    assert found(store, "k", begin=start + 2000, end=start + 4000) == [2, 3, 4]
    assert found(store, "k", begin=start + 10_000) == []
    assert found(store, "k", end=start - 1) == []
    store.close()


def test_reply_names_the_last_record_of_the_index(tmp_path, settle):
    clock = SetClock(5_000)
    store = open_store(tmp_path, clock)
    store.put_batch([keyed(1, keys="k")])
    clock.ms = 7_000
    (last,) = store.put_batch([keyed(2, keys="other")])
    store = settle(store)
    assert store.query("T", "k", 9, **ALL)[1:] == (7_000, last.phy_offset)
    assert store.query("T", "unknown", 9, **ALL)[1:] == (0, 0)
    store.close()


def test_start_goes_on_behind_the_last_indexed_record(tmp_path):
    store = open_store(tmp_path)
    store.put_batch([keyed(n, keys="k") for n in range(3)])
    store.close()
    store = open_store(tmp_path)
    assert not store.index.lag_bytes
    store.put_batch([keyed(3, keys="k")])
    store.close()
    store = open_store(tmp_path)
    assert store.index.table.files[-1].header.index_count == 5
    assert found(store, "k") == [0, 1, 2, 3]
    store.close()


def test_index_that_was_not_synced_is_built_anew_after_a_crash(tmp_path):
    clock = SetClock()
    store = open_store(tmp_path, clock)
    store.put_batch([keyed(1, keys="k")])
    store.index.catch_up()
    clock.ms += 1
    store.persist()
    synced = store.index.table.files[-1].path
    kill(store)
    store = open_store(tmp_path, clock)
    assert [file.path for file in store.index.table.files] == [synced]

    store.put_batch([keyed(2, keys="k")])
    store.index.catch_up()
    kill(store)
    store = open_store(tmp_path, clock)
    assert store.index.table.files == ()
    assert found(store, "k") == [1, 2]
    store.index.catch_up()
    assert found(store, "k") == [1, 2]
    store.close()


def test_index_of_records_that_a_power_loss_took_is_dropped(tmp_path):
    disk, clock = MemoryDisk(), SetClock()
    store = open_store(tmp_path, clock, disk)
    store.put_batch([keyed(1, keys="k")])
    store.flush()
    store.put_batch([keyed(2, keys="k")])
    store.index.catch_up()
    clock.ms += 1
    store.index.sync()
    store.checkpoint.index_msg_timestamp = clock.ms
    store = open_store(tmp_path, clock, disk.lose_power())
    assert store.index.table.files == ()
    assert found(store, "k") == [1]


@pytest.mark.parametrize("damage", ["size", "empty", "name"])
def test_file_that_is_no_index_does_no_harm(tmp_path, damage):
    store = open_store(tmp_path)
    store.put_batch([keyed(1, keys="k")])
    store.close()
    (path,) = (tmp_path / "index").iterdir()
    if damage == "size":
        path.write_bytes(b"x")
    elif damage == "empty":
        path.write_bytes(bytes(index_file_size(slots=50, items=400)))
    else:
        path.rename(path.with_name("x" + path.name))
    store = open_store(tmp_path)
    assert found(store, "k") == [1]
    store.close()


def test_disabled_index_stays_as_it_is(tmp_path):
    store = open_store(tmp_path)
    store.put_batch([keyed(1, keys="k")])
    store.close()
    store = open_store(tmp_path, message_index_enable=False)
    store.put_batch([keyed(2, keys="k")])
    store.index.work()
    assert found(store, "k") == [1]
    store.close()


@pytest.fixture
def load(monkeypatch):
    """What the index takes for this process's CPU time, whatever other tests have used."""
    used = SimpleNamespace(cpu_seconds=1000.0)
    monkeypatch.setattr(message_index, "cpu_seconds", lambda: used.cpu_seconds)
    monkeypatch.setattr(message_index, "BUSY_BYTES", 1000)
    monkeypatch.setattr(message_index, "LAG_BYTES_MAX", 5000)
    return used


def test_background_thread_indexes_when_idle_and_leaves_a_busy_sender_alone(tmp_path, load):
    store = open_store(tmp_path)
    store.put_batch([keyed(n, keys="k") for n in range(20)])
    lag = store.index.lag_bytes
    assert 1000 < lag < 5000
    store.housekeep()
    assert store.index.lag_bytes == lag  # much was sent
    load.cpu_seconds += 0.2
    store.housekeep()
    assert store.index.lag_bytes == lag  # nothing was sent, but something else kept us busy
    load.cpu_seconds += 0.05
    store.housekeep()
    assert not store.index.lag_bytes
    store.close()


def test_background_thread_indexes_under_load_what_is_too_far_behind(tmp_path, load):
    store = open_store(tmp_path)
    lags = []
    for _ in range(5):
        store.put_batch([keyed(n, keys="k") for n in range(20)])
        store.housekeep()
        lags.append(store.index.lag_bytes)
    assert lags[0] > 1000  # left alone at first
    assert max(lags) <= 5000 + 200  # then only what is more than may lag
    store.close()


def test_full_disk_delays_the_index_and_loses_nothing(tmp_path, caplog):
    disk = MemoryDisk()
    store = open_store(tmp_path, disk=disk)
    store.put_batch([keyed(n, keys=f"k k{n}") for n in range(30)])
    store.index.catch_up(records_max=10)
    for space in (0, 300, 700, 1100, 1400):
        disk.space = space
        store.index.work()
        assert found(store, "k") == list(range(30))
    assert caplog.text.count("index cannot be written") == 1
    disk.space = 1 << 40
    store.index.work()
    assert not store.index.lag_bytes
    assert found(store, "k") == list(range(30))
    assert [found(store, f"k{n}") for n in range(30)] == [[n] for n in range(30)]
    store.close()


def test_files_whose_records_expired_are_deleted_but_for_the_last(tmp_path):
    store = open_store(tmp_path, index_items=50)
    store.put_batch([keyed(n, keys=f"k k{n}") for n in range(100)])
    store.index.catch_up()
    files = store.index.table.files
    assert len(files) == 5
    assert store.index.delete_expired(files[1].header.end_phy_offset + 1) == 2
    assert store.index.delete_expired(1 << 60) == 2
    assert [path.name for path in (tmp_path / "index").iterdir()] == [files[4].path.name]
    assert found(store, "k99") == [99]
    store.close()


def test_record_that_left_the_commit_log_is_not_found(tmp_path):
    store = open_store(tmp_path)
    store.put_batch([keyed(n, keys="k") for n in range(60)])
    store.close()
    min(path for path in (tmp_path / "commitlog").iterdir()).unlink()
    store = open_store(tmp_path)
    numbers = found(store, "k")
    assert numbers == list(range(numbers[0], 60))
    assert 0 < numbers[0] < 60
    store.close()


def test_offset_within_a_record_names_no_record_even_if_it_looks_like_one(tmp_path):
    store = open_store(tmp_path)
    (first,) = store.put_batch([keyed(1)])
    forged = bytes(store.record_at(first.phy_offset))
    (second,) = store.put_batch([MessageToStore(b"T", 0, forged)])
    inside = second.phy_offset + bytes(store.record_at(second.phy_offset)).find(forged)
    assert store.record_at(inside) is None
    assert store.record_at(-1) is None
    assert store.record_at(1 << 62) is None
    store.close()


def test_record_whose_unique_key_is_also_a_key_is_found_once(tmp_path, settle):
    store = open_store(tmp_path)
    store.put_batch([keyed(1, keys="a a", unique="a"), keyed(2, keys="a", unique="a")])
    store = settle(store)
    assert found(store, "a", count_max=2) == [1, 2]
    store.close()
