"""Offsets of all groups at once, and moving a group to another place.  Lane ADMIN."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyritemq.compat import fastjson
from pyritemq.compat.versions import version_name, version_ordinal
from pyritemq.protocol.codes import LanguageCode, RequestCode, ResponseCode
from pyritemq.protocol.command import FLAG_ONEWAY, Command
from pyritemq.protocol.headers.admin import (
    CloneGroupOffsetHeader,
    QueryCorrectionOffsetHeader,
    ResetOffsetHeader,
)
from pyritemq.server.broker.delays.offsets import encode_snapshot as encode_delays
from pyritemq.server.broker.processors.admin.stats import queue_key
from pyritemq.server.broker.state.offsets import encode_snapshot
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers

if TYPE_CHECKING:
    from pyritemq.server.broker.broker import Broker

logger = logging.getLogger(__name__)

V3_0_7_SNAPSHOT = version_ordinal("V3_0_7_SNAPSHOT")
LONG_MAX = 0x7FFFFFFFFFFFFFFF
TO_THE_END = -1
NOT_GIVEN = -1


@broker_handlers.handles(RequestCode.GET_ALL_CONSUMER_OFFSET, None, lane=Lane.ADMIN)
def get_all_consumer_offset(broker: Broker, request: Request[None]) -> Command:
    return request.reply(body=encode_snapshot(broker.offsets.snapshot()))


@broker_handlers.handles(RequestCode.GET_ALL_DELAY_OFFSET, None, lane=Lane.ADMIN)
def get_all_delay_offset(broker: Broker, request: Request[None]) -> Command:
    return request.reply(body=encode_delays(broker.delays.offsets.snapshot()))


@broker_handlers.handles(
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ResetOffsetHeader, lane=Lane.ADMIN
)
def invoke_broker_to_reset_offset(broker: Broker, request: Request[ResetOffsetHeader]) -> Command:
    """Move a group: by ourselves (useServerSideResetOffset), else through its clients."""
    asked = request.header
    logger.info(
        "offset reset asked topic=%s group=%s timestamp=%d queue=%d force=%s peer=%s",
        asked.topic,
        asked.group,
        asked.timestamp,
        asked.queue_id,
        asked.force,
        request.channel.remote_address,
    )
    if broker.config.use_server_side_reset_offset:
        return _reset_here(broker, request)
    return _reset_through_clients(broker, request)


def _reset_here(broker: Broker, request: Request[ResetOffsetHeader]) -> Command:
    asked = request.header
    topic = broker.topics.get(asked.topic)
    if topic is None:
        raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {asked.topic} does not exist")
    if asked.group not in broker.groups:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {asked.group} does not exist"
        )
    if asked.queue_id >= 0:
        targets = {asked.queue_id: _target(broker, asked)}
    else:
        targets = {
            queue_id: _offset_at(broker, asked.topic, queue_id, asked.timestamp)
            for queue_id in range(topic.read_queue_nums)
        }
    if not targets:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    for queue_id, offset in targets.items():
        broker.offsets.assign_reset(asked.group, asked.topic, queue_id, offset)
    return request.reply(body=_offset_table(broker, asked.topic, targets))


def _target(broker: Broker, asked: ResetOffsetHeader) -> int:
    if asked.offset is None or asked.offset == NOT_GIVEN:
        return _offset_at(broker, asked.topic, asked.queue_id, asked.timestamp)
    first = broker.store.min_offset(asked.topic, asked.queue_id)
    end = broker.store.max_offset(asked.topic, asked.queue_id)
    if (first >= 0 and asked.offset < first) or asked.offset > end + 1:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"Target offset {asked.offset} not in consume queue range [{first}-{end}]",
        )
    return asked.offset


def _offset_at(broker: Broker, topic: str, queue_id: int, timestamp: int) -> int:
    """The offset of a time; any time before 1970 means the end."""
    if timestamp < 0:
        return broker.store.max_offset(topic, queue_id)
    return broker.store.offset_by_time(topic, queue_id, timestamp, "LOWER")


def _reset_through_clients(broker: Broker, request: Request[ResetOffsetHeader]) -> Command:
    """Java's way before 5.1: each consumer of the group is told where to go on."""
    asked = request.header
    topic = broker.topics.get(asked.topic)
    if topic is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST,
            f"[reset-offset] reset offset failed, no topic in this broker. topic={asked.topic}",
        )
    targets = {
        queue_id: _client_target(broker, asked, queue_id)
        for queue_id in range(topic.write_queue_nums)
    }
    for_c = request.command.language == LanguageCode.CPP
    _tell_clients(broker, asked, targets, for_c=for_c)
    return request.reply(body=_offset_table(broker, asked.topic, targets))


def _client_target(broker: Broker, asked: ResetOffsetHeader, queue_id: int) -> int:
    committed = broker.offsets.query(asked.group, asked.topic, queue_id)
    if committed == NOT_GIVEN:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"THe consumer group <{asked.group}> not exist"
        )
    if asked.timestamp == TO_THE_END:
        wanted = broker.store.max_offset(asked.topic, queue_id)
    else:
        wanted = broker.store.offset_by_time(asked.topic, queue_id, asked.timestamp, "LOWER")
    wanted = max(0, wanted)
    return wanted if asked.force or wanted < committed else committed


def _tell_clients(
    broker: Broker, asked: ResetOffsetHeader, targets: dict[int, int], *, for_c: bool
) -> None:
    group = broker.consumers.get(asked.group)
    if group is None:
        raise RequestRefused(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {asked.group} "
            f"Topic: {asked.topic} Timestamp: {asked.timestamp}",
        )
    encode = _offset_list if for_c else _offset_table
    body = encode(broker, asked.topic, targets)
    header = ResetOffsetHeader(
        group=asked.group, topic=asked.topic, timestamp=asked.timestamp, force=False
    )
    for client in group.clients.values():
        if client.version < V3_0_7_SNAPSHOT:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"the client does not support this feature. version={version_name(client.version)}",
            )
        client.channel.post(
            Command(
                RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
                flag=FLAG_ONEWAY,
                ext_fields=header.encode(),
                body=body,
            )
        )


def _offset_table(broker: Broker, topic: str, offsets: dict[int, int]) -> bytes:
    """Java's ResetOffsetBody."""
    table = {queue_key(broker, topic, queue_id): offset for queue_id, offset in offsets.items()}
    return fastjson.dumps({"offsetTable": table})


def _offset_list(broker: Broker, topic: str, offsets: dict[int, int]) -> bytes:
    """The same for C++ clients, whose JSON reader takes no objects as keys."""
    rows = [
        {
            "brokerName": broker.config.broker_name,
            "offset": offset,
            "queueId": queue_id,
            "topic": topic,
        }
        for queue_id, offset in offsets.items()
    ]
    return fastjson.dumps({"offsetTable": rows})


@broker_handlers.handles(RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetHeader, lane=Lane.ADMIN)
def clone_group_offset(broker: Broker, request: Request[CloneGroupOffsetHeader]) -> Command:
    """Let one group go on where another is; without a topic, in all topics of the other.

    Java clones nothing without a topic: it asks for the topics and then passes the empty name on.
    """
    asked = request.header
    given = asked.topic is not None and asked.topic.strip()
    topics = [asked.topic] if given else sorted(broker.offsets.topics_of_group(asked.src_group))
    online = broker.consumers.get(asked.src_group)
    subscribed = None if asked.offline or online is None else online.subscriptions
    for topic in topics:
        if topic is None or topic not in broker.topics or (subscribed and topic not in subscribed):
            continue
        broker.offsets.copy_group(source=asked.src_group, target=asked.dest_group, topic=topic)
    return request.reply()


@broker_handlers.handles(
    RequestCode.QUERY_CORRECTION_OFFSET, QueryCorrectionOffsetHeader, lane=Lane.ADMIN
)
def query_correction_offset(
    broker: Broker, request: Request[QueryCorrectionOffsetHeader]
) -> Command:
    """The least offset of all groups but the named ones, by queue.

    Java's broker also forgets all offsets of the named groups while it looks; this one only looks.
    """
    asked = request.header
    least = _least_offsets(broker, asked.topic, set((asked.filter_groups or "").split(",")))
    for queue_id, offset in broker.offsets.query_all(asked.compare_group, asked.topic).items():
        if least.get(queue_id, LONG_MAX) > offset:
            least[queue_id] = LONG_MAX
    return request.reply(body=fastjson.dumps({"correctionOffsets": least}))


def _least_offsets(broker: Broker, topic: str, left_out: set[str]) -> dict[int, int]:
    least: dict[int, int] = {}
    for group in broker.offsets.groups_of_topic(topic) - left_out:
        for queue_id, offset in broker.offsets.query_all(group, topic).items():
            if offset >= broker.store.min_offset(topic, queue_id):
                least[queue_id] = min(offset, least.get(queue_id, LONG_MAX))
    return least
