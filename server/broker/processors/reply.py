"""Request-reply: SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2, on the reply lane.

A consumer that answers a request sends its reply here; the broker pushes it to the client that the
property REPLY_TO_CLIENT names and tells the consumer how that went (Java: ReplyMessageProcessor).
Whether the reply is also stored, in the cluster's reply topic, makes no difference to that answer
but for the ids in it.

A requester may take its time, so a drain never waits for one before it pushes to the next:

    1. lane: checks each reply and pushes it; the requester's response becomes a future.
    2. lane: takes the responses as they come, for at most `PUSH_TIMEOUT_SECONDS`.
    3. lane: answers the consumer, or gives the message to the send lane, which answers when it is
       stored.
"""

from __future__ import annotations

import logging
import random
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyritemq.compat.java_hash import tags_code
from pyritemq.compat.message_id import make_message_id
from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.headers.reply import ReplyMessageHeader
from pyritemq.protocol.headers.send import SendMessageHeader, SendMessageReplyHeader
from pyritemq.protocol.record import decode_properties, encode_properties
from pyritemq.server.broker.processors.send import CODE_OF_STATUS
from pyritemq.server.broker.processors.send_checks import checked_topic, not_open_yet
from pyritemq.server.connection import PeerGone
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import MessageToStore

if TYPE_CHECKING:
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.connection import Channel
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request
    from pyritemq.storage.messages import PutResult

logger = logging.getLogger(__name__)

PUSH_TIMEOUT_SECONDS = 10.0
"""How long Java's Broker2Client.callClient waits for the requester."""

REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
TAGS = "TAGS"


@dataclass(slots=True, eq=False)
class _Reply:
    """A reply that has passed the checks; `push` is there while the requester has it."""

    request: Request[Any]
    header: SendMessageHeader
    queue_id: int
    properties: dict[str, str]
    requester: Channel | None = None
    push: Command | None = None

    @property
    def requester_id(self) -> str | None:
        return self.properties.get(REPLY_TO_CLIENT)


@broker_handlers.handles_batch(
    RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2, lane=Lane.REPLY
)
def send_replies(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    pushed: dict[Future[Command], _Reply] = {}
    for request in requests:
        try:
            reply = _accept(broker, request)
            response = _push(broker, reply)
        except RequestRefused as refusal:
            answer = _answer(broker, request, refusal.code, refusal.remark)
            outbox.add_reply(request, answer)
        except Exception as error:  # noqa: BLE001 - one bad reply must not fail its neighbours
            outbox.add_reply(request, reply_to_failure(request, error))
        else:
            if response is None:
                _finish(broker, reply, _no_requester(reply))
            else:
                pushed[response] = reply
    _take_responses(broker, pushed)


def _accept(broker: Broker, request: Request[Any]) -> _Reply:
    """Check a reply as any send is.  Raises RequestRefused."""
    ext_fields = request.command.ext_fields
    is_v1 = request.command.code == RequestCode.SEND_REPLY_MESSAGE
    decode = SendMessageHeader.decode if is_v1 else SendMessageHeader.decode_v2
    header = decode(ext_fields)
    closed = not_open_yet(broker)
    if closed is not None:
        raise closed
    topic = checked_topic(broker, request, header)
    queue_id = header.queue_id
    if queue_id < 0:
        queue_id = random.randrange(topic.write_queue_nums)  # noqa: S311 - spreads load only
    properties = decode_properties((header.properties or "").encode())
    return _Reply(request, header, queue_id, properties)


def _push(broker: Broker, reply: _Reply) -> Future[Command] | None:
    """Send the reply on to the requester; None if there is none."""
    requester_id = reply.requester_id
    if requester_id is None:
        return None
    reply.requester = broker.producers.find_channel(requester_id)
    if reply.requester is None:
        return None
    reply.push = Command(
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
        ext_fields=_push_header(broker, reply).encode(),
        body=reply.request.command.body,
    )
    return reply.requester.ask(reply.push)


def _push_header(broker: Broker, reply: _Reply) -> ReplyMessageHeader:
    """The consumer's header with both addresses; queue_id is what was asked for, even if -1."""
    now_ms = broker.clock.now_ms()
    sent = reply.header
    return ReplyMessageHeader(
        producer_group=sent.producer_group,
        topic=sent.topic,
        default_topic=sent.default_topic,
        default_topic_queue_nums=sent.default_topic_queue_nums,
        queue_id=sent.queue_id,
        sys_flag=sent.sys_flag,
        born_timestamp=sent.born_timestamp,
        flag=sent.flag,
        properties=encode_properties(reply.properties | {PUSH_REPLY_TIME: str(now_ms)}).decode(),
        reconsume_times=sent.reconsume_times,
        unit_mode=sent.unit_mode,
        born_host=reply.request.channel.remote_address,
        store_host=broker.advertised_address,
        store_timestamp=now_ms,
    )


def _no_requester(reply: _Reply) -> str:
    if reply.requester_id is None:
        return f"reply message properties[{REPLY_TO_CLIENT}] is null"
    return f"push reply message fail, channel of <{reply.requester_id}> not found."


def _take_responses(broker: Broker, pushed: dict[Future[Command], _Reply]) -> None:
    """Finish each reply when its requester has answered, or has had its time."""
    deadline = monotonic() + PUSH_TIMEOUT_SECONDS
    while pushed:
        left_seconds = max(deadline - monotonic(), 0)
        done, waiting = wait(pushed, left_seconds, return_when=FIRST_COMPLETED)
        for response in done or waiting:
            reply = pushed.pop(response)
            _finish(broker, reply, _push_fault(reply, response))


def _push_fault(reply: _Reply, response: Future[Command]) -> str | None:
    """Why the requester does not have the reply, in Java's words; None if it has."""
    assert reply.requester is not None
    assert reply.push is not None
    reply.requester.forget(reply.push)
    try:
        answer = response.result(timeout=0)
    except (PeerGone, TimeoutError) as error:
        reason = type(error).__name__
    else:
        if answer.code == ResponseCode.SUCCESS:
            return None
        reason = str(answer.remark)
    logger.warning("reply not pushed client=%s reason=%s", reply.requester_id, reason)
    return f"push reply message to {reply.requester_id}fail."


def _finish(broker: Broker, reply: _Reply, fault: str | None) -> None:
    """Answer the consumer; after the store, where replies are stored."""
    code = ResponseCode.SUCCESS if fault is None else ResponseCode.SYSTEM_ERROR
    pushed = None
    if fault is None:
        pushed = SendMessageReplyHeader(msg_id="0", queue_id=reply.queue_id, queue_offset=0)

    def answer(header: SendMessageReplyHeader | None) -> None:
        if not reply.request.command.is_oneway:
            reply.request.channel.post(_answer(broker, reply.request, code, fault, header))

    def stored(results: list[PutResult]) -> None:
        answer(_stored_header(broker, reply, results[0]) or pushed)

    if broker.config.store_reply_message_enable and broker.internal_sends.put(
        [_to_store(broker, reply)], stored
    ):
        return
    answer(pushed)


def _stored_header(
    broker: Broker, reply: _Reply, result: PutResult
) -> SendMessageReplyHeader | None:
    if result.status not in CODE_OF_STATUS:
        logger.warning("reply not stored topic=%s reason=%s", reply.header.topic, result.status)
        return None
    return SendMessageReplyHeader(
        msg_id=make_message_id(broker.store_host, result.phy_offset),
        queue_id=reply.queue_id,
        queue_offset=result.queue_offset,
    )


def _to_store(broker: Broker, reply: _Reply) -> MessageToStore:
    """The reply as the consumer sent it, but without its sys flag: Java forgets to copy it."""
    header = reply.header
    return MessageToStore(
        header.topic.encode(),
        reply.queue_id,
        reply.request.command.body,
        (header.properties or "").encode(),
        tags_code=tags_code(reply.properties.get(TAGS, "")),
        flag=header.flag,
        sys_flag=0,
        born_timestamp=header.born_timestamp,
        born_host=reply.request.channel.born_host,
        store_host=broker.store_host,
        reconsume_times=header.reconsume_times,
    )


def _answer(
    broker: Broker,
    request: Request[Any],
    code: ResponseCode,
    remark: str | None,
    header: SendMessageReplyHeader | None = None,
) -> Command:
    """Every answer, a refusal too, carries the two fields that answers to sends carry."""
    fields = {} if header is None else header.encode()
    fields["MSG_REGION"] = broker.config.region_id
    fields["TRACE_ON"] = "true" if broker.config.trace_on else "false"
    return request.command.make_reply(code, remark, fields)
