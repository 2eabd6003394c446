"""Asks producers about halves that they have not decided (Java: TransactionalMessageServiceImpl).

A round walks the half queue from where the last one stopped, in one thread that may block.  It
passes what is decided, puts back what is not (so that one slow transaction holds up no other), asks
the producer about what it put back, and stops at the first half that is too young to ask about.
How far it came is the offset of the group CID_RMQ_SYS_TRANS in the half and the op topic.

Before a half counts as open, `Decisions` is looked at and then the op topic to its end; Java looks
less far and so asks about some that are decided.  Before an offset moves, the store is flushed:
what it passes over was put back or delivered, and that must not be lost while the offset is kept.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from pyritemq.protocol.fields import parse_long
from pyritemq.protocol.record import decode_properties
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.offsets import NOT_FOUND
from pyritemq.server.broker.transactions.decisions import Standing
from pyritemq.server.broker.transactions.halves import (
    CHECK_TIMES,
    IMMUNITY_SECONDS,
    PREPARED_QUEUE_OFFSET,
    PRODUCER_GROUP,
    QUEUE_ID,
    discarded,
    immune,
    put_back,
    question,
)
from pyritemq.server.broker.transactions.ops import NOTHING_NEW, OpReader, records_of
from pyritemq.storage.messages import GetStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.protocol.record import Record
    from pyritemq.server.broker.state.channels import ProducerTable
    from pyritemq.server.broker.state.offsets import ConsumerOffsetTable
    from pyritemq.server.broker.state.topics import TopicTable
    from pyritemq.server.broker.transactions.decisions import Decisions
    from pyritemq.storage.message_store import MessageStore
    from pyritemq.storage.messages import MessageToStore, PutResult

logger = logging.getLogger(__name__)

GROUP = "CID_RMQ_SYS_TRANS"
ROUND_MS_MAX = 60_000
"""Java's MAX_PROCESS_TIME_LIMIT; the next round goes on."""

READ_COUNT = 32
HOUR_MS = 3_600_000


class Parts(Protocol):
    """What a check needs of the broker."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def store(self) -> MessageStore: ...
    @property
    def offsets(self) -> ConsumerOffsetTable: ...
    @property
    def topics(self) -> TopicTable: ...
    @property
    def producers(self) -> ProducerTable: ...


class HalfCheck:
    """One round after the other; `put` stores one message and waits, None if it was not stored."""

    def __init__(
        self,
        parts: Parts,
        decisions: Decisions,
        put: Callable[[MessageToStore], PutResult | None],
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self.parts = parts
        self.decisions = decisions
        self.put = put
        self.now_ms = now_ms

    def round(self) -> None:
        """Look at all that may be asked about.  Raises OSError, StorageError, RecordError."""
        first = self._begin(names.TRANS_HALF_TOPIC)
        op_first = self._begin(names.TRANS_OP_HALF_TOPIC)
        ops = OpReader(self.parts.store, offset=op_first, half_offset=first)
        ops.read_on()
        walk = _Walk(self, ops, first)
        try:
            walk.run()
        finally:
            if walk.offset != first:
                self.parts.store.flush()
                self._reached(names.TRANS_HALF_TOPIC, walk.offset)
        op_next = ops.next_offset(walk.front_ms())
        if op_next != op_first:
            self._reached(names.TRANS_OP_HALF_TOPIC, op_next)

    def _begin(self, topic: str) -> int:
        offset = self.parts.offsets.query(GROUP, topic, QUEUE_ID)
        return self.parts.store.min_offset(topic, QUEUE_ID) if offset == NOT_FOUND else offset

    def _reached(self, topic: str, offset: int) -> None:
        self.parts.offsets.commit(GROUP, topic, QUEUE_ID, offset, peer="transaction check")


class _Walk:
    """One round's way through the half queue; `offset` is the first half that it did not pass."""

    def __init__(self, check: HalfCheck, ops: OpReader, offset: int) -> None:
        self.offset = offset
        self._ops = ops
        self._parts = check.parts
        self._decisions = check.decisions
        self._put = check.put
        self._now_ms = check.now_ms
        self._started_ms = check.now_ms()
        self._read: dict[int, Record] = {}

    def run(self) -> None:
        corrected = False
        while self._now_ms() - self._started_ms <= ROUND_MS_MAX:
            if self._ops.decides(self.offset):
                self._ops.passed(self.offset)
                self.offset += 1
                continue
            nearest = self._look(self.offset)
            if nearest == self.offset:
                if not self._settle(self._read.pop(self.offset)):
                    return
                self.offset += 1
            elif nearest is None or corrected:
                return
            else:
                corrected = True
                logger.warning("half offset corrected from=%d to=%d", self.offset, nearest)
                self.offset = nearest

    def front_ms(self) -> int | None:
        """Store time of the half that the next round begins with."""
        stored_ms = self._parts.store.store_time_at(names.TRANS_HALF_TOPIC, QUEUE_ID, self.offset)
        return None if stored_ms < 0 else stored_ms

    def _look(self, offset: int) -> int | None:
        """The offset, with its record read; else where to go on; None at the queue's end."""
        if offset in self._read:
            return offset
        found = self._parts.store.get(
            names.TRANS_HALF_TOPIC, QUEUE_ID, offset, count_max=READ_COUNT
        )
        if found.status is not GetStatus.FOUND:
            return None if found.status in NOTHING_NEW else found.next_begin_offset
        self._read = {record.queue_offset: record for record in records_of(found)}
        return offset if offset in self._read else found.next_begin_offset

    def _settle(self, half: Record) -> bool:
        """Do what is to be done about a half that no op names so far; False to stop here."""
        properties = decode_properties(half.properties)
        known_as = _number(properties.get(PREPARED_QUEUE_OFFSET), half.queue_offset)
        for offset in {half.queue_offset, known_as}:
            standing = self._decisions.standing(offset)
            if standing is not Standing.OPEN:
                return standing is Standing.DECIDED
        self._ops.read_on()
        for offset in {half.queue_offset, known_as}:
            if self._ops.decides(offset):
                self._ops.passed(offset)
                return True
        return self._settle_open(half, properties)

    def _settle_open(self, half: Record, properties: dict[str, str]) -> bool:
        config = self._parts.config
        age_ms = self._now_ms() - half.born_timestamp
        times = _number(properties.get(CHECK_TIMES), 0)
        if times >= config.transaction_check_max and CHECK_TIMES in properties:
            return self._discard(half, "asked often enough")
        if age_ms > config.file_reserved_time * HOUR_MS:
            return self._discard(half, "older than fileReservedTime")
        if half.store_timestamp >= self._started_ms:
            return False  # of this round's own making, or the next round's business
        immunity = properties.get(IMMUNITY_SECONDS)
        if immunity is not None:
            if age_ms <= _immunity_ms(immunity, config.transaction_time_out):
                return self._put(immune(half, properties)) is not None
        elif 0 <= age_ms <= config.transaction_time_out:
            return False
        return self._ask(half, {**properties, CHECK_TIMES: str(times + 1)})

    def _discard(self, half: Record, reason: str) -> bool:
        topic = names.TRANS_CHECK_MAX_TIME_TOPIC
        self._parts.topics.create_on_send_back(topic, queue_nums=1)
        logger.error("half message discarded offset=%d reason=%s", half.queue_offset, reason)
        return self._put(discarded(half)) is not None

    def _ask(self, half: Record, properties: dict[str, str]) -> bool:
        place = self._put(put_back(half, properties))
        if place is None:
            return False
        group = properties.get(PRODUCER_GROUP, "")
        channel = self._parts.producers.available_channel(group)
        if channel is None:
            logger.warning("transaction not checked group=%s reason=nobody is connected", group)
            return True
        try:
            broker_name = self._parts.config.broker_name
            channel.post(question(half, properties, place, broker_name=broker_name))
        except ValueError as fault:
            logger.error("transaction not checked offset=%d reason=%s", half.queue_offset, fault)
        return True


def _number(text: str | None, default: int) -> int:
    """Java's getLong: -1 for what is no number."""
    if text is None:
        return default
    try:
        return parse_long(text)
    except ValueError:
        return -1


def _immunity_ms(text: str, timeout_ms: int) -> int:
    """How old a half has to be before it is asked about, if it says so itself."""
    seconds = _number(text, -1)
    return timeout_ms if seconds == -1 else seconds * 1000
