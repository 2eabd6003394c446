"""The subscription group table."""

from pathlib import Path

import pytest

from pyritemq.server.broker.state.attributes import AttributeFault
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.groups import (
    SYSTEM_GROUPS,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    decode_snapshot,
)
from pyritemq.storage.tables import JsonTable

JAVA_FILE = (Path(__file__).parent / "java" / "subscriptionGroup.json").read_bytes()


def reloaded(broker, tmp_path):
    file = JsonTable(tmp_path / "config" / "subscriptionGroup.json")
    table = SubscriptionGroupTable(broker.config, file, now_ms=broker.clock.now_ms)
    table.load()
    return table


def test_javas_file_is_read_and_written_back_byte_for_byte():
    snapshot = decode_snapshot(JAVA_FILE)
    assert dumps_pretty(snapshot.to_json()) == JAVA_FILE


def test_system_groups_are_those_of_java(broker):
    javas = decode_snapshot(JAVA_FILE).table
    ours = broker.groups.snapshot.table
    assert set(SYSTEM_GROUPS) == javas.keys() - {"g1", "g2"}
    assert all(ours[name] == javas[name] for name in SYSTEM_GROUPS)


def test_asking_for_a_group_makes_it_with_javas_defaults(broker, tmp_path):
    group = broker.groups.find("g1")
    assert group == decode_snapshot(JAVA_FILE).table["g1"]
    assert broker.groups.snapshot.data_version.counter == 1
    assert broker.groups.find("g1") is group
    assert reloaded(broker, tmp_path).snapshot == broker.groups.snapshot


def test_bad_names_make_no_group(broker):
    assert broker.groups.find("bad group") is None
    assert broker.groups.find("x" * 121) is None
    assert "bad group" not in broker.groups


def test_without_auto_creation_only_system_groups_are_made(broker):
    broker.config.auto_create_subscription_group = False
    assert broker.groups.find("g") is None
    assert broker.groups.find("CID_RMQ_SYS_x") is not None
    broker.config.enable_create_sys_group = False
    assert broker.groups.find("CID_RMQ_SYS_y") is None


def test_update_replaces_the_group_and_alters_its_attributes(broker):
    broker.groups.update(
        SubscriptionGroupConfig(group_name="g", attributes={"+priority.factor": "10"})
    )
    broker.groups.update(SubscriptionGroupConfig(group_name="g", retry_max_times=3))
    group = broker.groups.find("g")
    assert group.retry_max_times == 3
    assert group.attributes == {"priority.factor": "10"}
    with pytest.raises(AttributeFault, match="value is not in range"):
        broker.groups.update(
            SubscriptionGroupConfig(group_name="g", attributes={"+priority.factor": "101"})
        )


def test_deleted_group_is_gone_with_its_switches(broker, tmp_path):
    text = (
        b'{"subscriptionGroupTable":{"g":{"groupName":"g"}},"forbiddenTable":{"g":{"T":4}},'
        b'"dataVersion":{"counter":1,"timestamp":2}}'
    )
    JsonTable(tmp_path / "config" / "subscriptionGroup.json").save(text)
    broker.groups.load()
    assert broker.groups.is_forbidden("g", "T", 2)
    assert not broker.groups.is_forbidden("g", "T", 1)
    assert broker.groups.delete("g")
    assert not broker.groups.delete("g")
    assert not broker.groups.is_forbidden("g", "T", 2)


@pytest.mark.parametrize(
    "data", [[], {"groupName": 1}, {"retryMaxTimes": "3"}, {"consumeEnable": 1}]
)
def test_group_of_another_shape_is_refused(data):
    with pytest.raises(ValueError, match=r"wrong type|not a JSON object"):
        SubscriptionGroupConfig.from_json(data)


def test_json_keeps_retry_policy_and_subscriptions(broker):
    data = {
        "groupName": "g",
        "groupRetryPolicy": {"type": "EXPONENTIAL", "exponentialRetryPolicy": {"initial": 5}},
        "subscriptionDataSet": [{"topic": "T"}],
    }
    out = SubscriptionGroupConfig.from_json(data).to_json()
    assert {key: out[key] for key in data} == data
