"""Consumer offsets (on the consumer lane) and queue bounds (on the admin lane).

Replies and remarks are those of ConsumerManageProcessor and AdminBrokerProcessor of 5.5.0 for
topics without logical queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.fields import Header
from pyritemq.protocol.headers.offset import (
    GetEarliestMsgStoretimeHeader,
    GetEarliestMsgStoretimeReplyHeader,
    GetMaxOffsetHeader,
    GetMaxOffsetReplyHeader,
    GetMinOffsetHeader,
    GetMinOffsetReplyHeader,
    QueryConsumerOffsetHeader,
    QueryConsumerOffsetReplyHeader,
    SearchOffsetHeader,
    SearchOffsetReplyHeader,
    UpdateConsumerOffsetHeader,
)
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import GetStatus

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.registry import Request

NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
NOT_FOUND_NOR_ZERO = "Not found, do not set to zero, maybe this group boot first"


@broker_handlers.handles(
    RequestCode.QUERY_CONSUMER_OFFSET, QueryConsumerOffsetHeader, lane=Lane.CONSUMER
)
def query_consumer_offset(broker: Broker, request: Request[QueryConsumerOffsetHeader]) -> Command:
    asked = request.header
    offset = broker.offsets.query(asked.consumer_group, asked.topic, asked.queue_id)
    if offset < 0:
        if asked.set_zero_if_not_found is False:
            raise RequestRefused(ResponseCode.QUERY_NOT_FOUND, NOT_FOUND_NOR_ZERO, Header())
        if not _starts_in_memory(broker, asked.topic, asked.queue_id):
            raise RequestRefused(ResponseCode.QUERY_NOT_FOUND, NOT_FOUND, Header())
        offset = 0
    return request.reply(header=QueryConsumerOffsetReplyHeader(offset=offset))


def _starts_in_memory(broker: Broker, topic: str, queue_id: int) -> bool:
    """Whether the queue still has its first message, and that message is recent.

    A group that is new to such a queue starts at 0 whatever it asked for; otherwise the client
    decides (consumeFromWhere).  Java asks the kernel whether the page is resident; here, as in Java
    4, a record counts as in memory if it lies within 40% of the RAM's size from the log's end.
    """
    if broker.store.min_offset(topic, queue_id) > 0:
        return False
    first = broker.store.get(topic, queue_id, 0, count_max=1)
    return first.status is GetStatus.FOUND and not first.suggest_pulling_from_slave


@broker_handlers.handles(
    RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetHeader, lane=Lane.CONSUMER
)
def update_consumer_offset(broker: Broker, request: Request[UpdateConsumerOffsetHeader]) -> Command:
    asked = request.header
    group, topic, queue_id = asked.consumer_group, asked.topic, asked.queue_id
    if group not in broker.groups:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!", Header()
        )
    if topic not in broker.topics:
        raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!", Header())
    if broker.offsets.has_reset(group, topic, queue_id):
        return request.reply(remark="Offset has been previously reset", header=Header())
    broker.offsets.commit(
        group, topic, queue_id, asked.commit_offset, peer=request.channel.remote_address
    )
    return request.reply(header=Header())


@broker_handlers.handles(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader, lane=Lane.ADMIN)
def get_max_offset(broker: Broker, request: Request[GetMaxOffsetHeader]) -> Command:
    # `committed` makes a difference only to Java's replicated logs; its broker does not read it.
    offset = broker.store.max_offset(request.header.topic, request.header.queue_id)
    return request.reply(header=GetMaxOffsetReplyHeader(offset=offset))


@broker_handlers.handles(RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader, lane=Lane.ADMIN)
def get_min_offset(broker: Broker, request: Request[GetMinOffsetHeader]) -> Command:
    offset = broker.store.min_offset(request.header.topic, request.header.queue_id)
    # Java makes this one reply through its RPC classes, which set an empty remark.
    return request.reply(remark="", header=GetMinOffsetReplyHeader(offset=offset))


@broker_handlers.handles(
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetHeader, lane=Lane.ADMIN
)
def search_offset_by_timestamp(broker: Broker, request: Request[SearchOffsetHeader]) -> Command:
    asked = request.header
    offset = broker.store.offset_by_time(
        asked.topic, asked.queue_id, asked.timestamp, asked.boundary_type.value
    )
    return request.reply(header=SearchOffsetReplyHeader(offset=offset))


@broker_handlers.handles(
    RequestCode.GET_EARLIEST_MSG_STORETIME, GetEarliestMsgStoretimeHeader, lane=Lane.ADMIN
)
def get_earliest_msg_storetime(
    broker: Broker, request: Request[GetEarliestMsgStoretimeHeader]
) -> Command:
    asked = request.header
    timestamp = broker.store.earliest_store_time(asked.topic, asked.queue_id)
    return request.reply(header=GetEarliestMsgStoretimeReplyHeader(timestamp=timestamp))
