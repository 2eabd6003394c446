"""NOTIFICATION, PEEK_MESSAGE and POLLING_INFO, on the pull lane: they look and take nothing.

A notification asks whether a pop would find something and may wait for it; a peek shows messages
without hiding them.  Java 5.5.0: NotificationProcessor, PeekMessageProcessor, PollingInfoProcessor.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.pop import (
    NotificationHeader,
    NotificationReplyHeader,
    PeekMessageHeader,
    PollingInfoHeader,
    PollingInfoReplyHeader,
    PopMessageReplyHeader,
)
from pyritemq.server.broker.pop.long_polling import Polling, Waiting
from pyritemq.server.broker.pop.popping import Wanted, queue_ends, topics_of
from pyritemq.server.broker.processors.pop_checks import (
    check_group,
    check_queue,
    check_readable,
    check_topic,
    wanted_by,
)
from pyritemq.server.broker.remarks import REMARK_NOT_CLEARED
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import GetStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.command import Command
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.positions import QueueKey
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request

FILTERED_COUNT_MAX = 32
"""Java looks at so many units for a tag; a longer backlog counts as having something."""

PEEK_COUNT_MAX = 32


class Asked(NamedTuple):
    """A notification; kept as the request's header while it waits."""

    header: NotificationHeader
    expires_ms: int
    wanted: Wanted


@broker_handlers.handles_batch(RequestCode.NOTIFICATION, lane=Lane.PULL)
def notify(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    for request in requests:
        try:
            reply = _notify(broker, request)
        except Exception as error:  # noqa: BLE001 - one bad request must not fail its neighbours
            reply = reply_to_failure(request, error)
        if reply is not None:
            outbox.add_reply(request, reply)


def _notify(broker: Broker, request: Request[Any]) -> Command | None:
    """The reply; None if the request waits."""
    header, expires_ms, wanted = _asked(broker, request)
    polling = broker.pop.notifications
    while True:
        notices = polling.notices
        ends = queue_ends(broker, header.topic, header.consumer_group)
        if _has_message(broker, header, wanted):
            return request.reply(
                remark=REMARK_NOT_CLEARED, header=NotificationReplyHeader(has_msg=True)
            )
        outcome = polling.hold(
            Waiting(
                request,
                (header.topic, header.consumer_group, max(header.queue_id, -1)),
                topics=topics_of(broker, header.topic, header.consumer_group),
                expires_ms=expires_ms if header.poll_time > 0 else 0,
                tag_hashes=wanted.tag_hashes,
            ),
            has_news=lambda: (
                polling.notices != notices  # noqa: B023 - called before the next round
                or queue_ends(broker, header.topic, header.consumer_group) != ends  # noqa: B023
            ),
        )
        if outcome is Polling.HELD:
            return None
        if outcome is not Polling.ARRIVED:
            is_full = outcome is Polling.FULL
            return request.reply(
                remark=REMARK_NOT_CLEARED,
                header=NotificationReplyHeader(has_msg=False, polling_full=is_full),
            )


def _asked(broker: Broker, request: Request[Any]) -> Asked:
    if request.suspended:
        held: Asked = request.header
        return held
    header = NotificationHeader.decode(request.command.ext_fields)
    _check(broker, request, header)
    wanted = Wanted()
    if broker.config.use_message_filter_for_notification and header.exp and header.exp_type:
        wanted = wanted_by(header.topic, header.consumer_group, header.exp, header.exp_type)
    expires_ms = (header.born_time or broker.clock.now_ms()) + header.poll_time
    asked = Asked(header, expires_ms, wanted)
    request.header = asked
    return asked


def _check(
    broker: Broker,
    request: Request[Any],
    header: NotificationHeader | PeekMessageHeader | PollingInfoHeader,
) -> TopicConfig:
    if not broker.config.broker_permission & broker.READ:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION,
            f"the broker[{broker.config.broker_ip1}] peeking message is forbidden",
        )
    topic = check_topic(broker, header.topic)
    check_readable(broker, topic)
    check_queue(
        request, topic, header.queue_id, code=ResponseCode.INVALID_PARAMETER, any_queue=True
    )
    check_group(broker, header.consumer_group)
    return topic


def _has_message(broker: Broker, header: NotificationHeader, wanted: Wanted) -> bool:
    for key in _queues(broker, header.topic, header.consumer_group, header.queue_id):
        topic, _, queue_id = key
        if header.order and broker.pop.orders.is_blocked(
            (header.topic, header.consumer_group, queue_id), header.attempt_id, 0
        ):
            continue
        offset = _pop_offset(broker, key)
        rest = broker.store.max_offset(topic, queue_id) - offset
        if rest <= 0:
            continue
        if topic != header.topic or wanted.tag_hashes is None or rest >= FILTERED_COUNT_MAX:
            return True
        found = broker.store.get(topic, queue_id, offset, count_max=1, accepts=wanted.tag_hashes)
        if found.count:
            return True
    return False


def _queues(broker: Broker, topic: str, group: str, queue_id: int) -> Iterator[QueueKey]:
    """The queues that a look goes into: those of the topic, from any one on, then the retries."""
    for name in topics_of(broker, topic, group):
        config = broker.topics.get(name)
        if config is None:
            continue
        if name == topic and queue_id >= 0:
            yield name, group, queue_id
            continue
        total = config.read_queue_nums
        first = random.randrange(total) if total else 0  # noqa: S311 - spreads load only
        for i in range(total):
            yield name, group, (first + i) % total


def _pop_offset(broker: Broker, key: QueueKey) -> int:
    offset = broker.pop.positions.next_offset(key)
    return offset if offset >= 0 else broker.store.min_offset(key[0], key[2])


@broker_handlers.handles(RequestCode.PEEK_MESSAGE, PeekMessageHeader, lane=Lane.PULL)
def peek_message(broker: Broker, request: Request[PeekMessageHeader]) -> Command:
    header = request.header
    _check(broker, request, header)
    rest = count = 0
    body: list[memoryview] = []
    room = min(header.max_msg_nums, PEEK_COUNT_MAX)
    for key in _queues(broker, header.topic, header.consumer_group, header.queue_id):
        topic, group, queue_id = key
        offset = _pop_offset(broker, key)
        rest += max(broker.store.max_offset(topic, queue_id) - offset, 0)
        if count >= room:
            continue
        found = broker.store.get(topic, queue_id, offset, count_max=room - count)
        if found.status in (GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_OVERFLOW_BADLY):
            found = broker.store.get(
                topic, queue_id, found.next_begin_offset, count_max=room - count
            )
        if found.count:
            broker.stats.count_get(group, header.topic, found)
        body += found.slices
        count += found.count
    status = GetStatus.FOUND if count else GetStatus.NO_MESSAGE_IN_QUEUE
    code = ResponseCode.SUCCESS if count else ResponseCode.PULL_NOT_FOUND
    # As in Java, nothing but restNum is set.
    reply = PopMessageReplyHeader(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
    return request.reply(code, status.name, reply, b"".join(body))


@broker_handlers.handles(RequestCode.POLLING_INFO, PollingInfoHeader, lane=Lane.PULL)
def polling_info(broker: Broker, request: Request[PollingInfoHeader]) -> Command:
    header = request.header
    _check(broker, request, header)
    key = (header.topic, header.consumer_group, header.queue_id)
    num = broker.pop.long_polling.count_of(key)
    return request.reply(header=PollingInfoReplyHeader(polling_num=num))
