"""ACK_MESSAGE, BATCH_ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME, on the ack lane.

An ack becomes a record of the revive log; all of a drain are one append, and each is answered when
it is stored.  An ack of a check point that is still in the buffer only marks it there.  A changed
invisible time is a new check point and an ack of the old one.  Messages that were popped in order
are marked in the order info instead.  Checks, codes and remarks are those of Java's
AckMessageProcessor and ChangeInvisibleTimeProcessor (5.5.0); but where Java says SUCCESS to an ack
that could not be stored, ours says so, so that a client may try again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.errors import ProtocolError
from pyritemq.protocol.headers.pop import (
    AckMessageHeader,
    ChangeInvisibleTimeHeader,
    ChangeInvisibleTimeReplyHeader,
)
from pyritemq.server.broker.pop.batch_acks import BatchAck, decode_batch_acks
from pyritemq.server.broker.pop.handles import ORDER_REVIVE_QUEUE, Handle, parse_handle
from pyritemq.server.broker.pop.order_info import ILLEGAL
from pyritemq.server.broker.pop.revive_records import Ack, check_point
from pyritemq.server.broker.processors.pop_checks import check_queue, check_topic
from pyritemq.server.broker.remarks import REMARK_NOT_CLEARED
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import STORED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.protocol.fields import Header
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.positions import QueueKey
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request
    from pyritemq.storage.messages import MessageToStore, PutResult

ACK_NUMS = "GROUP_ACK_NUMS"
CK_NUMS = "GROUP_CK_NUMS"
NOT_STORED = "the ack could not be stored"


class _Storing(NamedTuple):
    """A request whose records are on their way, and the header to answer with."""

    request: Request[Any]
    messages: list[MessageToStore]
    header: Header | None = None


@broker_handlers.handles_batch(
    RequestCode.ACK_MESSAGE,
    RequestCode.BATCH_ACK_MESSAGE,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    lane=Lane.ACK,
)
def take_acks(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    storing: list[_Storing] = []
    for request in requests:
        try:
            outcome = _TAKERS[request.command.code](broker, request)
        except Exception as error:  # noqa: BLE001 - one bad request must not fail its neighbours
            outbox.add_reply(request, reply_to_failure(request, error))
            continue
        if isinstance(outcome, _Storing):
            storing.append(outcome)
        else:
            outbox.add_reply(request, outcome)
    if storing:
        _store(broker, storing)


def _ack(broker: Broker, request: Request[Any]) -> Command | _Storing:
    header = AckMessageHeader.decode(request.command.ext_fields)
    topic = check_topic(broker, header.topic)
    check_queue(request, topic, header.queue_id, code=ResponseCode.MESSAGE_ILLEGAL)
    queue_min, queue_max = _range(broker, header.topic, header.queue_id)
    if not queue_min <= header.offset <= queue_max:
        raise RequestRefused(
            ResponseCode.NO_MESSAGE,
            f"offset is illegal, key:{header.topic}@{header.queue_id}, "
            f"commit:{header.offset}, store:{queue_min}~{queue_max}",
        )
    handle = _handle(broker, header.extra_info)
    key = (header.topic, header.consumer_group, header.queue_id)
    if handle.is_order:
        _ack_in_order(broker, request, key, header.offset, handle.pop_time)
        return request.reply()
    _count(broker, ACK_NUMS, key, 1)
    ack = _ack_of(key, handle, header.offset)
    if broker.pop.buffer.ack(ack.key, ack.offsets):
        return request.reply()
    return _Storing(
        request, [broker.pop.ack_message(ack, handle.revive_queue_id, handle.revive_time)]
    )


def _batch_ack(broker: Broker, request: Request[Any]) -> Command | _Storing:
    broker_name, acks = decode_batch_acks(request.command.body)
    if not acks:
        return request.reply(ResponseCode.NO_MESSAGE)
    messages = [
        message
        for batch in acks
        if (message := _batch_message(broker, request, batch, broker_name)) is not None
    ]
    return _Storing(request, messages) if messages else request.reply()


def _batch_message(
    broker: Broker, request: Request[Any], batch: BatchAck, broker_name: str
) -> MessageToStore | None:
    """The record of one batch; None if none is needed, or it names what was popped in order."""
    key = (batch.topic, batch.group, batch.queue_id)
    if broker.topics.get(batch.topic) is None:
        return None
    queue_min, queue_max = _range(broker, batch.topic, batch.queue_id)
    offsets = tuple(offset for offset in batch.offsets if queue_min <= offset <= queue_max)
    if batch.revive_queue_id == ORDER_REVIVE_QUEUE:
        for offset in offsets:
            _ack_in_order(broker, request, key, offset, batch.pop_time)
        return None
    if not offsets:
        return None
    _check_revive_queue(broker, batch.revive_queue_id)
    _count(broker, ACK_NUMS, key, len(offsets))
    ack = Ack(*key, batch.start_offset, batch.pop_time, broker_name, offsets, is_batch=True)
    if broker.pop.buffer.ack(ack.key, ack.offsets):
        return None
    revive_ms = batch.pop_time + batch.invisible_time
    return broker.pop.ack_message(ack, batch.revive_queue_id, revive_ms)


def _change_invisible_time(broker: Broker, request: Request[Any]) -> Command | _Storing:
    header = ChangeInvisibleTimeHeader.decode(request.command.ext_fields)
    topic = check_topic(broker, header.topic)
    check_queue(request, topic, header.queue_id, code=ResponseCode.MESSAGE_ILLEGAL)
    queue_min, queue_max = _range(broker, header.topic, header.queue_id)
    if not queue_min <= header.offset < queue_max:
        return request.reply(ResponseCode.NO_MESSAGE)
    handle = _handle(broker, header.extra_info)
    if handle.is_order:
        return _change_in_order(broker, request, header, handle)
    key = (header.topic, header.consumer_group, header.queue_id)
    now_ms = broker.clock.now_ms()
    point = check_point(
        topic=header.topic,
        group=header.consumer_group,
        queue_id=header.queue_id,
        start_offset=header.offset,
        offsets=[header.offset],
        pop_time=now_ms,
        invisible_time=header.invisible_time,
        broker_name=handle.broker_name,
        suspend=header.suspend,
    )
    revive_queue_id = handle.revive_queue_id
    ack = _ack_of(key, handle, header.offset)
    messages = [
        broker.pop.point_message(point, revive_queue_id),
        broker.pop.ack_message(ack, revive_queue_id, handle.revive_time),
    ]
    broker.pop.buffer.release(ack.key)
    _count(broker, CK_NUMS, key, 1)
    _count(broker, ACK_NUMS, key, 1)
    reply = ChangeInvisibleTimeReplyHeader(
        pop_time=now_ms, invisible_time=header.invisible_time, revive_qid=revive_queue_id
    )
    return _Storing(request, messages, reply)


def _change_in_order(
    broker: Broker, request: Request[Any], header: ChangeInvisibleTimeHeader, handle: Handle
) -> Command:
    key = (header.topic, header.consumer_group, header.queue_id)
    if header.offset < broker.offsets.query(header.consumer_group, header.topic, header.queue_id):
        # Acked long ago.  Java leaves its reply's header as it was made, with zeros.
        zeros = ChangeInvisibleTimeReplyHeader(pop_time=0, invisible_time=0, revive_qid=0)
        return request.reply(remark=REMARK_NOT_CLEARED, header=zeros)
    visible_ms = broker.clock.now_ms() + header.invisible_time
    broker.pop.orders.set_visible(
        key, header.offset, pop_time=handle.pop_time, visible_ms=visible_ms
    )
    broker.pop.watch(key)
    return request.reply(
        remark=REMARK_NOT_CLEARED,
        header=ChangeInvisibleTimeReplyHeader(
            pop_time=handle.pop_time,
            invisible_time=visible_ms - handle.pop_time,
            revive_qid=handle.revive_queue_id,
        ),
    )


def _ack_in_order(
    broker: Broker, request: Request[Any], key: QueueKey, offset: int, pop_time: int
) -> None:
    """Mark a message and commit; lets others look if its queue is free now."""
    topic, group, queue_id = key
    before = broker.offsets.query(group, topic, queue_id)
    if offset < before:
        return

    def commit(next_offset: int) -> None:
        if not broker.offsets.has_reset(group, topic, queue_id):
            broker.offsets.commit(group, topic, queue_id, next_offset)

    committed = broker.pop.orders.ack(key, offset, pop_time=pop_time, commit=commit)
    if committed == ILLEGAL:
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL,
            f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{before}, commit:{offset}, "
            f"next:{committed}, /{request.channel.remote_address}",
        )
    if committed >= 0 and broker.pop.orders.free_at(key) is None:
        broker.pop.notify(topic, group, queue_id)


def _handle(broker: Broker, text: str) -> Handle:
    try:
        handle = parse_handle(text)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    _check_revive_queue(broker, handle.revive_queue_id)
    return handle


def _check_revive_queue(broker: Broker, queue_id: int) -> None:
    """Java writes into whatever queue a client names; nobody would read it there."""
    if queue_id != ORDER_REVIVE_QUEUE and not broker.pop.is_revive_queue(queue_id):
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL,
            f"reviveQid[{queue_id}] is illegal: there is no such queue",
        )


def _range(broker: Broker, topic: str, queue_id: int) -> tuple[int, int]:
    store = broker.store
    return store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)


def _ack_of(key: QueueKey, handle: Handle, offset: int) -> Ack:
    return Ack(*key, handle.start_offset, handle.pop_time, handle.broker_name, (offset,))


def _count(broker: Broker, name: str, key: QueueKey, nums: int) -> None:
    broker.stats.add(name, f"{key[0]}@{key[1]}", nums)


def _store(broker: Broker, storing: list[_Storing]) -> None:
    def done(results: list[PutResult]) -> None:  # on the send lane
        at = 0
        for waiting in storing:
            end = at + len(waiting.messages)
            _answer(waiting, all(result.status in STORED for result in results[at:end]))
            at = end

    messages = [message for waiting in storing for message in waiting.messages]
    if not broker.internal_sends.put(messages, done):
        for waiting in storing:  # the server is stopping
            _answer(waiting, is_stored=False)


def _answer(waiting: _Storing, is_stored: bool) -> None:
    request = waiting.request
    if request.command.is_oneway:
        return
    if is_stored:
        remark = None if waiting.header is None else REMARK_NOT_CLEARED
        request.channel.post(request.reply(remark=remark, header=waiting.header))
    else:
        request.channel.post(request.reply(ResponseCode.SYSTEM_ERROR, NOT_STORED))


_TAKERS: dict[int, Callable[[Broker, Request[Any]], Command | _Storing]] = {
    RequestCode.ACK_MESSAGE: _ack,
    RequestCode.BATCH_ACK_MESSAGE: _batch_ack,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _change_invisible_time,
}
