"""UPDATE_AND_CREATE_STATIC_TOPIC, on the admin lane: topics whose queues are mapped by a tool.

The body is Java's TopicQueueMappingDetail, made by `mqadmin updateStaticTopic`.  The mapping is
checked before the topic is made, where Java makes the topic first and keeps it when it refuses.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.topic import CreateTopicHeader
from pyritemq.server.broker.processors.topics import (
    check_filter_type,
    check_topic,
)
from pyritemq.server.broker.remarks import REMARK_NOT_CLEARED
from pyritemq.server.broker.state.names import topic_fault
from pyritemq.server.broker.state.queue_mappings import MappingFault, QueueMapping
from pyritemq.server.broker.state.topics import TopicConfig
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker

logger = logging.getLogger(__name__)


@broker_handlers.handles(
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, CreateTopicHeader, lane=Lane.ADMIN
)
def update_and_create_static_topic(broker: Broker, request: Request[CreateTopicHeader]) -> Command:
    asked = request.header
    check_topic(broker, asked.topic, topic_fault(asked.topic))
    check_filter_type(asked.topic_filter_type)
    mapping = _decode_mapping(request.command.body)
    try:
        if mapping.topic != asked.topic:
            raise MappingFault(f"the mapping is of {mapping.topic[:100]}, not of {asked.topic}")
        mapping = broker.queue_mappings.merged(mapping, force=asked.force)
    except MappingFault as fault:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(fault)) from None
    wanted = TopicConfig(
        asked.topic,
        read_queue_nums=asked.read_queue_nums,
        write_queue_nums=asked.write_queue_nums,
        perm=asked.perm,
        topic_filter_type=asked.topic_filter_type,
        topic_sys_flag=asked.topic_sys_flag or 0,
    )
    broker.queue_mappings.put(mapping)
    broker.topics.update(wanted)
    broker.registration.settle()
    logger.info("static topic updated mapping=%s", mapping)
    return request.reply(remark=REMARK_NOT_CLEARED)


def _decode_mapping(body: bytes | memoryview) -> QueueMapping:
    try:
        return QueueMapping.from_json(fastjson.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the body cannot be read: {error}"
        ) from None
