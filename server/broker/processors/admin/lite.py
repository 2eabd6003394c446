"""Lite topics as tools ask for them: those that are declared, and that nobody subscribes to.

A topic of the type LITE and a group that is bound to it can be declared and are shown; messages of
lite topics are not delivered here, so there are no subscriptions, events or lags to tell of.  The
refusals are those of LiteManagerProcessor of 5.5.0.  Lane ADMIN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.lite import (
    GetLiteClientInfoHeader,
    GetLiteGroupInfoHeader,
    GetLiteTopicInfoHeader,
    GetParentTopicInfoHeader,
    TriggerLiteDispatchHeader,
)
from pyritemq.server.broker.state.attributes import MESSAGE_TYPE
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.broker.state.topics import TopicConfig

LITE = "LITE"
EXPIRATION = "lite.topic.expiration"
BOUND_TO = "lite.bind.topic"
NONE = -1
"""What Java says for a lag, a time or a count that it does not know."""


@broker_handlers.handles(RequestCode.GET_BROKER_LITE_INFO, None, lane=Lane.ADMIN)
def get_broker_lite_info(broker: Broker, request: Request[None]) -> Command:
    topics = broker.topics.snapshot.table
    body = {
        "cqTableSize": len(broker.store.topics()),
        "currentLmqNum": 0,
        "eventMapSize": 0,
        "groupMeta": _bound_groups(broker),
        "liteSubscriptionCount": 0,
        "maxLmqNum": broker.config.max_lmq_consume_queue_num,
        "offsetTableSize": len(broker.offsets.snapshot().offsets),
        "orderInfoCount": 0,
        "storeType": broker.config.store_type,
        "topicMeta": {name: _expiration(topic) for name, topic in topics.items() if _lite(topic)},
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(
    RequestCode.GET_PARENT_TOPIC_INFO, GetParentTopicInfoHeader, lane=Lane.ADMIN
)
def get_parent_topic_info(broker: Broker, request: Request[GetParentTopicInfoHeader]) -> Command:
    topic = _parent(broker, request.header.topic)
    body = {
        "groups": _bound_groups(broker).get(topic.topic_name),
        "liteTopicCount": 0,
        "lmqNum": 0,
        "topic": topic.topic_name,
        "ttl": _expiration(topic),
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(RequestCode.GET_LITE_TOPIC_INFO, GetLiteTopicInfoHeader, lane=Lane.ADMIN)
def get_lite_topic_info(broker: Broker, request: Request[GetLiteTopicInfoHeader]) -> Command:
    topic = _parent(broker, request.header.parent_topic)
    body: dict[str, Any] = {
        "liteTopic": request.header.lite_topic,
        "parentTopic": topic.topic_name,
        # A broker alone in its cluster has all of the shards.
        "shardingToBroker": True,
        "subscriber": [],
        "topicOffset": {"lastUpdateTimestamp": 0, "maxOffset": 0, "minOffset": 0},
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(RequestCode.GET_LITE_CLIENT_INFO, GetLiteClientInfoHeader, lane=Lane.ADMIN)
def get_lite_client_info(broker: Broker, request: Request[GetLiteClientInfoHeader]) -> Command:
    asked = request.header
    topic = _parent(broker, asked.parent_topic)
    group = _group(broker, asked.group)
    if group.attributes.get(BOUND_TO) != topic.topic_name:
        raise RequestRefused(
            ResponseCode.INVALID_PARAMETER,
            f"Subscription [{asked.group}]-[{asked.parent_topic}] not match.",
        )
    body = {
        "clientId": asked.client_id,
        "group": asked.group,
        "lastAccessTime": NONE,
        "lastConsumeTime": 0,
        "liteTopicCount": NONE,
        "parentTopic": topic.topic_name,
    }
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(RequestCode.GET_LITE_GROUP_INFO, GetLiteGroupInfoHeader, lane=Lane.ADMIN)
def get_lite_group_info(broker: Broker, request: Request[GetLiteGroupInfoHeader]) -> Command:
    group = _lite_group(broker, request.header.group)
    body = {
        "earliestUnconsumedTimestamp": NONE,
        "group": group.group_name,
        "liteTopic": request.header.lite_topic,
        "parentTopic": group.attributes[BOUND_TO],
        "totalLagCount": NONE,
    }
    if not request.header.lite_topic:
        body |= {"lagCountTopK": [], "lagTimestampTopK": [], "totalLagCount": 0}
    return request.reply(body=fastjson.dumps(body))


@broker_handlers.handles(
    RequestCode.TRIGGER_LITE_DISPATCH, TriggerLiteDispatchHeader, lane=Lane.ADMIN
)
def trigger_lite_dispatch(broker: Broker, request: Request[TriggerLiteDispatchHeader]) -> Command:
    _lite_group(broker, request.header.group)
    return request.reply()


def _lite(topic: TopicConfig) -> bool:
    return topic.attributes.get(MESSAGE_TYPE) == LITE


def _expiration(topic: TopicConfig) -> int:
    return int(topic.attributes.get(EXPIRATION, NONE))


def _bound_groups(broker: Broker) -> dict[str, list[str]]:
    """Groups by the lite topic that they are bound to."""
    bound: dict[str, list[str]] = {}
    for name, group in broker.groups.snapshot.table.items():
        if topic := group.attributes.get(BOUND_TO):
            bound.setdefault(topic, []).append(name)
    return bound


def _parent(broker: Broker, name: str | None) -> TopicConfig:
    topic = None if name is None else broker.topics.get(name)
    if topic is None:
        raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"Topic [{name}] not exist.")
    if not _lite(topic):
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, f"Topic [{name}] type not match.")
    return topic


def _group(broker: Broker, name: str | None) -> SubscriptionGroupConfig:
    group = None if name is None else broker.groups.find(name)
    if group is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group [{name}] not exist."
        )
    return group


def _lite_group(broker: Broker, name: str) -> SubscriptionGroupConfig:
    group = _group(broker, name)
    if not group.attributes.get(BOUND_TO):
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, f"Group [{name}] is not a LITE group.")
    return group
