"""CONSUMER_SEND_MSG_BACK, on the send lane: a message comes back to be consumed again later.

The consumer names a message by its place in the CommitLog.  The broker copies it for the group's
retry topic, with a delay that grows with each attempt, or for its dead-letter topic when there were
enough; the copy keeps the first topic (RETRY_TOPIC) and the first id (ORIGIN_MESSAGE_ID).  All that
come back in one drain are one append.  Codes and remarks are those of Java's consumerSendMsgBack.
"""

from __future__ import annotations

import random
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from pyritemq.compat.java_hash import tags_code
from pyritemq.compat.message_id import make_message_id
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.headers.send_back import ConsumerSendMsgBackHeader
from pyritemq.protocol.record import decode_properties, decode_record, encode_properties
from pyritemq.server.broker.arrivals import announce
from pyritemq.server.broker.delays.rewriting import DELAY, TAGS, delay
from pyritemq.server.broker.message_properties import property_of
from pyritemq.server.broker.processors.retries import (
    count_buried,
    group_of,
    open_dlq,
    reconsume_times_max,
)
from pyritemq.server.broker.processors.send_checks import refuse_late
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.stats import SNDBCK_PUT_NUMS, Own
from pyritemq.server.broker.state.topics import FLAG_UNIT_SUB
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import STORED, MessageToStore

if TYPE_CHECKING:
    from pyritemq.protocol.record import Record
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request

RETRY_TOPIC = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
WAIT_STORE = "WAIT"
_RETRY_TOPIC = b"RETRY_TOPIC\x01"

FIRST_RETRY_LEVEL = 3
"""The first attempt waits 10 s of the default levels, each further one a level more."""


@broker_handlers.handles_batch(RequestCode.CONSUMER_SEND_MSG_BACK, lane=Lane.SEND)
def take_back(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    accepted: list[Request[Any]] = []
    messages: list[MessageToStore] = []
    for request in refuse_late(broker, requests, outbox):
        try:
            message = _accept(broker, request)
        except Exception as error:  # noqa: BLE001 - one bad request must not fail its neighbours
            outbox.add_reply(request, reply_to_failure(request, error))
            continue
        if message is None:
            outbox.add_reply(request, request.reply())
        else:
            accepted.append(request)
            messages.append(message)
    _put(broker, accepted, messages, outbox)


def _put(
    broker: Broker, requests: list[Request[Any]], messages: list[MessageToStore], outbox: Outbox
) -> None:
    broker.put_began_ns = started_ns = monotonic_ns()
    try:
        results = broker.store.put_batch(messages)
    finally:
        broker.put_began_ns = 0
    own = [Own(0, len(messages))]
    broker.stats.count_puts(messages, results, monotonic_ns() - started_ns, own)
    for request, message, result in zip(requests, messages, results, strict=True):
        if result.status in STORED:
            origin = property_of(message.properties, _RETRY_TOPIC)
            broker.stats.add(SNDBCK_PUT_NUMS, f"{origin}@{request.header.group}")
            outbox.add_reply(request, request.reply())
        else:
            reply = request.reply(ResponseCode.SYSTEM_ERROR, result.status.name)
            outbox.add_reply(request, reply)
    announce(broker, messages, results)


def _accept(broker: Broker, request: Request[Any]) -> MessageToStore | None:
    """What to store; None if the group has no retry queues.  Raises RequestRefused."""
    request.header = header = ConsumerSendMsgBackHeader.decode(request.command.ext_fields)
    group = group_of(broker, header.group)
    if not broker.config.broker_permission & broker.WRITE:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION,
            f"the broker[{broker.config.broker_ip1}] sending message is forbidden",
        )
    if group.retry_queue_nums <= 0:
        return None
    retry_topic = _open_retry_topic(broker, header, group)
    record = _record_at(broker, header.offset)
    times_max = reconsume_times_max(request, group, header.max_reconsume_times)
    if record.reconsume_times >= times_max or header.delay_level < 0:
        count_buried(broker, header.origin_topic or record.topic, header.group)
        return _copy(broker, record, open_dlq(broker, header.group), 0, delay_level=0)
    level = header.delay_level or FIRST_RETRY_LEVEL + record.reconsume_times
    queue_id = random.randrange(group.retry_queue_nums)  # noqa: S311 - spreads load only
    message = _copy(broker, record, retry_topic, queue_id, delay_level=level)
    delay(message, level_max=broker.delays.level_max)
    return message


def _open_retry_topic(
    broker: Broker, header: ConsumerSendMsgBackHeader, group: SubscriptionGroupConfig
) -> str:
    """The group's retry topic, made if it is not there."""
    topic = broker.topics.create_on_send_back(
        names.retry_topic(header.group),
        queue_nums=group.retry_queue_nums,
        topic_sys_flag=FLAG_UNIT_SUB if header.unit_mode else 0,
    )
    if not topic.perm & broker.WRITE:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic.topic_name}] sending message is forbidden",
        )
    return topic.topic_name


def _record_at(broker: Broker, phy_offset: int) -> Record:
    found = broker.store.record_at(phy_offset)
    try:
        if found is not None:
            return decode_record(found)
    except RecordError:
        pass
    raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {phy_offset}")


def _copy(
    broker: Broker, record: Record, topic: str, queue_id: int, *, delay_level: int
) -> MessageToStore:
    """The record for another topic, one attempt later."""
    properties = decode_properties(record.properties)
    properties.setdefault(RETRY_TOPIC, record.topic)
    properties[WAIT_STORE] = "false"
    properties[DELAY] = str(delay_level)
    if not properties.get(ORIGIN_MESSAGE_ID, "").strip():
        properties[ORIGIN_MESSAGE_ID] = make_message_id(record.store_host, record.phy_offset)
    return MessageToStore(
        topic.encode(),
        queue_id,
        record.body,
        encode_properties(properties),
        tags_code=tags_code(properties.get(TAGS, "")),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=broker.store_host,
        reconsume_times=record.reconsume_times + 1,
    )
