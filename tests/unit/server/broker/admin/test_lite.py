"""What tools are told of lite topics: what is declared, and Java's refusals."""

from __future__ import annotations

import json

import pytest

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
from pyritemq.server.broker.state.topics import TopicConfig


@pytest.fixture
def lite(call, broker):
    """A lite topic P with a group bound to it, a plain topic T and a plain group G."""
    attributes = {"+message.type": "LITE", "+lite.topic.expiration": "60"}
    broker.topics.update(TopicConfig("P", attributes=attributes))
    broker.topics.update(TopicConfig("T"))
    bound = {"groupName": "B", "attributes": {"+lite.bind.topic": "P"}}
    broker.groups.update(SubscriptionGroupConfig.from_json(bound))
    broker.groups.update(SubscriptionGroupConfig.from_json({"groupName": "G"}))

    broker.store.topics = lambda: {"P", "T"}

    def ask(code, **fields):
        return call(Command(code, ext_fields=fields))

    return ask


def test_declared_lite_topics_and_their_groups_are_shown(lite):
    shown = fastjson.loads(lite(RequestCode.GET_BROKER_LITE_INFO).body)
    assert shown["topicMeta"] == {"P": 60}
    assert shown["groupMeta"] == {"P": ["B"]}
    assert (shown["maxLmqNum"], shown["cqTableSize"]) == (20000, 2)
    parent = fastjson.loads(lite(RequestCode.GET_PARENT_TOPIC_INFO, topic="P").body)
    assert (parent["ttl"], parent["groups"], parent["liteTopicCount"]) == (60, ["B"], 0)


def test_a_lite_topic_without_messages_and_subscribers_is_shown_empty(lite):
    fields = {"parentTopic": "P", "liteTopic": "one"}
    topic = fastjson.loads(lite(RequestCode.GET_LITE_TOPIC_INFO, **fields).body)
    assert (topic["subscriber"], topic["topicOffset"]["maxOffset"]) == ([], 0)
    fields = {"parentTopic": "P", "group": "B", "clientId": "c"}
    client = fastjson.loads(lite(RequestCode.GET_LITE_CLIENT_INFO, **fields).body)
    assert client["liteTopicCount"] == -1
    group = json.loads(lite(RequestCode.GET_LITE_GROUP_INFO, group="B", topK="3").body)
    assert (group["lagCountTopK"], group["totalLagCount"]) == ([], 0)
    assert lite(RequestCode.TRIGGER_LITE_DISPATCH, group="B").code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("code", "fields", "remark"),
    [
        (RequestCode.GET_PARENT_TOPIC_INFO, {"topic": "X"}, "Topic [X] not exist."),
        (RequestCode.GET_PARENT_TOPIC_INFO, {"topic": "T"}, "Topic [T] type not match."),
        (RequestCode.GET_LITE_TOPIC_INFO, {"parentTopic": "T"}, "Topic [T] type not match."),
        (RequestCode.GET_LITE_TOPIC_INFO, {}, "Topic [None] not exist."),
        (
            RequestCode.GET_LITE_CLIENT_INFO,
            {"parentTopic": "P", "group": "G"},
            "Subscription [G]-[P] not match.",
        ),
        (
            RequestCode.GET_LITE_CLIENT_INFO,
            {"parentTopic": "P", "group": "../N"},
            "Group [../N] not exist.",
        ),
        (RequestCode.GET_LITE_GROUP_INFO, {"group": "G"}, "Group [G] is not a LITE group."),
        (RequestCode.TRIGGER_LITE_DISPATCH, {"group": "G"}, "Group [G] is not a LITE group."),
    ],
)
def test_what_is_not_lite_is_refused_in_javas_words(lite, code, fields, remark):
    assert lite(code, **fields).remark == remark


@pytest.mark.parametrize(
    "code", [RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, RequestCode.NOTIFY_BROKER_ROLE_CHANGED]
)
def test_a_master_alone_agrees_with_notices_about_its_group(lite, code):
    assert lite(code).code == ResponseCode.SUCCESS
