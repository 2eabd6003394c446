"""Takes timer messages into the wheel and finds those that are due (Java: TimerMessageStore).

Blocking work on files and the store, one step at a time, in a thread that the service provides; the
state belongs to whoever runs the step, and to `settle`, which the send lane calls while the service
waits for it.  Time is cut into slots of `precision_ms`:

    read_time_ms        slots before it have been delivered
    write_time_ms       now, rounded down: slots before it are due, and take no timer any more
    queue_offset        messages of the timer topic below it are in the wheel, or delivered
    log_pos             units of the timer log below it belong to messages below queue_offset

A step takes in one batch of the timer topic's queue and reads one batch of a due slot.  It returns
what has to be put: due messages, those that were due before they reached the wheel, and those that
go round once more because their time is further away than `roll_slots`.  Nothing that the step did
counts until `settle`, so a message that could not be put is put again.

Memory: a batch, and 8 bytes for each timer of the slot that is being delivered.
"""

from __future__ import annotations

import logging
from array import array
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.compat.java_hash import java_string_hash
from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.fields import parse_long
from pyritemq.protocol.record import decode_properties, decode_record
from pyritemq.server.broker.delays.rewriting import REAL_TOPIC, NotDeliverable
from pyritemq.server.broker.state import names
from pyritemq.server.broker.timers.rewriting import (
    NEVER_ENQUEUED_MS,
    TIMER_DEL_UNIQKEY,
    TIMER_OUT_MS,
    UNIQ_KEY,
    due_message,
    rolled_message,
)
from pyritemq.storage.consume_queue import UNIT
from pyritemq.storage.timers.log import MAGIC_DEFAULT, MAGIC_DELETE, MAGIC_ROLL
from pyritemq.storage.timers.wheel import NOWHERE, SLOTS_TOTAL, Slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.record import Record
    from pyritemq.storage.consume_queue import ConsumeQueue
    from pyritemq.storage.message_store import MessageStore
    from pyritemq.storage.messages import MessageToStore
    from pyritemq.storage.timers.files import TimerFiles
    from pyritemq.storage.timers.log import TimerUnit

logger = logging.getLogger(__name__)

BATCH_COUNT_MAX = 256
BATCH_BYTES_MAX = 1 << 20
"""Ours: what one append may hold, so that clients' sends do not wait long behind it."""

BLANK_SLOTS = 60
"""Java's TIMER_BLANK_SLOTS: kept free between the newest and the oldest slot."""

_TOPIC = names.TIMER_TOPIC.encode()


class Work(NamedTuple):
    """What a step found: messages to put, and what is true once they have been put."""

    messages: list[MessageToStore]
    queue_offset: int
    next_index: int  # of the next timer in the slot that is being delivered
    gone: list[str]  # topics that have one timer less
    did_something: bool


class _OpenSlot(NamedTuple):
    """A slot that is being delivered: its timers' places in the log, and what was recalled."""

    time_ms: int
    places: array[int]
    recalled: frozenset[str]


class TimerEngine:
    """The wheel's policy on its files."""

    def __init__(
        self,
        store: MessageStore,
        files: TimerFiles,
        *,
        count: Callable[[list[str], int], None],
        now_ms: Callable[[], int],
        roll_slots: int,
        with_topic: bool = False,
    ) -> None:
        self._store = store
        self._wheel = files.wheel
        self._log = files.log
        # What lies behind the CommitLog's end was lost with it, and its place will be used again.
        self._logged = {offset for offset in files.logged if offset < store.max_phy_offset}
        self._taken: set[int] = set()  # by a step that is not settled
        self._count = count
        self._now_ms = now_ms
        self._with_topic = with_topic
        self._precision_ms = files.wheel.precision_ms
        usable = 2 <= roll_slots <= SLOTS_TOTAL - BLANK_SLOTS
        self._roll_slots = roll_slots if usable else SLOTS_TOTAL - BLANK_SLOTS
        self.queue_offset = files.checkpoint.last_timer_queue_offset
        rounded_ms = self._rounded_now()
        oldest_ms = rounded_ms - (SLOTS_TOTAL - BLANK_SLOTS) * self._precision_ms
        self.read_time_ms = files.checkpoint.last_read_time_ms or oldest_ms
        # If the clock was set back, no slot that was delivered takes another timer.
        self.write_time_ms = max(rounded_ms, self.read_time_ms)
        self.log_pos = min(files.checkpoint.last_timer_log_flush_pos, files.log.end)
        self._slot: _OpenSlot | None = None
        self._index = 0

    # -- what the loop asks, memory only --------------------------------------------------------

    def is_idle(self) -> bool:
        """Whether a step would find nothing: no new message, and no slot has ended."""
        queue = self._queue()
        return (
            self._slot is None
            and (queue is None or queue.max_offset == self.queue_offset)
            and self.read_time_ms >= self._rounded_now()
        )

    # -- a step, in a thread --------------------------------------------------------------------

    def step(self) -> Work:
        """Take in a batch and find a batch that is due; `settle` it once its messages are put."""
        self.write_time_ms = max(self.write_time_ms, self._rounded_now())
        offset = self._first_offset()
        taken, queue_offset = self._take_in(offset)
        due, index, gone = self._find_due()
        busy = queue_offset != self.queue_offset or self._slot is not None
        return Work(taken + due, queue_offset, index, gone, busy)

    def settle(self, work: Work) -> None:
        """All messages of the step have been put; its progress counts."""
        self.queue_offset = work.queue_offset
        self.log_pos = self._log.end
        self._taken.clear()
        self._index = work.next_index
        self._count(work.gone, -1)
        slot = self._slot
        if slot is None:
            self.read_time_ms = max(self.read_time_ms, self.write_time_ms)
        elif work.next_index >= len(slot.places):
            self.read_time_ms = slot.time_ms + self._precision_ms
            self._slot = None

    # -- into the wheel -------------------------------------------------------------------------

    def _first_offset(self) -> int:
        """Where to go on, or the nearest that the queue has, if files and checkpoint disagree."""
        queue = self._queue()
        if queue is None:
            return self.queue_offset
        nearest = min(max(self.queue_offset, queue.min_offset), queue.max_offset)
        if nearest != self.queue_offset:
            logger.warning("timer offset corrected from=%d to=%d", self.queue_offset, nearest)
            self.queue_offset = nearest
        return nearest

    def _take_in(self, offset: int) -> tuple[list[MessageToStore], int]:
        """Put a batch of the queue into the wheel; returns what is due already, and the end."""
        queue = self._queue()
        if queue is None or offset >= queue.max_offset:
            self._logged.clear()
            return [], offset
        late: list[MessageToStore] = []
        slots: dict[int, Slot] = {}
        taken: list[int] = []
        topics: tuple[list[str], list[str]] = ([], [])
        bytes_total = 0
        for phy_offset, size, _ in UNIT.iter_unpack(queue.units(offset, BATCH_COUNT_MAX)):
            bytes_total += size
            if bytes_total > BATCH_BYTES_MAX and bytes_total > size:
                break
            offset += 1
            if phy_offset in self._logged or phy_offset in self._taken:
                continue
            found = self._record(phy_offset, size)
            out_ms = None if found is None else _out_ms(found[1], phy_offset)
            if found is None or out_ms is None:
                continue
            record, properties = found
            if out_ms < self.write_time_ms:
                late += self._late(record, properties)
            else:
                self._add(record, properties, out_ms, slots)
                taken.append(phy_offset)
                topics[TIMER_DEL_UNIQKEY in properties].append(properties.get(REAL_TOPIC, ""))
        self._log.write()
        for slot in slots.values():
            self._wheel.put(slot)
        self._taken.update(taken)
        self._count(topics[0], 1)
        self._count(topics[1], -1)
        return late, offset

    def _late(self, record: Record, properties: dict[str, str]) -> list[MessageToStore]:
        """A message whose slot is over; a recall that comes too late is dropped."""
        if TIMER_DEL_UNIQKEY in properties:
            return []
        message = self._made(
            lambda: due_message(
                record, properties, enqueue_ms=NEVER_ENQUEUED_MS, now_ms=self._now_ms()
            ),
            record,
        )
        return [] if message is None else [message]

    def _add(
        self, record: Record, properties: dict[str, str], out_ms: int, slots: dict[int, Slot]
    ) -> None:
        """Stage a unit in the log and its slot."""
        magic = MAGIC_DEFAULT
        window_ms = self._roll_slots * self._precision_ms
        ahead_ms = out_ms - self.write_time_ms
        if ahead_ms >= window_ms:
            magic |= MAGIC_ROLL
            # Half a window for one that would need only a short turn after this one.
            is_short = ahead_ms - window_ms < self._roll_slots // 3 * self._precision_ms
            slots_ahead = self._roll_slots // 2 if is_short else self._roll_slots
            out_ms = self.write_time_ms + slots_ahead * self._precision_ms
        is_recall = TIMER_DEL_UNIQKEY in properties
        if is_recall:
            magic |= MAGIC_DELETE
        time_ms = out_ms // self._precision_ms * self._precision_ms
        slot = slots.get(time_ms) or self._wheel.slot(time_ms)
        pos = self._log.append(
            prev_pos=slot.last_pos,
            magic=magic,
            enqueue_ms=self.write_time_ms,
            delay_ms=out_ms - self.write_time_ms,
            phy_offset=record.phy_offset,
            phy_size=record.total_size,
            topic_hash=java_string_hash(properties.get(REAL_TOPIC, "")),
        )
        first_pos = pos if slot.first_pos == NOWHERE else slot.first_pos
        num = slot.num - 1 if is_recall else slot.num + 1
        slots[time_ms] = Slot(time_ms, first_pos, pos, num, slot.magic)

    # -- out of the wheel -----------------------------------------------------------------------

    def _find_due(self) -> tuple[list[MessageToStore], int, list[str]]:
        """A batch of the first slot that is over: messages, where to go on in it, and topics."""
        if self._slot is None:
            found = next(self._wheel.slots(self.read_time_ms, self.write_time_ms), None)
            if found is None:
                return [], 0, []
            self._slot, self._index = self._open(found), 0
        messages: list[MessageToStore] = []
        gone: list[str] = []
        index, bytes_total = self._index, 0
        for place in self._slot.places[index : index + BATCH_COUNT_MAX]:
            unit = self._log.read(place)
            bytes_total += 0 if unit is None else unit.phy_size
            if messages and bytes_total > BATCH_BYTES_MAX:
                break
            index += 1
            if unit is not None:
                self._collect(unit, self._slot.recalled, messages, gone)
        return messages, index, gone

    def _open(self, slot: Slot) -> _OpenSlot:
        """Follow the slot's chain, which leads from its last timer to its first."""
        places = array("q")
        recalled: set[str] = set()
        place, before = slot.last_pos, slot.last_pos + 1
        while place != NOWHERE and place < before:  # a chain that turns round is damaged
            unit = self._log.read(place)
            if unit is None:
                break
            if unit.magic & MAGIC_DELETE and not unit.magic & MAGIC_ROLL:
                self._collect_recalled(unit, recalled)
            else:
                places.append(place)
            place, before = unit.prev_pos, place
        places.reverse()
        return _OpenSlot(slot.time_ms, places, frozenset(recalled))

    def _collect_recalled(self, unit: TimerUnit, recalled: set[str]) -> None:
        found = self._record(unit.phy_offset, unit.phy_size)
        key = None if found is None else found[1].get(TIMER_DEL_UNIQKEY)
        if found is not None and key is not None:
            recalled.add(key)
            self._count([found[1].get(REAL_TOPIC, "")], 1)  # the recalled timer counts it down

    def _collect(
        self,
        unit: TimerUnit,
        recalled: frozenset[str],
        messages: list[MessageToStore],
        gone: list[str],
    ) -> None:
        """Add a timer's message, unless it was recalled or cannot be read any more."""
        found = self._record(unit.phy_offset, unit.phy_size)
        if found is None:
            return
        record, properties = found
        topic = properties.get(REAL_TOPIC, "")
        gone.append(topic)
        if self._recall_key(topic, properties) in recalled:
            return
        make = rolled_message if unit.magic & MAGIC_ROLL else due_message
        message = self._made(
            lambda: make(record, properties, enqueue_ms=unit.enqueue_ms, now_ms=self._now_ms()),
            record,
        )
        if message is not None:
            messages.append(message)

    def _recall_key(self, topic: str, properties: dict[str, str]) -> str | None:
        key = properties.get(UNIQ_KEY)
        return f"{topic}+{key}" if self._with_topic and key is not None else key

    # -- both -----------------------------------------------------------------------------------

    def _made(self, make: Callable[[], MessageToStore], record: Record) -> MessageToStore | None:
        try:
            return make()
        except NotDeliverable as fault:
            logger.error("timer dropped phy_offset=%d reason=%s", record.phy_offset, fault)
            return None

    def _record(self, phy_offset: int, size: int) -> tuple[Record, dict[str, str]] | None:
        """A message and its properties; None if its file has expired, or another took its place."""
        view = self._store.record_at(phy_offset)
        try:
            record = None if view is None else decode_record(view)
        except RecordError:
            record = None
        if record is None or record.total_size != size or record.topic != names.TIMER_TOPIC:
            logger.warning("timer without its message phy_offset=%d", phy_offset)
            return None
        return record, decode_properties(record.properties)

    def _queue(self) -> ConsumeQueue | None:
        return self._store.queues.find(_TOPIC, 0)

    def _rounded_now(self) -> int:
        return self._now_ms() // self._precision_ms * self._precision_ms


def _out_ms(properties: dict[str, str], phy_offset: int) -> int | None:
    try:
        return parse_long(properties.get(TIMER_OUT_MS, ""))
    except ValueError:
        logger.error("timer without a time dropped phy_offset=%d", phy_offset)
        return None
