"""What one pop takes, from which queues, and where it begins; on the pull lane.

Java: PopMessageProcessor.popMsgFromTopic and popMsgFromQueue (5.5.0, without its key-value store).
A pop looks into its topic and, mostly afterwards, into its group's retry topic.  What it takes is
noted as under way (`positions`), and becomes a check point that the caller has stored; what is
popped in order is noted in the order info instead, and stays where it is until it is acked.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.protocol.record import decode_record
from pyritemq.server.broker.pop.handles import (
    ORDER_REVIVE_QUEUE,
    Handle,
    handle_text,
    msg_offset_info,
    start_offset_info,
)
from pyritemq.server.broker.pop.retry_records import shown_record
from pyritemq.server.broker.pop.retry_topics import kind_of, pop_retry_topic, retry_topic_v1
from pyritemq.server.broker.pop.revive_records import check_point
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.attributes import MESSAGE_TYPE
from pyritemq.storage.messages import GetStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyritemq.compat.register_body import TopicConfig
    from pyritemq.protocol.headers.pop import PopMessageHeader
    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.filters.matching import RecordTest
    from pyritemq.server.broker.pop.positions import Claim, QueueKey, Taken
    from pyritemq.server.broker.pop.revive_records import CheckPoint
    from pyritemq.server.broker.state.groups import SubscriptionGroupConfig
    from pyritemq.storage.messages import GetResult

INIT_MODE_MIN = 0
"""ConsumeInitMode: a group that is new to a queue begins with its first message; 1: its last."""

PRIORITY = "PRIORITY"
PRIORITY_FACTOR = "priority.factor"
PERCENT = 100
PRIORITY_FACTOR_DEFAULT = 100

_WRONG_OFFSET = frozenset(
    {
        GetStatus.OFFSET_TOO_SMALL,
        GetStatus.OFFSET_OVERFLOW_BADLY,
        GetStatus.OFFSET_FOUND_NULL,
    }
)
_PASSED_OVER = frozenset(
    {
        GetStatus.NO_MATCHED_MESSAGE,
        GetStatus.OFFSET_FOUND_NULL,
        GetStatus.MESSAGE_WAS_REMOVING,
    }
)
_SIZE = Struct(">i")
_QUEUE_OFFSET = Struct(">q")
_QUEUE_OFFSET_AT = 20


class Wanted(NamedTuple):
    """What a pop lets through; None: anything."""

    tag_hashes: frozenset[int] | None = None
    matches: RecordTest | None = None


class Part(NamedTuple):
    """What came from one queue; a pop in order has no check point to store."""

    topic: str
    queue_id: int
    start_offset: int
    offsets: list[int]
    body: list[memoryview | bytes]
    point: CheckPoint | None = None
    taken: Taken | None = None


@dataclass(slots=True)
class Pop:
    """One pop under way."""

    header: PopMessageHeader
    wanted: Wanted
    pop_time: int
    revive_queue_id: int
    parts: list[Part] = field(default_factory=list)
    order_counts: list[str] = field(default_factory=list)
    rest: int = 0
    count: int = 0

    @property
    def room(self) -> int:
        return self.header.max_msg_nums - self.count

    @property
    def start_offset_info(self) -> str:
        return ";".join(start_offset_info(p.topic, p.queue_id, p.start_offset) for p in self.parts)

    @property
    def msg_offset_info(self) -> str:
        return ";".join(msg_offset_info(p.topic, p.queue_id, p.offsets) for p in self.parts)


def pop(
    broker: Broker,
    header: PopMessageHeader,
    wanted: Wanted,
    topic: TopicConfig,
    group: SubscriptionGroupConfig,
) -> Pop:
    """Take up to `maxMsgNums` messages."""
    config = broker.config
    dice = random.randrange(PERCENT)  # noqa: S311 - spreads load only
    revive_queue_id = ORDER_REVIVE_QUEUE
    if not header.order:
        revive_queue_id = random.randrange(config.revive_queue_num)  # noqa: S311
    taking = Pop(header, wanted, broker.clock.now_ms(), revive_queue_id)
    by_priority = _goes_by_priority(header, topic, group, dice)
    chance = config.pop_from_retry_probability
    if by_priority:
        chance = config.pop_from_retry_probability_for_priority
    first_queue = 0 if by_priority else dice
    retry_topic = _retry_topic(broker, header, dice)
    retry_first = dice < chance and not header.order
    if retry_first:
        _pop_topic(broker, taking, retry_topic, first_queue)
    if header.queue_id < 0:
        _pop_topic(broker, taking, topic, first_queue)
    else:
        _pop_queue(broker, taking, topic.topic_name, header.queue_id)
    if not retry_first and not header.order and taking.room > 0:
        _pop_topic(broker, taking, retry_topic, first_queue)
    return taking


def topics_of(broker: Broker, topic: str, group: str) -> list[str]:
    """Everything that a pop may look into: the topic and its retry topics."""
    config = broker.config
    found = [topic, pop_retry_topic(topic, group, v2=config.enable_retry_topic_v2)]
    if config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1:
        found.append(retry_topic_v1(topic, group))
    return found


def queue_ends(broker: Broker, topic: str, group: str) -> int:
    """Grows whenever a message arrives that a pop could take."""
    return sum(
        broker.store.max_offset(name, queue_id)
        for name in topics_of(broker, topic, group)
        if (config := broker.topics.get(name)) is not None
        for queue_id in range(config.read_queue_nums)
    )


def _goes_by_priority(
    header: PopMessageHeader, topic: TopicConfig, group: SubscriptionGroupConfig, dice: int
) -> bool:
    if header.order or topic.attributes.get(MESSAGE_TYPE) != PRIORITY:
        return False
    factor = group.attributes.get(PRIORITY_FACTOR, "")
    return dice < (int(factor) if factor.isdecimal() else PRIORITY_FACTOR_DEFAULT)


def _retry_topic(broker: Broker, header: PopMessageHeader, dice: int) -> TopicConfig | None:
    """One of the spellings: the reply cannot hold queues of both."""
    _, *spellings = topics_of(broker, header.topic, header.consumer_group)
    old_one = len(spellings) > 1 and dice % 2 == 0
    return broker.topics.get(spellings[-1 if old_one else 0])


def _pop_topic(broker: Broker, taking: Pop, topic: TopicConfig | None, first_queue: int) -> None:
    if topic is None:
        return
    total = topic.read_queue_nums
    for i in range(total):
        index = total - 1 - i if broker.config.priority_order_asc else i
        _pop_queue(broker, taking, topic.topic_name, (index + first_queue) % total)


def _pop_queue(broker: Broker, taking: Pop, topic: str, queue_id: int) -> None:
    group = taking.header.consumer_group
    key = (topic, group, queue_id)
    _take_reset(broker, key)
    positions = broker.pop.positions
    claim = positions.claim(key, lambda: first_offset(broker, key, taking.header.init_mode))
    if claim is None:
        if not taking.header.order:
            behind = broker.store.max_offset(topic, queue_id) - positions.next_offset(key)
            taking.rest += max(behind, 0)
        return
    try:
        _pop_claimed(broker, taking, key, claim)
    finally:
        positions.release(claim)


def _take_reset(broker: Broker, key: QueueKey) -> None:
    """An operator has moved the group."""
    topic, group, queue_id = key
    offset = broker.offsets.take_reset(group, topic, queue_id)
    if offset is not None:
        broker.pop.orders.clear(key)
        broker.pop.positions.abandon(key)
        broker.offsets.commit(group, topic, queue_id, offset)


def first_offset(broker: Broker, key: QueueKey, init_mode: int) -> int:
    """Where a group begins that is new to a queue."""
    topic, _, queue_id = key
    store = broker.store
    if init_mode == INIT_MODE_MIN or topic.startswith(names.RETRY_TOPIC_PREFIX):
        return store.min_offset(topic, queue_id)
    if broker.config.init_pop_offset_by_check_msg_in_mem and store.min_offset(topic, queue_id) <= 0:
        first = store.get(topic, queue_id, 0, count_max=1)
        if first.status is GetStatus.FOUND and not first.suggest_pulling_from_slave:
            return 0
    return max(store.max_offset(topic, queue_id) - 1, 0)


def _pop_claimed(broker: Broker, taking: Pop, key: QueueKey, claim: Claim) -> None:
    header = taking.header
    topic, group, queue_id = key
    if header.order and broker.pop.orders.is_blocked(key, header.attempt_id, header.invisible_time):
        return  # its backlog does not count: the ack that ends the block lets others look
    offset = claim.offset
    if header.order:  # an ack marks and commits at once, so this belongs to what was just looked at
        offset = broker.offsets.query(group, topic, queue_id)
    if taking.room <= 0:
        taking.rest += max(broker.store.max_offset(topic, queue_id) - offset, 0)
        return
    result = _get(broker, taking, key, offset)
    if result.status in _WRONG_OFFSET:
        offset = result.next_begin_offset
        broker.offsets.commit(group, topic, queue_id, offset)
        result = _get(broker, taking, key, offset)
    if result.count:
        broker.stats.count_get(group, topic, result)
        _take(broker, taking, key, claim, offset, result)
    elif result.status in _PASSED_OVER:
        _pass_over(broker, taking, key, claim, result.next_begin_offset)
    taking.rest += max(result.max_offset - result.next_begin_offset, 0)


def _get(broker: Broker, taking: Pop, key: QueueKey, offset: int) -> GetResult:
    topic, _, queue_id = key
    return broker.store.get(
        topic,
        queue_id,
        offset,
        count_max=taking.room,
        accepts=taking.wanted.tag_hashes,
        matches=taking.wanted.matches,
    )


def _pass_over(broker: Broker, taking: Pop, key: QueueKey, claim: Claim, end: int) -> None:
    """Nothing there is for this group: go on behind it."""
    topic, group, queue_id = key
    if taking.header.order:
        broker.offsets.commit(group, topic, queue_id, end)
    else:
        positions = broker.pop.positions
        positions.settle(positions.advance(claim, end))


def _take(
    broker: Broker, taking: Pop, key: QueueKey, claim: Claim, offset: int, result: GetResult
) -> None:
    header = taking.header
    topic, group, queue_id = key
    records = list(_records(result.slices))
    offsets = [_QUEUE_OFFSET.unpack_from(record, _QUEUE_OFFSET_AT)[0] for record in records]
    taking.count += result.count
    body: list[memoryview | bytes] = [*result.slices]
    if header.order:
        taking.order_counts += broker.pop.orders.update(
            key,
            offsets,
            attempt_id=header.attempt_id,
            pop_time=taking.pop_time,
            invisible_time=header.invisible_time,
        )
        broker.offsets.commit(group, topic, queue_id, offset)
        taking.parts.append(Part(topic, queue_id, offset, offsets, body))
        broker.pop.watch(key)
        return
    point = check_point(
        topic=topic,
        group=group,
        queue_id=queue_id,
        start_offset=offset,
        offsets=offsets,
        pop_time=taking.pop_time,
        invisible_time=header.invisible_time,
        broker_name=broker.config.broker_name,
    )
    if topic != header.topic and not broker.config.pop_response_return_actual_retry_topic:
        body = [_shown(taking, point, record) for record in records]
    taken = broker.pop.positions.advance(claim, result.next_begin_offset)
    taking.parts.append(Part(topic, queue_id, offset, offsets, body, point, taken))


def _shown(taking: Pop, point: CheckPoint, view: memoryview) -> bytes:
    record = decode_record(view)
    handle = Handle(
        point.start_offset,
        point.pop_time,
        point.invisible_time,
        taking.revive_queue_id,
        kind_of(point.topic),
        point.broker_name,
    )
    text = handle_text(handle, record.queue_id, record.queue_offset)
    return shown_record(record, topic=taking.header.topic, handle=text)


def _records(slices: list[memoryview]) -> Iterator[memoryview]:
    """Each record of slices that hold several."""
    for view in slices:
        at = 0
        while at < len(view):
            (size,) = _SIZE.unpack_from(view, at)
            yield view[at : at + size]
            at += size
