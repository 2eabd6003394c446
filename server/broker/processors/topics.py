"""Topics and subscription groups as tools see them, on the admin lane.

Replies and remarks are those of AdminBrokerProcessor of 5.5.0, down to the remark of a success that
Java forgot to clear.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.admin import (
    DeleteSubscriptionGroupHeader,
    GetAllSubscriptionGroupHeader,
    GetAllSubscriptionGroupReplyHeader,
    GetAllTopicConfigHeader,
    GetAllTopicConfigReplyHeader,
    GetSubscriptionGroupConfigHeader,
)
from pyritemq.protocol.headers.topic import (
    CreateTopicHeader,
    DeleteTopicHeader,
    GetTopicConfigHeader,
)
from pyritemq.server.broker.remarks import REMARK_NOT_CLEARED
from pyritemq.server.broker.state.attributes import (
    MESSAGE_TYPE,
    MIXED,
    AttributeFault,
    parse_alterations,
)
from pyritemq.server.broker.state.events import GROUP_CREATE_TIME, TOPIC_CREATE_TIME
from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
from pyritemq.server.broker.state.names import (
    RETRY_TOPIC_PREFIX,
    group_fault,
    system_topic_conflict,
    topic_fault,
)
from pyritemq.server.broker.state.topics import TopicConfig
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.registry import Request

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOPIC_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


@broker_handlers.handles(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader, lane=Lane.ADMIN)
def update_and_create_topic(broker: Broker, request: Request[CreateTopicHeader]) -> Command:
    is_system = str(broker.topics.is_system_topic(request.header.topic)).lower()
    with broker.events.timed(TOPIC_CREATE_TIME, is_system=is_system):
        return _update_topic(broker, request)


def _update_topic(broker: Broker, request: Request[CreateTopicHeader]) -> Command:
    asked = request.header
    check_topic(broker, asked.topic, topic_fault(asked.topic))
    check_filter_type(asked.topic_filter_type)
    wanted = TopicConfig(
        asked.topic,
        read_queue_nums=asked.read_queue_nums,
        write_queue_nums=asked.write_queue_nums,
        perm=asked.perm,
        topic_filter_type=asked.topic_filter_type,
        topic_sys_flag=asked.topic_sys_flag or 0,
        order=asked.order,
        attributes=_alterations(broker, asked.attributes),
    )
    if wanted != broker.topics.get(asked.topic):
        try:
            broker.topics.update(wanted)
        except AttributeFault as fault:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(fault)) from None
        broker.registration.settle()
    return request.reply(remark=REMARK_NOT_CLEARED)


@broker_handlers.handles(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, None, lane=Lane.ADMIN)
def update_and_create_topic_list(broker: Broker, request: Request[None]) -> Command:
    """Topics of a body; all are looked at before the first is made.

    Java leaves the whole list undone once it meets a topic that is as it should be already; here
    only that topic is passed over.
    """
    wanted = _decode_topics(request.command.body)
    for topic in wanted:
        check_topic(broker, topic.topic_name, topic_fault(topic.topic_name))
        _check_message_type(broker, topic.attributes)
    new = [topic for topic in wanted if topic != broker.topics.get(topic.topic_name)]
    for topic in new:
        try:
            broker.topics.update(topic)
        except AttributeFault as fault:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(fault)) from None
    if new:
        broker.registration.settle()
    return request.reply(remark=REMARK_NOT_CLEARED)


def _decode_topics(body: bytes | memoryview) -> list[TopicConfig]:
    try:
        items = fastjson.loads(body).get("topicConfigList") or []
        return [TopicConfig.from_json(item) for item in items]
    except (ValueError, TypeError, AttributeError) as error:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}"
        ) from None


def _alterations(broker: Broker, text: str | None) -> dict[str, str]:
    try:
        alterations = parse_alterations(text)
    except AttributeFault as fault:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(fault)) from None
    _check_message_type(broker, alterations)
    return alterations


def _check_message_type(broker: Broker, alterations: Mapping[str, str]) -> None:
    if not broker.config.enable_mixed_message_type and alterations.get("+" + MESSAGE_TYPE) == MIXED:
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")


def check_filter_type(filter_type: str) -> None:
    """Raises RequestRefused in Java's words."""
    if filter_type not in TOPIC_FILTER_TYPES:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"topicFilterType = [{filter_type}] value invalid"
        )


def check_topic(broker: Broker, topic: str, fault: str | None) -> None:
    if fault is not None:
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, fault)
    if broker.config.validate_system_topic_when_update_topic and broker.topics.is_system_topic(
        topic
    ):
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, system_topic_conflict(topic))


@broker_handlers.handles(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader, lane=Lane.ADMIN)
def delete_topic_in_broker(broker: Broker, request: Request[DeleteTopicHeader]) -> Command:
    """Forget a topic, its queues, and how far groups have come in it."""
    topic = request.header.topic
    check_topic(broker, topic, None if topic.strip() else topic_fault(topic))
    logger.info("topic deletion asked topic=%s peer=%s", topic, request.channel.remote_address)
    names = [topic, *_pop_retry_topics(broker, topic)]
    for name in names:
        broker.topics.delete(name)
        broker.queue_mappings.delete(name)
        broker.offsets.remove_topic(name)
        broker.stats.forget_topic(name)
    broker.store.delete_topics(names)
    return request.reply()


def _pop_retry_topics(broker: Broker, topic: str) -> Iterator[str]:
    """Retry topics that POP consumption made for one topic of a group, in both its spellings."""
    if broker.config.clear_retry_topic_when_delete_topic:
        for group in broker.offsets.groups_of_topic(topic):
            for separator in "+_":
                name = f"{RETRY_TOPIC_PREFIX}{group}{separator}{topic}"
                if name in broker.topics:
                    yield name


@broker_handlers.handles(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigHeader, lane=Lane.ADMIN)
def get_topic_config(broker: Broker, request: Request[GetTopicConfigHeader]) -> Command:
    topic = broker.topics.get(request.header.topic)
    if topic is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic in this broker. topic: {request.header.topic}",
        )
    mapping = broker.queue_mappings.get(topic.topic_name)
    detail = {} if mapping is None else {"mappingDetail": mapping.to_json()}
    return request.reply(body=fastjson.dumps(topic.to_json() | detail))


@broker_handlers.handles(RequestCode.GET_ALL_TOPIC_CONFIG, GetAllTopicConfigHeader, lane=Lane.ADMIN)
def get_all_topic_config(broker: Broker, request: Request[GetAllTopicConfigHeader]) -> Command:
    asked = request.header
    snapshot = broker.topics.snapshot
    mappings = broker.queue_mappings.snapshot
    table = _page(
        broker,
        snapshot.table,
        snapshot.data_version,
        (asked.data_version, asked.topic_seq, asked.max_topic_num),
    )
    body = {
        "dataVersion": snapshot.data_version.to_json(),
        "mappingDataVersion": mappings.data_version.to_json(),
        "topicConfigTable": {name: topic.to_json() for name, topic in table.items()},
        "topicQueueMappingDetailMap": {
            name: mapping.to_json() for name, mapping in mappings.table.items() if name in table
        },
        "topicQueueMappingInfoMap": {},
    }
    reply = GetAllTopicConfigReplyHeader(total_topic_num=len(snapshot.table))
    return request.reply(header=reply, body=fastjson.dumps(body))


@broker_handlers.handles(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, lane=Lane.ADMIN)
def update_and_create_subscription_group(broker: Broker, request: Request[None]) -> Command:
    with broker.events.timed(GROUP_CREATE_TIME):
        return _update_group(broker, request)


def _update_group(broker: Broker, request: Request[None]) -> Command:
    if request.command.body:
        wanted = _decode_group(request.command.body)
        fault = group_fault(wanted.group_name)
        if fault is not None:
            raise RequestRefused(ResponseCode.INVALID_PARAMETER, fault)
        try:
            broker.groups.update(wanted)
        except AttributeFault as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return request.reply()


def _decode_group(body: bytes | memoryview) -> SubscriptionGroupConfig:
    try:
        return SubscriptionGroupConfig.from_json(fastjson.loads(body))
    except ValueError as error:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}"
        ) from None


@broker_handlers.handles(
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GetSubscriptionGroupConfigHeader, lane=Lane.ADMIN
)
def get_subscription_group_config(
    broker: Broker, request: Request[GetSubscriptionGroupConfigHeader]
) -> Command:
    group = broker.groups.find(request.header.group)
    if group is None:
        raise RequestRefused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
    return request.reply(body=fastjson.dumps(group.to_json()))


@broker_handlers.handles(
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GetAllSubscriptionGroupHeader, lane=Lane.ADMIN
)
def get_all_subscription_group(
    broker: Broker, request: Request[GetAllSubscriptionGroupHeader]
) -> Command:
    asked = request.header
    snapshot = broker.groups.snapshot
    table = _page(
        broker,
        snapshot.table,
        snapshot.data_version,
        (asked.data_version, asked.group_seq, asked.max_group_num),
    )
    body = snapshot._replace(
        table=table,
        forbidden={name: bits for name, bits in snapshot.forbidden.items() if name in table},
    ).to_json()
    reply = GetAllSubscriptionGroupReplyHeader(total_group_num=len(snapshot.table))
    return request.reply(header=reply, body=fastjson.dumps(body))


@broker_handlers.handles(
    RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteSubscriptionGroupHeader, lane=Lane.ADMIN
)
def delete_subscription_group(
    broker: Broker, request: Request[DeleteSubscriptionGroupHeader]
) -> Command:
    name = request.header.group_name
    logger.info("group deletion asked group=%s peer=%s", name, request.channel.remote_address)
    broker.groups.delete(name)
    if request.header.clean_offset:
        broker.offsets.remove_group(name)
    broker.stats.forget_group(name)
    return request.reply()


def _page(
    broker: Broker,
    table: Mapping[str, T],
    version: DataVersion,
    asked: tuple[str | None, int | None, int | None],
) -> Mapping[str, T]:
    """A whole table, or for callers that ask so (5.4 on) a portion of it in the names' order.

    A caller that goes on with another version than ours starts again at the beginning.
    """
    known_version, start, count = asked
    if not broker.config.enable_split_metadata or asked == (None, None, None):
        return table
    start = start or 0
    if start and not _is_version(known_version, version):
        start = 0
    size = broker.config.split_metadata_size
    names = sorted(table)[start : start + (size if count is None else min(size, count))]
    return {name: table[name] for name in names}


def _is_version(text: str | None, version: DataVersion) -> bool:
    try:
        return bool(text) and DataVersion.decode((text or "").encode()) == version
    except ValueError:
        return False
