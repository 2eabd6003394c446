"""Whether a send may be taken at all: how long it waited, its topic, permissions and its queue.

On the send lane, before anything is made of the message.  The order of the checks, the codes and
the remarks are those of Java's preSend and msgCheck (AbstractSendMessageProcessor, 5.5.0) and of
BrokerFastFailure; a check that only a new topic can fail is made only then.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.protocol.codes import ResponseCode
from pyritemq.server.broker.internal_sends import InternalSend
from pyritemq.server.broker.remarks import human_time, late_remark, see_faq
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.topics import describe_topic
from pyritemq.server.registry import RequestRefused

if TYPE_CHECKING:
    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.headers.send import SendFields, SendMessageHeader
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request


def refuse_late(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> list[Request[Any]]:
    """Answer those that waited longer than waitTimeMillsInSendQueue; returns the others.

    Their senders have given up or soon will, and work on them would make the next ones late too.
    """
    config = broker.config
    now_ns = time.monotonic_ns()
    limit_ns = config.wait_time_mills_in_send_queue * 1_000_000
    # Requests come in the order of their arrival, so the first has waited longest.
    if now_ns - requests[0].received_ns < limit_ns or not config.broker_fast_failure_enable:
        return requests
    in_time: list[Request[Any]] = []
    for index, request in enumerate(requests, start=1):
        waited_ns = now_ns - request.received_ns
        if waited_ns < limit_ns or isinstance(request, InternalSend):
            in_time.append(request)
            continue
        remark = late_remark(waited_ns // 1_000_000, len(requests) - index)
        outbox.add_reply(request, request.reply(ResponseCode.SYSTEM_BUSY, remark))
    return in_time


def not_open_yet(broker: Broker) -> RequestRefused | None:
    """A broker may be told to take no sends before a certain time; asked once for each drain."""
    opens_at = broker.config.start_accept_send_request_time_stamp
    if not opens_at or broker.clock.now_ms() >= opens_at:
        return None
    remark = f"broker unable to service, until {human_time(opens_at)}"
    return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)


class Target(NamedTuple):
    """A topic that may be sent to, and what all its messages of one drain have in common."""

    topic: TopicConfig
    name: bytes
    queue_id_end: int

    def check_queue(self, request: Request[Any], queue_id: int) -> None:
        """Raises RequestRefused."""
        if queue_id >= self.queue_id_end:
            raise RequestRefused(
                ResponseCode.INVALID_PARAMETER,
                f"request queueId[{queue_id}] is illegal, {describe_topic(self.topic)} "
                f"Producer: {request.channel.remote_address}",
            )


def checked_topic(
    broker: Broker, request: Request[Any], header: SendFields | SendMessageHeader
) -> TopicConfig:
    """The topic of a send, made now if need be.  Raises RequestRefused."""
    target = target_of(broker, request, header)
    target.check_queue(request, header.queue_id)
    return target.topic


def target_of(
    broker: Broker, request: Request[Any], header: SendFields | SendMessageHeader
) -> Target:
    """The checks that are the same for all sends of a drain to a topic.  Raises RequestRefused."""
    name = header.topic
    topic = broker.topics.get(name)
    if broker.topics.is_closed_to_senders(name):
        raise RequestRefused(
            ResponseCode.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden."
        )
    if topic is None:
        topic = _created_topic(broker, request, header)
    if not broker.config.broker_permission & broker.WRITE and topic.order:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION,
            f"the broker[{broker.config.broker_ip1}] sending message is forbidden",
        )
    return Target(topic, name.encode(), max(topic.write_queue_nums, topic.read_queue_nums))


def _created_topic(
    broker: Broker, request: Request[Any], header: SendFields | SendMessageHeader
) -> TopicConfig:
    """The topic of a first send: made after the default topic that the client names."""
    name = header.topic
    wrong = names.topic_fault(name)
    if wrong is not None:
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, wrong)
    topic = broker.topics.create_on_send(
        name,
        header.default_topic,
        queue_nums=header.default_topic_queue_nums,
        unit_mode=header.unit_mode,
        peer=request.channel.remote_address,
    )
    if topic is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST,
            see_faq(f"topic[{name}] not exist, apply first please!"),
        )
    return topic
