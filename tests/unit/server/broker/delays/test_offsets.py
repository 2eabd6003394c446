"""delayOffset.json: what is saved, when, and in which form."""

import pytest

from pyritemq.server.broker.delays.offsets import DelayOffsetTable, decode_snapshot
from pyritemq.storage.tables import JsonTable

JAVA = b"""{
\t"dataVersion":{
\t\t"counter":3,
\t\t"stateVersion":0,
\t\t"timestamp":1795006075042
\t},
\t"offsetTable":{
\t\t1:4,
\t\t2:1,
\t\t3:3,
\t\t4:1
\t}
}"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "delayOffset.json"


@pytest.fixture
def events():
    return []


@pytest.fixture
def make(path, clock, events):
    def make_table(version_step=200):
        table = DelayOffsetTable(
            JsonTable(path),
            now_ms=clock.now_ms,
            flush_store=lambda: events.append("flushed"),
            version_step=version_step,
        )
        table.load()
        return table

    return make_table


def test_a_level_that_never_had_a_message_starts_at_zero(make):
    assert make().get(7) == 0


def test_javas_file_is_read_and_written_byte_for_byte(make, path):
    path.parent.mkdir()
    path.write_bytes(JAVA)
    table = make()
    assert [table.get(level) for level in range(1, 6)] == [4, 1, 3, 1, 0]
    table.move(1, 5)
    table.move(1, 4)
    table.persist()
    assert path.read_bytes() == JAVA


def test_quoted_levels_are_read_too():
    assert decode_snapshot(b'{"offsetTable":{"3":17}}').offsets == {3: 17}


def test_what_was_moved_is_there_after_a_restart(make):
    table = make()
    table.move(3, 17)
    table.persist()
    assert make().get(3) == 17


def test_nothing_new_writes_nothing(make, path, events):
    table = make()
    table.persist()
    assert not path.exists()
    table.move(1, 1)
    table.persist()
    path.unlink()
    table.move(1, 1)
    table.persist()
    assert not path.exists()
    assert events == ["flushed"]


def test_deliveries_are_durable_before_the_offset_that_counts_them(make, path, clock):
    def fail():
        raise OSError("no disk")

    table = DelayOffsetTable(
        JsonTable(path), now_ms=clock.now_ms, flush_store=fail, version_step=200
    )
    table.move(1, 1)
    with pytest.raises(OSError, match="no disk"):
        table.persist()
    assert not path.exists()
    with pytest.raises(OSError, match="no disk"):
        table.persist()  # it is still to be saved


def test_the_version_moves_on_every_so_many_deliveries(make):
    table = make(version_step=10)
    first = table.snapshot().data_version.counter
    table.move(1, 9)
    assert table.snapshot().data_version.counter == first
    table.move(2, 1)
    assert table.snapshot().data_version.counter == first + 1
