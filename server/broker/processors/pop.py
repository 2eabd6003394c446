"""POP_MESSAGE, on the pull lane: hands out messages of any queue and hides them for a while.

All pops of a drain put their check points with one append; a pop is answered on the send lane, when
its check points are stored, or at once if the buffer keeps them all (`pop.buffer`).  One that finds
nothing waits (`pop.long_polling`) and comes back here.
Checks, codes and remarks are those of Java's PopMessageProcessor (5.5.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.pop import PopMessageHeader, PopMessageReplyHeader
from pyritemq.server.broker.pop.long_polling import Polling, Waiting
from pyritemq.server.broker.pop.popping import pop, queue_ends, topics_of
from pyritemq.server.broker.processors.pop_checks import (
    check_group,
    check_queue,
    check_readable,
    check_topic,
    wanted_by,
)
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import STORED, GetStatus

if TYPE_CHECKING:
    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.popping import Part, Pop, Wanted
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request
    from pyritemq.storage.messages import MessageToStore, PutResult

COUNT_MAX = 32
"""A check point marks what is acked in the bits of an int."""

LATE_MS = 500
NOT_STORED = "the check point of the popped messages could not be stored"


class Asked(NamedTuple):
    """A pop request; kept as the request's header while it waits."""

    header: PopMessageHeader
    expires_ms: int
    wanted: Wanted
    topic: TopicConfig
    group: SubscriptionGroupConfig


class _Storing(NamedTuple):
    """A pop whose check points are on their way; messages and parts go together.

    The check points of those that are held stay in the buffer.
    """

    request: Request[Any]
    popped: Pop
    parts: list[Part]
    messages: list[MessageToStore]
    held: list[Part]


_NOTHING_POPPED = PopMessageReplyHeader(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0)


@broker_handlers.handles_batch(RequestCode.POP_MESSAGE, lane=Lane.PULL)
def pop_messages(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    storing: list[_Storing] = []
    for request in requests:
        try:
            reply = _pop(broker, request, storing)
        except RequestRefused as refused:  # Java's refusals have the header as it begins
            reply = request.reply(refused.code, refused.remark, _NOTHING_POPPED)
        except Exception as error:  # noqa: BLE001 - one bad request must not fail its neighbours
            reply = reply_to_failure(request, error)
        if reply is not None:
            outbox.add_reply(request, reply)
    if storing:
        _store(broker, storing)


def _pop(broker: Broker, request: Request[Any], storing: list[_Storing]) -> Command | None:
    """The reply; None if it comes later."""
    asked = _check(broker, request)
    header = asked.header
    polling = broker.pop.long_polling
    while True:
        notices = polling.notices
        ends = queue_ends(broker, header.topic, header.consumer_group)
        popped = pop(broker, header, asked.wanted, asked.topic, asked.group)
        if popped.count:
            break
        waiting = Waiting(
            request,
            (header.topic, header.consumer_group, max(header.queue_id, -1)),
            topics=topics_of(broker, header.topic, header.consumer_group),
            expires_ms=asked.expires_ms if header.poll_time > 0 else 0,
            tag_hashes=asked.wanted.tag_hashes,
        )
        outcome = polling.hold(
            waiting,
            has_news=lambda: (
                polling.notices != notices  # noqa: B023 - called before the next round
                or queue_ends(broker, header.topic, header.consumer_group) != ends  # noqa: B023
            ),
        )
        if outcome is Polling.HELD:
            return None
        if outcome is not Polling.ARRIVED:
            code = ResponseCode.POLLING_TIMEOUT
            if outcome is Polling.FULL:
                code = ResponseCode.POLLING_FULL
            return _reply(request, popped, [], code)
    if popped.rest:
        polling.notify(header.topic, header.consumer_group, header.queue_id)
    if header.order:
        return _reply(request, popped, popped.parts)
    waiting_for = _with_messages(broker, request, popped)
    if waiting_for.held and not waiting_for.messages:
        return _reply(request, popped, waiting_for.held)
    storing.append(waiting_for)
    return None


def _check(broker: Broker, request: Request[Any]) -> Asked:
    if request.suspended:
        held: Asked = request.header
        return held
    header = PopMessageHeader.decode(request.command.ext_fields)
    now_ms = broker.clock.now_ms()
    expires_ms = (header.born_time or now_ms) + header.poll_time
    address = broker.config.broker_ip1
    if now_ms - expires_ms > LATE_MS:
        raise RequestRefused(
            ResponseCode.POLLING_TIMEOUT, f"the broker[{address}] pop message is timeout too much"
        )
    if not broker.config.broker_permission & broker.READ:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION, f"the broker[{address}] pop message is forbidden"
        )
    if header.max_msg_nums > COUNT_MAX:
        raise RequestRefused(
            ResponseCode.INVALID_PARAMETER,
            f"the broker[{address}] pop message's num is greater than {COUNT_MAX}",
        )
    if not broker.config.timer_wheel_enable:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"the broker[{address}] pop message is forbidden because timerWheelEnable is false",
        )
    topic = check_topic(broker, header.topic)
    check_readable(broker, topic)
    check_queue(
        request, topic, header.queue_id, code=ResponseCode.INVALID_PARAMETER, any_queue=True
    )
    group = check_group(broker, header.consumer_group)
    wanted = wanted_by(header.topic, header.consumer_group, header.exp, header.exp_type)
    asked = Asked(header, expires_ms, wanted, topic, group)
    request.header = asked
    return asked


def _with_messages(broker: Broker, request: Request[Any], popped: Pop) -> _Storing:
    """The pop's check points as messages; a part that cannot have one is given back."""
    parts: list[Part] = []
    held: list[Part] = []
    messages: list[MessageToStore] = []
    for part in popped.parts:
        assert part.point is not None
        assert part.taken is not None
        if broker.pop.buffer.hold(part.point, popped.revive_queue_id, part.taken):
            held.append(part)
            continue
        try:
            messages.append(broker.pop.point_message(part.point, popped.revive_queue_id))
            parts.append(part)
        except RequestRefused:
            broker.pop.positions.fail(part.taken)
    return _Storing(request, popped, parts, messages, held)


def _store(broker: Broker, storing: list[_Storing]) -> None:
    def done(results: list[PutResult]) -> None:  # on the send lane
        at = 0
        for pop_ in storing:
            end = at + len(pop_.messages)
            _settle(broker, pop_, results[at:end])
            at = end

    messages = [message for pop_ in storing for message in pop_.messages]
    if messages and broker.internal_sends.put(messages, done):
        return
    for pop_ in storing:  # the server is stopping
        _settle(broker, pop_, [])


def _settle(broker: Broker, storing: _Storing, results: list[PutResult]) -> None:
    """Commit what is stored, and answer with it."""
    stored = storing.held
    for index, part in enumerate(storing.parts):
        assert part.taken is not None
        if index < len(results) and results[index].status in STORED:
            broker.pop.positions.settle(part.taken)
            stored.append(part)
        else:
            broker.pop.positions.fail(part.taken)
    request = storing.request
    if request.command.is_oneway:
        return
    if stored:
        request.channel.post(_reply(request, storing.popped, stored))
    else:
        request.channel.post(request.reply(ResponseCode.SYSTEM_ERROR, NOT_STORED))


def _reply(
    request: Request[Any],
    popped: Pop,
    parts: list[Part],
    code: ResponseCode = ResponseCode.SUCCESS,
) -> Command:
    popped.parts = parts
    status = GetStatus.FOUND if parts else GetStatus.NO_MESSAGE_IN_QUEUE
    header = PopMessageReplyHeader(
        pop_time=popped.pop_time,
        invisible_time=popped.header.invisible_time,
        revive_qid=popped.revive_queue_id,
        rest_num=popped.rest,
        start_offset_info=popped.start_offset_info,
        msg_offset_info=popped.msg_offset_info,
        order_count_info=";".join(popped.order_counts) if popped.header.order else None,
    )
    body = b"".join(buffer for part in parts for buffer in part.body)
    return request.reply(code, status.name, header, body)
