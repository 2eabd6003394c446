"""The consumer offset table and its file."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.offsets import (
    NOT_FOUND,
    VERSION_STEP,
    ConsumerOffsetTable,
    OffsetSnapshot,
    decode_snapshot,
    encode_snapshot,
)
from pyritemq.storage.errors import StorageError
from pyritemq.storage.tables import JsonTable

JAVA_FILE = (Path(__file__).parent / "java" / "consumerOffset.json").read_bytes()

queues = st.dictionaries(st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1), max_size=4)
tables = st.dictionaries(
    st.builds(
        "{}@{}".format,
        st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1),
        st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1),
    ),
    queues,
    max_size=5,
)
versions = st.builds(
    DataVersion, st.integers(0, 2**62), st.integers(0, 2**31), st.integers(0, 2**31)
)
snapshots = st.builds(OffsetSnapshot, tables, tables, versions)


@pytest.fixture
def file(tmp_path):
    return JsonTable(tmp_path / "config" / "consumerOffset.json")


@pytest.fixture
def table(broker):
    return broker.offsets


def reloaded(file, clock):
    table = ConsumerOffsetTable(file, now_ms=clock.now_ms)
    table.load()
    return table


def test_javas_file_is_read_and_written_back_byte_for_byte():
    snapshot = decode_snapshot(JAVA_FILE)
    assert snapshot.offsets == {"T1@g1": {0: 7, 11: 17}}
    assert encode_snapshot(snapshot) == JAVA_FILE


def test_quoted_queue_ids_of_other_writers_are_read_too():
    text = b'{"offsetTable":{"T@g":{"0":5,"12":6}}}'
    assert decode_snapshot(text).offsets == {"T@g": {0: 5, 12: 6}}


@settings(deadline=None)  # a busy machine is not a bug
@given(snapshots)
def test_any_table_survives_the_file(snapshot):
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


@settings(deadline=None)  # a busy machine is not a bug
@given(snapshots)
def test_fast_encoding_equals_the_plain_one(snapshot):
    groups = {}
    for key in snapshot.offsets:
        topic, _, group = key.partition("@")
        groups.setdefault(group, []).append(topic)
    in_order = {key: dict(sorted(rows.items())) for key, rows in snapshot.offsets.items()}
    pulls = {key: dict(sorted(rows.items())) for key, rows in snapshot.pull_offsets.items()}
    plain = {
        "dataVersion": snapshot.data_version.to_json(),
        "groupTopicMap": groups,
        "offsetTable": in_order,
        "pullOffsetTable": pulls,
    }
    assert encode_snapshot(snapshot) == dumps_pretty(plain)


def test_unknown_queue_is_not_found(table):
    assert table.query("g", "T", 0) == NOT_FOUND


def test_commit_may_go_back(table, caplog):
    table.commit("g", "T", 0, 10)
    table.commit("g", "T", 0, 4, peer="127.0.0.1:9")
    assert table.query("g", "T", 0) == 4
    assert "consumer offset moved back peer=127.0.0.1:9" in caplog.text


def test_version_moves_every_five_hundred_commits(table, clock):
    before = table.snapshot().data_version
    for offset in range(VERSION_STEP - 1):
        table.commit("g", "T", 0, offset)
    assert table.snapshot().data_version == before
    clock.advance(1)
    table.commit("g", "T", 0, VERSION_STEP)
    assert table.snapshot().data_version == DataVersion(clock.now_ms(), before.counter + 1)


def test_committed_offsets_survive_a_restart_and_pulled_ones_do_not(table, file, clock):
    table.commit("g", "T", 3, 10)
    table.commit_pull("g", "T", 3, 12)
    assert table.query_pull("g", "T", 3) == 12
    table.persist()
    again = reloaded(file, clock)
    assert again.query("g", "T", 3) == 10
    assert again.query_pull("g", "T", 3) == 10


def test_save_without_news_writes_nothing(table, file):
    table.persist()
    assert not file.path.exists()
    table.commit("g", "T", 0, 1)
    table.persist()
    file.path.unlink()
    table.persist()
    assert not file.path.exists()


def test_failed_save_is_made_up_for_by_the_next(clock, file):
    class FullDisk(JsonTable):
        full = True

        def save(self, data):
            if self.full:
                raise StorageError("no space")
            super().save(data)

    full_disk = FullDisk(file.path)
    table = ConsumerOffsetTable(full_disk, now_ms=clock.now_ms)
    table.commit("g", "T", 0, 1)
    with pytest.raises(StorageError):
        table.persist()
    full_disk.full = False
    table.persist()
    assert reloaded(file, clock).query("g", "T", 0) == 1


def test_reset_wins_until_it_is_taken(table):
    table.commit("g", "T", 0, 10)
    table.assign_reset("g", "T", 0, 3)
    table.commit("g", "T", 0, 11)
    assert table.has_reset("g", "T", 0)
    assert table.query("g", "T", 0) == 3
    assert table.take_reset("g", "T", 0) == 3
    assert table.take_reset("g", "T", 0) is None
    assert table.query("g", "T", 0) == 11


def test_reset_is_committed_for_groups_that_are_offline(table, file, clock):
    table.assign_reset("g", "T", 0, 3)
    table.persist()
    assert reloaded(file, clock).query("g", "T", 0) == 3


def test_nonsense_reset_is_ignored(table):
    for group, topic, queue_id, offset in (("", "T", 0, 1), ("g", "T", -1, 1), ("g", "T", 0, -1)):
        table.assign_reset(group, topic, queue_id, offset)
        assert not table.has_reset(group, topic, queue_id)


def test_removed_topic_and_group_take_only_their_own_offsets(table):
    for topic, group in (("T", "g"), ("T", "h"), ("U", "g"), ("TT", "g")):
        table.commit(group, topic, 0, 1)
    assert table.groups_of_topic("T") == {"g", "h"}
    assert table.topics_of_group("g") == {"T", "U", "TT"}
    table.remove_topic("T")
    assert table.topics_of_group("g") == {"U", "TT"}
    assert table.topics_of_group("h") == set()
    table.remove_group("g")
    assert table.snapshot().offsets == {}


def test_copied_group_goes_its_own_way(table):
    table.commit("g", "T", 0, 5)
    table.copy_group(source="g", target="h", topic="T")
    table.commit("g", "T", 0, 6)
    assert table.query_all("h", "T") == {0: 5}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"offsetTable":[]}', b'{"offsetTable":{"a":{"x":1}}}']
)
def test_nonsense_is_not_a_table(text):
    with pytest.raises(ValueError):  # noqa: PT011 - any of several texts
        decode_snapshot(text)
