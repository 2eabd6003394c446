"""What pop, notification and acks check alike: codes and remarks are those of Java 5.5.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.protocol.codes import ResponseCode
from pyritemq.server.broker.filters.matching import record_test
from pyritemq.server.broker.filters.table import compiled_or_none
from pyritemq.server.broker.pop.popping import Wanted
from pyritemq.server.broker.remarks import see_faq
from pyritemq.server.broker.state.subscriptions import SubscriptionError, build_subscription
from pyritemq.server.registry import RequestRefused

if TYPE_CHECKING:
    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.registry import Request


def check_topic(broker: Broker, topic: str) -> TopicConfig:
    found = broker.topics.get(topic)
    if found is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST, see_faq(f"topic[{topic}] not exist, apply first please! ")
        )
    return found


def check_readable(broker: Broker, topic: TopicConfig) -> None:
    if not topic.perm & broker.READ:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic.topic_name}] peeking message is forbidden",
        )


def check_group(broker: Broker, group: str) -> SubscriptionGroupConfig:
    found = broker.groups.find(group)
    if found is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            see_faq(f"subscription group [{group}] does not exist, "),
        )
    if not found.consume_enable:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}"
        )
    return found


def check_queue(
    request: Request[Any],
    topic: TopicConfig,
    queue_id: int,
    *,
    code: ResponseCode,
    any_queue: bool = False,
) -> None:
    """`any_queue`: a negative number means all of them."""
    if (any_queue and queue_id < 0) or 0 <= queue_id < topic.read_queue_nums:
        return
    raise RequestRefused(
        code,
        f"queueId[{queue_id}] is illegal, topic:[{topic.topic_name}] "
        f"topicConfig.readQueueNums:[{topic.read_queue_nums}] "
        f"consumer:[/{request.channel.remote_address}]",
    )


def wanted_by(topic: str, group: str, expression: str | None, kind: str | None) -> Wanted:
    """What an expression lets through.  Raises RequestRefused."""
    if not expression:
        return Wanted()
    refused = RequestRefused(
        ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
    )
    try:
        subscription = build_subscription(topic, expression, kind, sub_version=0)
    except SubscriptionError:
        raise refused from None
    if subscription.is_tag_type:
        return Wanted(subscription.tag_hashes)
    compiled = compiled_or_none(subscription, group)
    if compiled is None:
        raise refused
    return Wanted(None, record_test(compiled))
