"""What becomes of a message that a consumer could not consume: the rules, on the send lane.

A message comes back in one of two ways.  Usually the consumer names it (CONSUMER_SEND_MSG_BACK, in
send_back.py) and the broker copies it; if that fails, the consumer sends it again itself, to
`%RETRY%<group>`, and `retry_or_bury` looks at it among the ordinary sends.  Either way it waits in
a delay level and then stands in the group's retry topic, until it has been tried often enough; then
it is buried in `%DLQ%<group>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.compat.versions import version_ordinal
from pyritemq.protocol.codes import ResponseCode
from pyritemq.protocol.record import decode_properties, encode_properties
from pyritemq.server.broker.delays.rewriting import DELAY
from pyritemq.server.broker.remarks import see_faq
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.events import SENT_TO_DLQ
from pyritemq.server.registry import RequestRefused

if TYPE_CHECKING:
    from pyritemq.protocol.headers.send import SendFields
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.registry import Request
    from pyritemq.storage.messages import MessageToStore

DLQ_QUEUE_NUMS = 1
POP_RETRY_SEPARATOR = "+"
"""Between group and topic in the name of a pop retry topic of 5.x."""

V3_4_9 = version_ordinal("V3_4_9")
"""Since then clients say themselves how often a message may be tried."""


def group_of(broker: Broker, name: str) -> SubscriptionGroupConfig:
    """A group's settings.  Raises RequestRefused if there is no such group."""
    group = broker.groups.find(name)
    if group is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            see_faq(f"subscription group not exist, {name} "),
        )
    return group


def reconsume_times_max(
    request: Request[Any], group: SubscriptionGroupConfig, wanted: int | None
) -> int:
    """How often a message may be tried: the client's word, else the group's."""
    if wanted is not None and request.command.version >= V3_4_9:
        return wanted
    return group.retry_max_times


def open_dlq(broker: Broker, group: str) -> str:
    """The group's dead-letter topic, made if it is not there."""
    topic = names.dlq_topic(group)
    broker.topics.create_on_send_back(topic, queue_nums=DLQ_QUEUE_NUMS)
    return topic


def count_buried(broker: Broker, topic: str, group: str) -> None:
    """One more message of a topic that a group could not consume."""
    is_system = names.is_system_group(group) or broker.topics.is_system_topic(topic)
    broker.events.count(
        SENT_TO_DLQ, consumer_group=group, topic=topic, is_system=str(is_system).lower()
    )


def group_of_retry_topic(topic: str) -> str:
    """Whose retry topic this is (Java: KeyBuilder.parseGroup)."""
    name = topic.removeprefix(names.RETRY_TOPIC_PREFIX)
    # Java splits at every separator and takes the whole for a group unless there are two parts.
    parts = name.rstrip(POP_RETRY_SEPARATOR).split(POP_RETRY_SEPARATOR)
    return parts[0] if len(parts) == 2 else name


def retry_or_bury(
    broker: Broker, request: Request[Any], header: SendFields, message: MessageToStore
) -> None:
    """A send to a retry topic: into the DLQ instead if it was tried too often.

    Also if the group holds queue locks: then it consumes in order, tries a message again itself,
    and sends it here only to be rid of it.  Raises RequestRefused.
    """
    name = group_of_retry_topic(header.topic)
    group = group_of(broker, name)
    times_max = reconsume_times_max(request, group, header.max_reconsume_times)
    if header.reconsume_times <= times_max and broker.queue_locks.is_all_expired(name):
        return
    count_buried(broker, header.topic, name)
    message.topic = open_dlq(broker, name).encode()
    message.queue_id = 0
    message.properties = encode_properties({**decode_properties(message.properties), DELAY: "-1"})
