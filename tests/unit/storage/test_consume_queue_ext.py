"""ConsumeQueueExt: units beside the ConsumeQueue, through restarts, crashes, expiry, deletion."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from unit.storage.kit import MemoryDisk, SetClock, kill, open_store, read_queue

from pyritemq.compat.java_hash import tags_code
from pyritemq.server.cli import main
from pyritemq.storage import GetStatus, MessageToStore, PutStatus
from pyritemq.storage.consume_queue_ext import ADDRESS_BASE, ADDRESS_MAX, EXT_HEAD
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.layouts import ExtUnit

ROOT = Path("/store")
EXTS = ROOT / "consumequeue_ext" / "T" / "0"
FILE_SIZE = 300
ON = {"enable_consume_queue_ext": True, "consume_queue_ext_file_size": FILE_SIZE}


@pytest.fixture
def disk():
    return MemoryDisk()


def reopened(disk, **changes):
    def bit_map_of(topic, properties):
        return properties[:7]

    return open_store(ROOT, disk=disk, bit_map_of=bit_map_of, **{**ON, **changes})


def put(store, count, *, tag="A", topic=b"T"):
    properties = f"TAGS\x01{tag}\x02".encode()
    batch = [
        MessageToStore(topic, 0, b"%d" % number, properties, tags_code=tags_code(tag))
        for number in range(count)
    ]
    results = store.put_batch(batch)
    assert [message.tags_code for message in batch] == [tags_code(tag)] * count
    return results


def put_far(store, tag):
    """Three messages, and so much after them that a start does not look at them again."""
    put(store, 3, tag=tag)
    for _ in range(100):
        store.put_batch([MessageToStore(b"Far", 0, bytes(3500))])


def ext_units(store, topic=b"T"):
    queue = store.queues.find(topic, 0)
    codes = [queue.unit(offset)[2] for offset in range(queue.min_offset, queue.max_offset)]
    return [store.exts.read(queue, code) for code in codes]


def chained(disk):
    """The units of all files as a broker finds them that goes from one to the next."""
    found = []
    for path in sorted(path for path in disk.files if path.parent == EXTS):
        data, at = bytes(disk.files[path].buffer), 0
        while int.from_bytes(data[at : at + 2], "big", signed=True) > 0:
            unit = ExtUnit.parse(data[at:])
            found.append((unit.tags_code, unit.store_timestamp, unit.bit_map))
            at += unit.size
    return found


def test_a_store_has_no_ext_files_unless_asked_for(disk):
    store = open_store(ROOT, disk=disk)
    put(store, 3)
    assert store.exts is None
    assert not [path for path in disk.files if "consumequeue_ext" in path.parts]


def test_units_hold_tags_code_time_and_bit_map_and_queue_units_name_them(disk):
    store = reopened(disk)
    put(store, 3)
    assert store.queues.find(b"T", 0).unit(1)[2] == ADDRESS_BASE + EXT_HEAD.size + 7
    assert ext_units(store) == [(tags_code("A"), store._now_ms(), b"TAGS\x01A\x02")] * 3
    assert all(file.length == FILE_SIZE for path, file in disk.files.items() if path.parent == EXTS)


def test_files_roll_and_a_chain_through_them_finds_every_unit(disk):
    store = reopened(disk)
    for _ in range(8):
        put(store, 5)
    assert len(store._disk.names(EXTS)) > 3
    assert ext_units(store) == chained(disk)
    assert len(chained(disk)) == 40


@pytest.mark.parametrize("end", ["close", "kill", "power loss"])
def test_units_survive_and_go_on_after(disk, end):
    store = reopened(disk)
    put(store, 20)
    store.persist()
    put(store, 10)
    if end == "close":
        store.close()
    elif end == "kill":
        kill(store)
    else:
        store.flush()
        disk = disk.lose_power()
    again = reopened(disk)
    put(again, 20)
    assert ext_units(again) == [(tags_code("A"), again._now_ms(), b"TAGS\x01A\x02")] * 50
    assert chained(disk) == ext_units(again)


def test_readers_filter_by_the_tags_code_behind_the_address(disk):
    store = reopened(disk)
    put(store, 3, tag="A")
    put(store, 2, tag="B")
    found = store.get("T", 0, 0, count_max=32, accepts=frozenset({tags_code("B")}))
    assert (found.status, found.count) == (GetStatus.FOUND, 2)
    assert store.get("T", 0, 0, count_max=32).count == 5


def test_readers_may_filter_by_the_ext_unit(disk):
    store = reopened(disk)
    put(store, 3, tag="A")
    put(store, 2, tag="B")
    found = store.get("T", 0, 0, count_max=32, accepts_ext=lambda unit: unit.bit_map[5:6] == b"B")
    assert found.count == 2


def test_units_are_read_and_filtered_after_the_setting_is_off_again(disk):
    store = reopened(disk)
    put_far(store, "A")
    store.close()
    store = reopened(disk, enable_consume_queue_ext=False)
    put(store, 2, tag="B")
    queue = store.queues.find(b"T", 0)
    assert queue.unit(0)[2] <= ADDRESS_MAX
    assert queue.unit(4)[2] == tags_code("B")
    for tag, count in (("A", 3), ("B", 2)):
        found = store.get("T", 0, 0, count_max=32, accepts=frozenset({tags_code(tag)}))
        assert found.count == count
    store.close()
    store = reopened(disk)
    put(store, 1, tag="C")
    assert ext_units(store)[-1].tags_code == tags_code("C")
    found = store.get("T", 0, 0, count_max=32, accepts=frozenset({tags_code("A")}))
    assert found.count == 3


def test_a_lost_ext_unit_lets_its_message_through(disk):
    store = reopened(disk)
    put_far(store, "A")
    store.close()
    for path in [path for path in disk.files if path.parent == EXTS]:
        del disk.files[path]
    store = reopened(disk)
    found = store.get("T", 0, 0, count_max=32, accepts=frozenset({1}))
    assert found.count == 3
    put(store, 3, tag="B")
    assert [unit and unit.tags_code for unit in ext_units(store)][3:] == [tags_code("B")] * 3


def test_no_space_for_ext_units_refuses_the_batch_and_leaves_nothing(disk):
    store = reopened(disk)
    put(store, 3)
    record = store.max_phy_offset // 3
    disk.space = 5 * record + 10  # the records fit, their ext units do not
    refused = put(store, 5)
    assert {result.status for result in refused} == {PutStatus.SERVICE_NOT_AVAILABLE}
    disk.space = 1 << 40
    put(store, 2)
    assert len(read_queue(store)) == 5
    assert ext_units(store) == chained(disk)


def test_too_long_a_bit_map_leaves_the_tags_code_in_the_unit(disk):
    store = reopened(disk)
    store.exts.bit_map_of = lambda topic, properties: bytes(FILE_SIZE)
    put(store, 1)
    assert store.queues.find(b"T", 0).unit(0)[2] == tags_code("A")


def test_expiry_removes_files_before_the_first_unit(tmp_path):
    clock = SetClock()
    store = open_store(tmp_path, clock, file_reserved_hours=1, delete_when="00", **ON)
    put(store, 200)
    before = store._disk.names(tmp_path / "consumequeue_ext" / "T" / "0")
    store.queues.expire(store.max_phy_offset - 500)
    after = store._disk.names(tmp_path / "consumequeue_ext" / "T" / "0")
    assert 0 < len(after) < len(before)
    assert None not in ext_units(store)
    store.close()


def test_a_deleted_topic_takes_its_ext_files_along_and_starts_anew(tmp_path):
    store = open_store(tmp_path, **ON)
    put(store, 30)
    put(store, 3, topic=b"U")
    store.delete_topics(["T"])
    assert not (tmp_path / "consumequeue_ext" / "T").exists()
    put(store, 1)
    assert store.queues.find(b"T", 0).unit(0)[2] == ADDRESS_BASE
    assert len(ext_units(store, b"U")) == 3
    store.close()


def test_a_queue_that_is_derived_anew_gets_new_ext_units(tmp_path):
    store = open_store(tmp_path, **ON)
    put(store, 60)
    store.close()
    for path in (tmp_path / "consumequeue" / "T" / "0").iterdir():
        path.unlink()
    store = open_store(tmp_path, **ON)
    units = ext_units(store)
    assert [unit.tags_code for unit in units] == [tags_code("A")] * 60
    store.close()


def test_an_ext_file_of_another_size_is_named(tmp_path):
    store = open_store(tmp_path, **ON)
    put(store, 3)
    store.close()
    (path,) = (tmp_path / "consumequeue_ext" / "T" / "0").iterdir()
    path.write_bytes(b"\0" * 17)
    with pytest.raises(StoreCorruptError, match=r"0{20} has 17 bytes, not 300"):
        open_store(tmp_path, **ON)


def test_an_ext_file_that_was_never_sized_is_made_anew(tmp_path):
    store = open_store(tmp_path, **ON)
    put(store, 1)
    kill(store)
    (path,) = (tmp_path / "consumequeue_ext" / "T" / "0").iterdir()
    path.write_bytes(b"")
    store = open_store(tmp_path, **ON)
    assert [unit.tags_code for unit in ext_units(store)] == [tags_code("A")]
    store.close()


def test_store_tools_know_ext_units(tmp_path):
    store = open_store(tmp_path, **ON)
    put(store, 60)
    store.close()
    run = CliRunner().invoke
    assert run(main, ["store", "check", str(tmp_path)]).exit_code == 0
    (first, *_) = sorted((tmp_path / "consumequeue_ext" / "T" / "0").iterdir())
    first.write_bytes(bytes(FILE_SIZE))
    found = run(main, ["store", "check", str(tmp_path)])
    assert found.exit_code != 0
    assert "ConsumeQueue T/0: unit 0 is not that of the message at 0" in found.output
    assert run(main, ["store", "rebuild", str(tmp_path)]).exit_code == 0
    assert run(main, ["store", "check", str(tmp_path)]).exit_code == 0
    store = open_store(tmp_path, **ON)
    assert [unit.tags_code for unit in ext_units(store)] == [tags_code("A")] * 60
    store.close()
