"""RECALL_MESSAGE, on the send lane: a timer message is taken back before its time.

The reply to its send carried a handle with topic, time and unique id.  A recall is a timer message
of its own, for the same slot, that names the unique id: when the slot is delivered, recalls are
read first.  Codes and remarks are those of Java's RecallMessageProcessor.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.fields import parse_long
from pyritemq.protocol.headers.recall import RecallMessageHeader, RecallMessageReplyHeader
from pyritemq.protocol.record import encode_properties
from pyritemq.server.broker.delays.rewriting import TAGS
from pyritemq.server.broker.processors.send_checks import not_open_yet
from pyritemq.server.broker.state.stats import Own
from pyritemq.server.broker.timers.rewriting import TIMER_DEL_UNIQKEY, UNIQ_KEY, RecallHandle
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import Request, RequestRefused, broker_handlers
from pyritemq.storage.messages import STORED, MessageToStore

if TYPE_CHECKING:
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker

RECALL_TAG = "_RECALL_TAG_"
MSG_REGION = "MSG_REGION"
_NOT_AVAILABLE = "recall failed, broker service not available"


@broker_handlers.handles(RequestCode.RECALL_MESSAGE, RecallMessageHeader, lane=Lane.SEND)
def recall_message(broker: Broker, request: Request[RecallMessageHeader]) -> Command:
    region = {MSG_REGION: broker.config.region_id}
    try:
        message_id = _recall(broker, request)
    except RequestRefused as refusal:
        return request.command.make_reply(refusal.code, refusal.remark, region)
    fields = RecallMessageReplyHeader(msg_id=message_id).encode() | region
    return request.command.make_reply(ResponseCode.SUCCESS, None, fields)


def _recall(broker: Broker, request: Request[RecallMessageHeader]) -> str:
    """Store the recall; returns the unique id of what is recalled.  Raises RequestRefused."""
    _check_broker(broker, request.header.topic)
    handle = _checked_handle(broker, request.header)
    message = _message(broker, request, handle)
    try:
        is_held = broker.timers.hold(message)
    except RequestRefused:
        is_held = False
    if not is_held or not _is_stored(broker, message):
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
    return handle.message_id


def _check_broker(broker: Broker, topic: str) -> None:
    config = broker.config
    if not config.recall_message_enable:
        raise RequestRefused(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    is_writeable = (
        config.broker_permission & broker.WRITE or config.allow_recall_when_broker_not_writeable
    )
    if not_open_yet(broker) is not None or not is_writeable:
        raise RequestRefused(ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_AVAILABLE)
    if broker.topics.get(topic) is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist"
        )


def _checked_handle(broker: Broker, header: RecallMessageHeader) -> RecallHandle:
    try:
        handle = RecallHandle.decode(header.recall_handle)
    except ValueError as error:
        raise _illegal(str(error)) from None
    if handle.topic != header.topic:
        raise _illegal("recall failed, topic not match")
    if handle.broker_name != broker.config.broker_name:
        raise _illegal(_NOT_AVAILABLE)
    try:
        left_ms = parse_long(handle.timestamp) - broker.clock.now_ms()
    except ValueError:
        left_ms = 0
    if not 0 < left_ms < broker.config.timer_max_delay_sec * 1000:
        raise _illegal("recall failed, timestamp invalid")
    return handle


def _illegal(remark: str) -> RequestRefused:
    return RequestRefused(ResponseCode.ILLEGAL_OPERATION, remark)


def _message(
    broker: Broker, request: Request[RecallMessageHeader], handle: RecallHandle
) -> MessageToStore:
    now_ms = broker.clock.now_ms()
    key = handle.message_id
    if broker.config.append_topic_for_timer_delete_key:
        key = f"{handle.topic}+{key}"
    properties = {
        TAGS: RECALL_TAG,
        TIMER_DEL_UNIQKEY: key,
        UNIQ_KEY: handle.message_id,
        "TIMER_DELIVER_MS": handle.timestamp,
        "BORN_TIMESTAMP": str(now_ms),
        "TRACE_CONTEXT": "",
    }
    if request.header.producer_group is not None:
        properties["PGROUP"] = request.header.producer_group
    return MessageToStore(
        handle.topic.encode(),
        0,
        b"0",
        encode_properties(properties),
        tags_code=tags_code(RECALL_TAG),
        born_timestamp=now_ms,
        born_host=request.channel.born_host,
        store_host=broker.store_host,
    )


def _is_stored(broker: Broker, message: MessageToStore) -> bool:
    started_ns = perf_counter_ns()
    results = broker.store.put_batch([message])
    broker.stats.count_puts([message], results, perf_counter_ns() - started_ns, [Own(0, 1)])
    return results[0].status in STORED
