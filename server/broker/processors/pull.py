"""PULL_MESSAGE and LITE_PULL_MESSAGE, on the pull lane.

Takes all pulls of a drain.  A reply's body is handed on as slices of the mapped CommitLog, so the
only copy of a message is the one into the socket.  A pull that finds nothing and may wait goes to
`LongPolling`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.headers.pull import PullForbiddenHeader, decode_pull
from pyritemq.protocol.pull_reply import encode_pull_reply_head
from pyritemq.server.broker.filters.bit_maps import bit_map_test
from pyritemq.server.broker.filters.matching import record_test, retry_record_test
from pyritemq.server.broker.filters.sql92 import no_such_filter
from pyritemq.server.broker.filters.table import compiled_or_none
from pyritemq.server.broker.long_polling import HeldPull
from pyritemq.server.broker.remarks import see_faq
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.groups import READ_BIT
from pyritemq.server.broker.state.subscriptions import (
    CONSUME_ACTIVELY,
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
    from pyritemq.server.broker.filters.matching import RecordTest
    from pyritemq.server.broker.filters.sql92 import Expression
    from pyritemq.server.broker.filters.table import ConsumerFilterData
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.server.broker.state.subscriptions import Subscription
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request
    from pyritemq.storage.consume_queue_ext import AcceptsExt

COMMIT_OFFSET = 1 << 0
SUSPEND = 1 << 1
SUBSCRIPTION = 1 << 2

MASTER_ID = 0

# Java's ForbiddenType: why a reader is turned away, for clients that ask.
BROKER_FORBIDDEN = 1
GROUP_FORBIDDEN = 2
TOPIC_FORBIDDEN = 3
BROADCASTING_DISABLE_FORBIDDEN = 4
SUBSCRIPTION_FORBIDDEN = 5

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
REMARK_OF_STATUS = {status: status.name for status in GetStatus}
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
    wanted = _wanted(broker, header, group)
    if broker.config.reject_pull_consumer_enable:
        _check_pull_consumer(broker, request, header)
    if request.suspended and request.header.probing and _waits_on(broker, request.header, wanted):
        return
    result = _reset(broker, header) or broker.store.get(
        header.topic,
        header.queue_id,
        header.queue_offset,
        count_max=header.max_msg_nums,
        accepts=wanted.tag_hashes,
        matches=wanted.matches,
        accepts_ext=wanted.accepts_ext,
    )
    broker.stats.count_get(header.consumer_group, header.topic, result)
    if broker.config.disable_consume_if_consumer_read_slowly:
        broker.slow_readers.note(header.consumer_group, header.topic, header.queue_id, result)
    code = _code_of(result, header.queue_offset)
    broker.offsets.commit_pull(
        header.consumer_group, header.topic, header.queue_id, result.next_begin_offset
    )
    if header.sys_flag & COMMIT_OFFSET and not request.suspended:
        broker.offsets.commit(
            header.consumer_group, header.topic, header.queue_id, header.commit_offset
        )
    if code is ResponseCode.PULL_NOT_FOUND and not request.suspended and header.sys_flag & SUSPEND:
        broker.long_polling.hold(_held(broker, request, header, wanted))
        return
    _reply(broker, request, result, code, topic, group, outbox)


def _waits_on(broker: Broker, held: HeldPull, wanted: Wanted) -> bool:
    """Whether nothing that has arrived for a held pull matches, so that it is held on.

    A filter that has changed meanwhile must look at everything again: then the pull is answered.
    """
    if wanted.matches is None or wanted.expression is not held.expression:
        return False
    topic, queue_id = held.key
    found = broker.store.get(topic, queue_id, held.looked_at, count_max=1, matches=wanted.matches)
    if found.status is not GetStatus.NO_MATCHED_MESSAGE:
        return False
    if found.next_begin_offset < found.max_offset:
        return False  # more to look at than one pull may: the client goes on from there
    held.looked_at = found.next_begin_offset
    broker.long_polling.hold(held)
    return True


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


class Wanted(NamedTuple):
    """What a pull lets through: tag hashes (None: any), and a test of whole records (None: any)."""

    tag_hashes: frozenset[int] | None
    matches: RecordTest | None = None
    expression: Expression | None = None
    accepts_ext: AcceptsExt | None = None


def _wanted(broker: Broker, header: PullFields, group: SubscriptionGroupConfig) -> Wanted:
    """From the pull's own header, or from its group's heartbeat."""
    if header.sys_flag & SUBSCRIPTION:
        subscription = _own_subscription(header)
    else:
        subscription = _known_subscription(broker, header, group)
    if subscription.is_tag_type:
        # The hash only pre-selects: the client compares the tag's text itself.
        return Wanted(subscription.tag_hashes)
    return _wanted_by_expression(broker, header, subscription)


def _known_subscription(
    broker: Broker, header: PullFields, group: SubscriptionGroupConfig
) -> Subscription:
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
    if broker.groups.is_forbidden(header.consumer_group, header.topic, READ_BIT):
        raise _forbidden(
            SUBSCRIPTION_FORBIDDEN,
            f"the consumer group[{header.consumer_group}] is forbidden for topic[{header.topic}]",
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
    return subscription


def _check_pull_consumer(broker: Broker, request: Request[Any], header: PullFields) -> None:
    """With rejectPullConsumerEnable only push consumers, and the groups of tools, may pull."""
    consumers = broker.consumers.get(header.consumer_group)
    if consumers is not None and consumers.consume_type != CONSUME_ACTIVELY:
        return
    is_known = consumers is not None and request.channel in consumers.clients
    if not is_known and not names.is_pulling_system_group(header.consumer_group):
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            see_faq(
                "the consumer's group info not exist, or the pull consumer is rejected by server."
            ),
        )


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


def _wanted_by_expression(broker: Broker, header: PullFields, subscription: Subscription) -> Wanted:
    """An expression that does not compile, in a pull of its own, selects everything: so Java's
    broker answers a pull consumer, which does not ask CHECK_CLIENT_CONFIG first."""
    accepts_ext = None
    if header.sys_flag & SUBSCRIPTION:
        expression = compiled_or_none(subscription, header.consumer_group)
    else:
        data = _registered_filter(broker, header)
        expression = data.compiled
        if broker.store.exts is not None:
            accepts_ext = bit_map_test(data, bit_num=broker.filters.bit_num)
    if not broker.config.enable_property_filter:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, no_such_filter(subscription.expression_type)
        )
    if subscription.class_filter_mode:
        return Wanted(None)
    if broker.config.filter_support_retry and header.topic.startswith(names.RETRY_TOPIC_PREFIX):
        return Wanted(None, _retry_test(broker, header.consumer_group))
    if expression is None:
        return Wanted(None)
    return Wanted(None, record_test(expression), expression, accepts_ext)


def _registered_filter(broker: Broker, header: PullFields) -> ConsumerFilterData:
    data = broker.filters.get(header.topic, header.consumer_group)
    if data is None:
        raise RequestRefused(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if data.client_version < header.sub_version:
        raise RequestRefused(
            ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest"
        )
    return data


def _retry_test(broker: Broker, group: str) -> RecordTest:
    def expression_of(topic: str) -> Expression | None:
        data = broker.filters.get(topic, group)
        return None if data is None else data.compiled

    return retry_record_test(expression_of)


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
    wanted: Wanted,
) -> HeldPull:
    config = broker.config
    wait_ms = header.suspend_timeout_millis
    if not config.long_polling_enable:
        wait_ms = config.short_polling_time_mills
    return HeldPull(
        request,
        (header.topic, header.queue_id),
        offset=header.queue_offset,
        tag_hashes=wanted.tag_hashes,
        expression=wanted.expression,
        wait_ms=wait_ms,
    )


def _reply(
    broker: Broker,
    request: Request[Any],
    result: GetResult,
    code: ResponseCode,
    topic: TopicConfig,
    group: SubscriptionGroupConfig,
    outbox: Outbox,
) -> None:
    if request.command.is_oneway:
        return
    broker_id = MASTER_ID
    if broker.config.slave_read_enable:
        behind = result.suggest_pulling_from_slave
        broker_id = group.which_broker_when_consume_slowly if behind else group.broker_id
    head = encode_pull_reply_head(
        request.command,
        code,
        REMARK_OF_STATUS[result.status],
        broker_id=broker_id,
        next_offset=result.next_begin_offset,
        min_offset=result.min_offset,
        max_offset=result.max_offset,
        topic_sys_flag=topic.topic_sys_flag,
        group_sys_flag=group.group_sys_flag,
        body_length=result.bytes_total,
    )
    outbox.add(request.channel, head, *result.slices)


def _forbidden(kind: int, remark: str) -> RequestRefused:
    header = PullForbiddenHeader(forbidden_type=kind)
    return RequestRefused(ResponseCode.NO_PERMISSION, remark, header)
