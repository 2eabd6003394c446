"""The topic table: Java's files, topics made by sends, changes by tools."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyritemq.compat import fastjson
from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.conf.settings import HostFacts
from pyritemq.server.broker.state.attributes import AttributeFault
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.topics import (
    TopicConfig,
    TopicTable,
    decode_snapshot,
    describe_topic,
    system_topics,
)
from pyritemq.storage.errors import StoreCorruptError
from pyritemq.storage.tables import JsonTable

JAVA_FILE = (Path(__file__).parent / "java" / "topics.json").read_bytes()


@pytest.fixture
def table(broker):
    return broker.topics


@pytest.fixture
def told(broker):
    return broker.registration.told


def reloaded(broker, tmp_path):
    file = JsonTable(tmp_path / "config" / "topics.json")
    table = TopicTable(broker.config, file, now_ms=broker.clock.now_ms)
    table.load()
    return table


def send(table, topic, *, default="TBW102", queue_nums=4, unit_mode=False):
    return table.create_on_send(
        topic, default, queue_nums=queue_nums, unit_mode=unit_mode, peer="127.0.0.1:1"
    )


def test_javas_file_is_read_and_written_back_byte_for_byte():
    snapshot = decode_snapshot(JAVA_FILE)
    assert dumps_pretty(snapshot.to_json()) == JAVA_FILE
    assert snapshot.table["T1"].attributes == {"message.type": "NORMAL"}
    assert snapshot.data_version.counter == 9


def test_system_topics_are_those_of_java():
    properties = {"brokerClusterName": "LabCluster", "brokerName": "lab-a"}
    config, _ = BrokerConfig.from_properties(properties, host=HostFacts())
    ours = {topic.topic_name: topic for topic in system_topics(config)}
    javas = decode_snapshot(JAVA_FILE).table
    made_later = {"%RETRY%g1", "T1", "T7", "T8", "Tauto"}
    assert ours == {name: topic for name, topic in javas.items() if name not in made_later}


def test_conditional_system_topics_follow_the_configuration():
    properties = {
        "brokerName": "b",
        "autoCreateTopicEnable": "false",
        "timerWheelEnable": "false",
        "traceTopicEnable": "true",
        "clusterTopicEnable": "false",
    }
    config, _ = BrokerConfig.from_properties(properties, host=HostFacts())
    ours = {topic.topic_name: topic for topic in system_topics(config)}
    assert not {"TBW102", "rmq_sys_wheel_timer"} & ours.keys()
    assert ours["RMQ_SYS_TRACE_TOPIC"].write_queue_nums == 1
    assert ours["DefaultCluster"].perm == 1
    assert ours["b"].perm == 7


def test_first_send_makes_a_topic_in_the_image_of_tbw102_and_tells(table, told):
    topic = send(table, "T", queue_nums=16)
    assert topic == TopicConfig("T", read_queue_nums=8, write_queue_nums=8, perm=6)
    assert send(table, "U", queue_nums=4).write_queue_nums == 4
    assert send(table, "V", queue_nums=-1).write_queue_nums == 0
    assert told == ["T", "U", "V"]
    assert table.snapshot.data_version.counter == 3


def test_second_send_finds_the_topic_of_the_first(table, told):
    first = send(table, "T", queue_nums=2)
    assert send(table, "T", queue_nums=8) is first
    assert told == ["T"]


@pytest.mark.parametrize("default", ["absent", "BenchmarkTest"])
def test_send_makes_no_topic_without_an_inheritable_default(table, told, default):
    assert send(table, "T", default=default) is None
    assert told == []
    assert "T" not in table


def test_tbw102_of_an_old_file_is_not_inherited_when_auto_creation_is_off(table, broker):
    broker.config.auto_create_topic_enable = False
    assert table.get("TBW102") is not None
    assert send(table, "T") is None


def test_retry_topic_is_made_by_a_send_even_without_a_default(table):
    topic = send(table, "%RETRY%g", default="absent", unit_mode=True)
    assert (topic.write_queue_nums, topic.perm, topic.topic_sys_flag) == (1, 6, 2)
    assert send(table, "T", unit_mode=True).topic_sys_flag == 1


def test_send_back_topic_keeps_what_exists_but_for_order(table, told):
    first = table.create_on_send_back("%RETRY%g", queue_nums=2)
    assert (first.read_queue_nums, first.perm, first.order) == (2, 6, False)
    assert table.create_on_send_back("%RETRY%g", queue_nums=9) is first
    ordered = table.create_on_send_back("%RETRY%g", queue_nums=9, order=True)
    assert ordered == replace(first, order=True)
    assert told == ["%RETRY%g"]


def test_update_alters_attributes_and_keeps_the_others(table, told):
    table.update(TopicConfig("T", attributes={"+message.type": "FIFO"}))
    table.update(TopicConfig("T", write_queue_nums=2, attributes={"+lite.topic.expiration": "5"}))
    topic = table.get("T")
    assert topic.attributes == {"message.type": "FIFO", "lite.topic.expiration": "5"}
    assert topic.write_queue_nums == 2
    table.update(TopicConfig("T", attributes={"-message.type": ""}))
    assert table.get("T").attributes == {"lite.topic.expiration": "5"}
    assert told == ["T", "T", "T"]


def test_refused_update_changes_nothing(table, told):
    version = table.snapshot.data_version
    for attributes in ({"+message.type": "BAD"}, {"+reserve.time": "1"}, {"-message.type": ""}):
        with pytest.raises(AttributeFault):
            table.update(TopicConfig("T", attributes=attributes))
    assert "T" not in table
    assert told == []
    assert table.snapshot.data_version == version


def test_changes_survive_a_restart(table, broker, tmp_path):
    send(table, "T")
    table.update(TopicConfig("BenchmarkTest", write_queue_nums=1))
    again = reloaded(broker, tmp_path)
    assert again.snapshot == table.snapshot
    table.delete("T")
    assert "T" not in reloaded(broker, tmp_path)


def test_delete_is_not_announced_and_tells_whether_there_was_one(table, told):
    send(table, "T")
    assert table.delete("T")
    assert not table.delete("T")
    assert told == ["T"]


def test_ordered_topics_of_a_name_server_are_marked_once(table):
    send(table, "T")
    table.set_ordered(["T", "absent"])
    counter = table.snapshot.data_version.counter
    table.set_ordered(["T"])
    assert table.is_order_topic("T")
    assert not table.is_order_topic("absent")
    assert table.snapshot.data_version.counter == counter


def test_snapshot_taken_before_a_change_stays_as_it_was(table):
    before = table.snapshot
    send(table, "T")
    assert "T" not in before.table


def test_system_topics_and_topics_closed_to_senders(table):
    for topic in ("TBW102", "rmq_sys_anything", "DefaultCluster", "broker-a", "CHECKPOINT_TOPIC"):
        assert table.is_system_topic(topic)
    assert not table.is_system_topic("T")
    assert table.is_closed_to_senders("SCHEDULE_TOPIC_XXXX")
    assert not table.is_closed_to_senders("TBW102")


def test_broken_file_falls_back_to_its_backup_and_then_refuses(table, broker, tmp_path):
    send(table, "T")
    send(table, "U")
    file = tmp_path / "config" / "topics.json"
    file.write_bytes(b'{"topicConfigTable":{"T":')
    assert "T" in reloaded(broker, tmp_path)
    (tmp_path / "config" / "topics.json.bak").write_bytes(b"[]")
    with pytest.raises(StoreCorruptError, match=r"topics\.json cannot be read"):
        reloaded(broker, tmp_path)


def test_description_is_javas_to_string():
    topic = TopicConfig("T", 2, 3, 6, attributes={"message.type": "NORMAL"})
    assert describe_topic(topic) == (
        "TopicConfig [topicName=T, readQueueNums=2, writeQueueNums=3, perm=RW-, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, "
        "attributes={message.type=NORMAL}]"
    )


def test_pretty_form_reads_back_and_leaves_nulls_out():
    value = {"a": {}, "b": [], "c": [1, "x"], "d": {1: {2: -3}}, "e": None, "f": 1.5, "g": True}
    text = dumps_pretty(value)
    assert b"1:{\n\t\t\t2:-3\n\t\t}" in text
    del value["e"]
    assert fastjson.loads(text) == value
