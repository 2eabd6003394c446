"""PULL_MESSAGE and LITE_PULL_MESSAGE, on the pull lane.

Takes all pulls of a drain.  A reply's body is handed on as slices of the mapped CommitLog, so the
only copy of a message is the one into the socket.  A pull that finds nothing and may wait goes to
`LongPolling`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.pull import PullMessageReplyHeader, decode_pull
from pyritemq.protocol.pull_reply import encode_pull_reply_head
from pyritemq.server.broker.long_polling import HeldPull
from pyritemq.server.broker.remarks import see_faq
from pyritemq.server.broker.state.subscriptions import (
    SubscriptionError,
    build_subscription,
)
from pyritemq.server.failures import reply_to_failure
from pyritemq.server.lanes import Lane
from pyritemq.server.registry import RequestRefused, broker_handlers
from pyritemq.storage.messages import GetResult, GetStatus

if TYPE_CHECKING:
    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.command import Command
    from pyritemq.protocol.headers.pull import PullFields
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.broker.state.subscriptions import Subscription
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request

COMMIT_OFFSET = 1 << 0
SUSPEND = 1 << 1
SUBSCRIPTION = 1 << 2

MASTER_ID = 0

# Java's ForbiddenType: why a reader is turned away, for clients that ask.
GROUP_FORBIDDEN = 1
TOPIC_FORBIDDEN = 2
BROADCASTING_DISABLE_FORBIDDEN = 3
BROKER_FORBIDDEN = 4

CODE_OF_STATUS = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}
# With these two the code depends on the offset that was asked for.
EMPTY_QUEUE = (GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE)


@broker_handlers.handles_batch(
    RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, lane=Lane.PULL
)
def pull_messages(broker: Broker, requests: list[Request[Any]], outbox: Outbox) -> None:
    for request in requests:
        try:
            _pull(broker, request, outbox)
        except Exception as error:  # noqa: BLE001 - one bad pull must not fail its neighbours
            outbox.add_reply(request, reply_to_failure(request, error))


def _pull(broker: Broker, request: Request[Any], outbox: Outbox) -> None:
    header = decode_pull(request.command)
    group, topic = _check_access(broker, request.command, header)
    _check_queue(request, header, topic)
    tags = _subscribed_tags(broker, header, group)
    result = _reset(broker, header) or broker.store.get(
        header.topic,
        header.queue_id,
        header.queue_offset,
        count_max=header.max_msg_nums,
        accepts=tags,
    )
    broker.stats.count_get(header.consumer_group, header.topic, result)
    code = _code_of(result, header.queue_offset)
    broker.offsets.commit_pull(
        header.consumer_group, header.topic, header.queue_id, result.next_begin_offset
    )
    if header.sys_flag & COMMIT_OFFSET and not request.suspended:
        broker.offsets.commit(
            header.consumer_group, header.topic, header.queue_id, header.commit_offset
        )
    if code is ResponseCode.PULL_NOT_FOUND and not request.suspended and header.sys_flag & SUSPEND:
        broker.long_polling.hold(_held(broker, request, header, tags))
        return
    _reply(request, result, code, topic, group, outbox)


def _check_access(
    broker: Broker, command: Command, header: PullFields
) -> tuple[SubscriptionGroupConfig, TopicConfig]:
    config = broker.config
    if not config.broker_permission & broker.READ:
        raise _forbidden(
            BROKER_FORBIDDEN, f"the broker[{config.broker_ip1}] pulling message is forbidden"
        )
    if command.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull_message_enable:
        raise _forbidden(
            BROKER_FORBIDDEN,
            f"the broker[{config.broker_ip1}] for lite pull consumer is forbidden",
        )
    group = broker.groups.find(header.consumer_group)
    if group is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            see_faq(f"subscription group [{header.consumer_group}] does not exist, "),
        )
    if not group.consume_enable:
        raise _forbidden(
            GROUP_FORBIDDEN, f"subscription group no permission, {header.consumer_group}"
        )
    topic = broker.topics.get(header.topic)
    if topic is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST,
            see_faq(f"topic[{header.topic}] not exist, apply first please! "),
        )
    if not topic.perm & broker.READ:
        raise _forbidden(TOPIC_FORBIDDEN, f"the topic[{header.topic}] pulling message is forbidden")
    return group, topic


def _check_queue(request: Request[Any], header: PullFields, topic: TopicConfig) -> None:
    if not 0 <= header.queue_id < topic.read_queue_nums:
        raise RequestRefused(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
            f"topicConfig.readQueueNums:[{topic.read_queue_nums}] "
            f"consumer:[/{request.channel.remote_address}]",
        )


def _subscribed_tags(
    broker: Broker, header: PullFields, group: SubscriptionGroupConfig
) -> frozenset[int] | None:
    """The tag hashes that this pull wants, from its own header or from the group's heartbeat."""
    if header.sys_flag & SUBSCRIPTION:
        return _tags_of(_own_subscription(header))
    consumers = broker.consumers.get(header.consumer_group)
    if consumers is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_EXIST, see_faq("the consumer's group info not exist")
        )
    if not group.consume_broadcast_enable and consumers.is_broadcasting:
        raise _forbidden(
            BROADCASTING_DISABLE_FORBIDDEN,
            f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
        )
    subscription = consumers.subscriptions.get(header.topic)
    if subscription is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_EXIST, see_faq("the consumer's subscription not exist")
        )
    if subscription.sub_version < header.sub_version:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
        )
    return _tags_of(subscription)


def _own_subscription(header: PullFields) -> Subscription:
    try:
        return build_subscription(
            header.topic,
            header.subscription,
            header.expression_type,
            sub_version=header.sub_version,
        )
    except SubscriptionError:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
        ) from None


def _tags_of(subscription: Subscription) -> frozenset[int] | None:
    """The hashes that a ConsumeQueue unit is compared with; None takes every message.

    The hash only pre-selects: the client compares the tag's text itself.
    """
    if not subscription.is_tag_type:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            "The broker does not support consumer to filter message by "
            f"{subscription.expression_type}",
        )
    return subscription.tag_hashes


def _reset(broker: Broker, header: PullFields) -> GetResult | None:
    """The answer to a pull whose queue an operator has set to another offset meanwhile."""
    offset = broker.offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
    if offset is None:
        return None
    store = broker.store
    return GetResult(
        GetStatus.OFFSET_RESET,
        next_begin_offset=offset,
        min_offset=store.min_offset(header.topic, header.queue_id),
        max_offset=store.max_offset(header.topic, header.queue_id),
        slices=[],
        count=0,
        bytes_total=0,
        suggest_pulling_from_slave=False,
    )


def _code_of(result: GetResult, asked_offset: int) -> ResponseCode:
    if result.status in EMPTY_QUEUE:
        return ResponseCode.PULL_OFFSET_MOVED if asked_offset else ResponseCode.PULL_NOT_FOUND
    return CODE_OF_STATUS[result.status]


def _held(
    broker: Broker,
    request: Request[Any],
    header: PullFields,
    tags: frozenset[int] | None,
) -> HeldPull:
    config = broker.config
    wait_ms = header.suspend_timeout_millis
    if not config.long_polling_enable:
        wait_ms = config.short_polling_time_mills
    return HeldPull(
        request,
        (header.topic, header.queue_id),
        offset=header.queue_offset,
        tag_hashes=tags,
        wait_ms=wait_ms,
    )


def _reply(
    request: Request[Any],
    result: GetResult,
    code: ResponseCode,
    topic: TopicConfig,
    group: SubscriptionGroupConfig,
    outbox: Outbox,
) -> None:
    if request.command.is_oneway:
        return
    head = encode_pull_reply_head(
        request.command,
        code,
        result.status.name,
        broker_id=MASTER_ID,
        next_offset=result.next_begin_offset,
        min_offset=result.min_offset,
        max_offset=result.max_offset,
        topic_sys_flag=topic.topic_sys_flag,
        group_sys_flag=group.group_sys_flag,
        body_length=result.bytes_total,
    )
    outbox.add(request.channel, head, *result.slices)


def _forbidden(kind: int, remark: str) -> RequestRefused:
    header = PullMessageReplyHeader(
        suggest_which_broker_id=MASTER_ID,
        next_begin_offset=0,
        min_offset=0,
        max_offset=0,
        forbidden_type=kind,
    )
    return RequestRefused(ResponseCode.NO_PERMISSION, remark, header)
