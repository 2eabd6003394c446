"""Lists of topics and groups, forbidden reads, cold-data limits, and what is not there."""

from __future__ import annotations

import json

import pytest

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.server.broker.processors.admin.runtime import format_runtime, human_bytes


def body_of(reply: Command) -> object:
    assert reply.code == ResponseCode.SUCCESS, reply.remark
    return fastjson.loads(reply.body)


def topic_list(*topics: dict) -> Command:
    body = json.dumps({"topicConfigList": topics}).encode()
    return Command(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)


def test_a_list_of_topics_is_made_and_registered_once(call, broker):
    reply = call(topic_list({"topicName": "A", "readQueueNums": 3}, {"topicName": "B"}))
    assert reply.code == ResponseCode.SUCCESS
    assert broker.topics.get("A").read_queue_nums == 3
    assert broker.registration.told == ["A", "B"]
    assert broker.registration.settled_after == [2]


def test_a_bad_name_in_a_list_keeps_the_others_from_being_made(call, broker):
    reply = call(topic_list({"topicName": "A"}, {"topicName": "no spaces"}))
    assert reply.code == ResponseCode.INVALID_PARAMETER
    assert "A" not in broker.topics


def test_topics_that_are_as_asked_already_do_not_stop_the_rest(call, broker):
    call(topic_list({"topicName": "A"}))
    call(topic_list({"topicName": "A"}, {"topicName": "B"}))
    assert broker.registration.told == ["A", "B"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"topicConfigList":[1]}', b"{"])
def test_a_list_that_cannot_be_read_is_refused(call, body):
    reply = call(Command(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body))
    assert reply.code == ResponseCode.SYSTEM_ERROR


def group_list(*names: str) -> Command:
    body = json.dumps({"groupConfigList": [{"groupName": name} for name in names]}).encode()
    return Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)


def test_a_list_of_groups_is_made(call, broker):
    assert call(group_list("g1", "g2")).code == ResponseCode.SUCCESS
    assert "g1" in broker.groups
    assert "g2" in broker.groups


def test_a_bad_group_in_a_list_keeps_the_others_from_being_made(call, broker):
    assert call(group_list("g1", "/etc")).code == ResponseCode.INVALID_PARAMETER
    assert "g1" not in broker.groups


def forbid(**fields: str) -> Command:
    ext_fields = {"group": "g", "topic": "T", **fields}
    return Command(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, ext_fields=ext_fields)


def test_reading_can_be_forbidden_and_allowed_again(call, broker):
    assert body_of(call(forbid()))["readable"] is True
    assert body_of(call(forbid(readable="false")))["readable"] is False
    assert broker.groups.snapshot.to_json()["forbiddenTable"] == {"g": {"T": 4}}
    assert body_of(call(forbid())) == {"group": "g", "readable": False, "topic": "T"}
    assert body_of(call(forbid(readable="true")))["readable"] is True
    assert broker.groups.snapshot.forbidden == {}


def test_cold_data_limits_are_kept_shown_and_removed(call):
    update = b"g1=1000\ng2=much\n"
    call(Command(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, body=update))
    info = body_of(call(Command(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)))
    assert info["configTable"] == {"g1": 1000}
    assert info["cgColdReadThreshold"] == 3 * 1024 * 1024
    call(Command(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, body=b"g1"))
    assert body_of(call(Command(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)))["configTable"] == {}


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("0", ResponseCode.SUCCESS),
        ("1", ResponseCode.SUCCESS),
        ("2", ResponseCode.INVALID_PARAMETER),
        ("x", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_read_ahead_modes_are_checked(call, mode, code):
    fields = {"READ_AHEAD_MODE": mode}
    assert call(Command(RequestCode.SET_COMMITLOG_READ_MODE, ext_fields=fields)).code == code


@pytest.mark.parametrize("code", [RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL])
def test_users_and_acls_are_refused_as_java_does_without_a_provider(call, code):
    reply = call(Command(code))
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == "An system error occurred, please try again later."


def test_epochs_are_for_controller_mode_only(call):
    reply = call(Command(RequestCode.GET_BROKER_EPOCH_CACHE))
    assert reply.remark == "this request only for controllerMode "


def test_system_topics_are_listed(call):
    topics = body_of(call(Command(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)))["topicList"]
    assert {"TBW102", "SELF_TEST_TOPIC", "broker-a", "DefaultCluster"} <= set(topics)


def test_statistics_that_do_not_exist_are_refused_by_name(call):
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}
    reply = call(Command(RequestCode.VIEW_BROKER_STATS_DATA, ext_fields=fields))
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert reply.remark == "The stats <TOPIC_PUT_NUMS> <T> not exist"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 40, "1.0 TiB")],
)
def test_bytes_are_shown_as_java_shows_them(count, text):
    assert human_bytes(count) == text


def test_runtime_is_shown_as_java_shows_it():
    elapsed_ms = ((2 * 24 + 3) * 3600 + 4 * 60 + 5) * 1000 + 999
    assert format_runtime(elapsed_ms) == "[ 2 days, 3 hours, 4 minutes, 5 seconds ]"
