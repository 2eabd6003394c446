"""Moves delayed messages to their real topics when they are due (Java: ScheduleMessageService).

The messages of a level wait in one queue of SCHEDULE_TOPIC_XXXX, each with its time of delivery in
its ConsumeQueue unit.  All of a level wait equally long, so the first one is the next one due, and
its time is all that has to be watched: a tick on the loop compares numbers in memory, and only a
level with something due goes on to a thread that reads it.

    1. loop: the level's first message is due (or unknown); the level is `busy` from here on.
    2. thread: reads units and records up to a batch, or the first that is not due.
    3. send lane: appends the batch, in order, and moves the level's offset: also when the server
       is stopping, so that a clean stop delivers nothing twice.
    4. loop: the next batch, until nothing is due.

One batch of a level is under way at a time: order is kept, and a backlog of any size takes a
bounded amount of memory.  Levels do not wait for each other.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio

from pyritemq.protocol.errors import RecordError
from pyritemq.protocol.record import decode_record
from pyritemq.server.broker.delays.rewriting import NotDeliverable, due_message
from pyritemq.server.broker.state import names
from pyritemq.storage.consume_queue import UNIT
from pyritemq.storage.errors import StorageError
from pyritemq.storage.messages import STORED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pyritemq.server.broker.delays.offsets import DelayOffsetTable
    from pyritemq.storage.consume_queue import ConsumeQueue
    from pyritemq.storage.message_store import MessageStore
    from pyritemq.storage.messages import MessageToStore, PutResult

    Put = Callable[[list[MessageToStore], Callable[[list[PutResult]], None]], bool]

logger = logging.getLogger(__name__)

TICK_MS = 100
"""Java's DELAY_FOR_A_WHILE: how long a new message, or a jump of the clock, may go unseen."""

PAUSE_MS = 10
"""Ours: the rest after a delivery, so that a steady stream is delivered in batches."""

FAILURE_SECONDS = 10
"""Java's DELAY_FOR_A_PERIOD: the pause after a failure that nobody foresaw."""

BATCH_COUNT_MAX = 256
BATCH_BYTES_MAX = 1 << 20
"""Ours: what one append of a level may hold, so that clients' sends do not wait long behind it."""

_TOPIC = names.SCHEDULE_TOPIC.encode()


class InThread(Protocol):
    """`trio.to_thread.run_sync`, or a test's stand-in for it."""

    def __call__(self, function: Callable[[_Level], _Due], level: _Level, /) -> Awaitable[_Due]: ...


class _Level:
    """One level; its fields belong to the loop."""

    __slots__ = ("busy", "delay_ms", "failing", "first_due_ms", "number")

    def __init__(self, number: int, delay_ms: int) -> None:
        self.number = number
        self.delay_ms = delay_ms
        self.busy = False
        self.failing = False
        self.first_due_ms: int | None = None  # of the message at the level's offset; None: unknown

    def time_left_ms(self, due_ms: int, now_ms: int) -> int:
        """Until a time of delivery; nothing if that is further away than the level's delay.

        Then the clock was set back: Java's correctDeliverTimestamp delivers at once.
        """
        left = due_ms - now_ms
        return 0 if left > self.delay_ms else left


class _Due(NamedTuple):
    """What a look at a level found: messages with their queue offsets, and where to go on."""

    messages: list[MessageToStore]
    offsets: list[int]
    next_offset: int
    first_due_ms: int | None


class DelayedDelivery:
    """The levels and the way to the send lane."""

    def __init__(
        self,
        store: MessageStore,
        offsets: DelayOffsetTable,
        put: Put,
        *,
        levels_ms: Sequence[int],
        now_ms: Callable[[], int],
        in_thread: InThread = trio.to_thread.run_sync,
    ) -> None:
        self._store = store
        self._offsets = offsets
        self._put = put
        self._now_ms = now_ms
        self._in_thread = in_thread
        self._level_free = trio.Event()
        self._levels = [_Level(n, delay_ms) for n, delay_ms in enumerate(levels_ms, start=1)]

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with trio.open_nursery() as nursery:
            for level in self._levels:  # the first look also opens the queue's files
                level.busy = True
                nursery.start_soon(self._deliver, level)
            while True:
                now_ms = self._now_ms()
                wait_ms = TICK_MS
                for level in self._levels:
                    if level.busy:
                        continue
                    left_ms = self._time_left_ms(level, now_ms)
                    if left_ms <= 0:
                        level.busy = True
                        nursery.start_soon(self._deliver, level)
                    else:
                        wait_ms = min(wait_ms, left_ms)
                await self._wait(wait_ms)

    async def _wait(self, wait_ms: int) -> None:
        """Until the time has passed, or a level has become free that may be due earlier."""
        with trio.move_on_after(wait_ms / 1000):
            await self._level_free.wait()
        if self._level_free.is_set():
            self._level_free = trio.Event()
            await trio.sleep(PAUSE_MS / 1000)

    def _time_left_ms(self, level: _Level, now_ms: int) -> int:
        """Until the level needs a look; memory only."""
        queue = self._queue(level)
        if queue is None or queue.max_offset == self._offsets.get(level.number):
            return TICK_MS
        if level.first_due_ms is None:
            return 0
        return level.time_left_ms(level.first_due_ms, now_ms)

    def _queue(self, level: _Level) -> ConsumeQueue | None:
        return self._store.queues.find(_TOPIC, level.number - 1)

    async def _deliver(self, level: _Level) -> None:
        """Deliver all that is due now."""
        try:
            while (due := await self._in_thread(self._look, level)).messages:
                if not await self._put_all(level, due):
                    level.first_due_ms = None
                    await trio.sleep(TICK_MS / 1000)
                    return
            self._offsets.move(level.number, due.next_offset)
            level.first_due_ms = due.first_due_ms
        except (OSError, StorageError):
            logger.exception("delayed messages not readable level=%d", level.number)
            await trio.sleep(FAILURE_SECONDS)
        finally:
            level.busy = False
            self._level_free.set()

    def _look(self, level: _Level) -> _Due:
        """Read what is due, at most a batch; in a thread."""
        queue = self._queue(level)
        offset = self._offsets.get(level.number)
        due = _Due([], [], offset, None)
        if queue is None:
            return due
        offset = self._within(queue, level, offset)
        while offset < queue.max_offset and not due.messages:  # again if all was passed over
            due = self._read(queue, level, offset)
            if due.next_offset == offset:
                return due
            offset = due.next_offset
        return due._replace(next_offset=offset)

    def _within(self, queue: ConsumeQueue, level: _Level, offset: int) -> int:
        """The offset, or the nearest that the queue has, if its files and the table disagree."""
        nearest = min(max(offset, queue.min_offset), queue.max_offset)
        if nearest != offset:
            logger.error(
                "delay offset corrected level=%d from=%d to=%d", level.number, offset, nearest
            )
        return nearest

    def _read(self, queue: ConsumeQueue, level: _Level, offset: int) -> _Due:
        now_ms = self._now_ms()
        messages: list[MessageToStore] = []
        offsets: list[int] = []
        bytes_total = 0
        for phy_offset, size, code in UNIT.iter_unpack(queue.units(offset, BATCH_COUNT_MAX)):
            due_ms = self._due_ms(queue, level, (phy_offset, size, code))
            if level.time_left_ms(due_ms, now_ms) > 0:
                return _Due(messages, offsets, offset, due_ms)
            bytes_total += size
            if messages and bytes_total > BATCH_BYTES_MAX:
                break
            message = self._message(level, offset, phy_offset)
            if message is not None:
                messages.append(message)
                offsets.append(offset)
            offset += 1
        return _Due(messages, offsets, offset, None)

    def _due_ms(self, queue: ConsumeQueue, level: _Level, unit: tuple[int, int, int]) -> int:
        """A unit's tags code; counted anew, as Java does, if the ext unit that has it is lost."""
        exts, (phy_offset, size, code) = self._store.exts, unit
        due_ms = code if exts is None else exts.tags_code(queue, code)
        if due_ms is not None:
            return due_ms
        return self._store.commit_log.store_timestamp(phy_offset, size) + level.delay_ms

    def _message(self, level: _Level, offset: int, phy_offset: int) -> MessageToStore | None:
        """A record as it goes to its topic; None for one to pass over, as Java does."""
        record = self._store.record_at(phy_offset)
        try:
            return None if record is None else due_message(decode_record(record))
        except (RecordError, NotDeliverable) as fault:
            logger.error(
                "delayed message dropped level=%d offset=%d reason=%s", level.number, offset, fault
            )
            return None

    async def _put_all(self, level: _Level, due: _Due) -> bool:
        """Have a batch stored; False if not all of it was."""
        done = trio.Event()
        stored = 0
        token = trio.lowlevel.current_trio_token()

        def settle(results: list[PutResult]) -> None:  # on the send lane
            nonlocal stored
            for result in results:
                if result.status not in STORED:
                    break
                stored += 1
            complete = stored == len(results)
            self._offsets.move(level.number, due.next_offset if complete else due.offsets[stored])
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(done.set)

        if not self._put(due.messages, settle):
            return False
        await done.wait()
        self._report(level, failing=stored < len(due.messages))
        return not level.failing

    def _report(self, level: _Level, *, failing: bool) -> None:
        """Log when a level begins to fail and when it goes on."""
        if failing != level.failing:
            level.failing = failing
            word = "held up" if failing else "delivered again"
            logger.warning("delayed messages %s level=%d", word, level.number)
