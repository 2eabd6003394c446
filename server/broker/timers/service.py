"""The broker's part for arbitrary timers: takes sends, runs the engine, saves how far it is.

    1. loop: something is new or a slot is over, else nothing is done but this comparison.
    2. thread: a step of the engine reads and writes files, and returns what has to be put.
    3. send lane: appends it; when all of it is stored the step counts, also when the server is
       stopping, so that a clean stop delivers again only what is left of a slot that it broke into.
    4. loop: the next step; what was not stored is put again until it is.

`hold` is called on the send lane; `persist` and `close` in threads, one at a time (`_save_lock`).
A checkpoint is saved only after the deliveries that it counts are durable in the CommitLog.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from pyritemq.protocol.codes import ResponseCode
from pyritemq.protocol.record import decode_properties
from pyritemq.server.broker.state import names
from pyritemq.server.broker.state.events import DELAY_LATENCY, Events
from pyritemq.server.broker.timers.engine import TimerEngine, Work
from pyritemq.server.broker.timers.metrics import TimerMetrics
from pyritemq.server.broker.timers.rewriting import (
    IllegalTimer,
    asks_for_timer,
    out_ms,
    to_timer_topic,
)
from pyritemq.server.registry import RequestRefused
from pyritemq.storage.errors import StorageError
from pyritemq.storage.messages import STORED, PutStatus
from pyritemq.storage.tables import JsonTable
from pyritemq.storage.timers.checkpoint import TimerCheckpoint
from pyritemq.storage.timers.files import TimerFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.server.broker.delays.delivery import Put
    from pyritemq.storage.message_store import MessageStore
    from pyritemq.storage.messages import MessageToStore, PutResult

    InThread = Callable[[Callable[[], Work]], Awaitable[Work]]

logger = logging.getLogger(__name__)

TICKS_A_SLOT = 10
"""Java looks for new messages and for slots that are over ten times in a slot's time."""

RETRY_SECONDS = 0.5
FAILURE_SECONDS = 1
PRECISIONS_MS = (100, 200, 500, 1000)
EXPIRE_SECONDS = 30
BEHIND_MS = 1000

_HOPELESS = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})


def usable_precision_ms(asked_ms: int) -> int:
    """MessageStoreConfig.setTimerPrecisionMs: the largest of four that is not above it."""
    return max((ms for ms in PRECISIONS_MS if ms <= asked_ms), default=PRECISIONS_MS[0])


class TimersBehind(NamedTuple):
    """Timers that were sent and not taken in, and those that are due and not out."""

    in_messages: int
    in_ms: int
    out_messages: int
    out_ms: int


class TimerService:
    """Timers of one broker whose configuration enables them."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MessageStore,
        *,
        put: Put,
        now_ms: Callable[[], int],
        in_thread: InThread = trio.to_thread.run_sync,
        events: Events | None = None,
    ) -> None:
        root = Path(config.store_path_root_dir)
        self._config = config
        self._store = store
        self._put = put
        self._now_ms = now_ms
        self._in_thread = in_thread
        self._precision_ms = usable_precision_ms(config.timer_precision_ms)
        self._events = events or Events()
        self.metrics = TimerMetrics(
            JsonTable(root / "config" / "timermetrics"), now_ms=now_ms, events=self._events
        )
        self._files = TimerFiles(
            root,
            precision_ms=self._precision_ms,
            log_file_size=config.mapped_file_size_timer_log,
        )
        self._engine = TimerEngine(
            store,
            self._files,
            count=self.metrics.add,
            now_ms=now_ms,
            roll_slots=config.timer_roll_window_slot,
            with_topic=config.append_topic_for_timer_delete_key,
        )
        self._save_lock = threading.Lock()
        self._is_dirty = False
        self._is_failing = False

    # -- sends ----------------------------------------------------------------------------------

    def hold(self, message: MessageToStore) -> bool:
        """Send a message that has a timer to the timer topic; False if it is not to wait.

        For messages without a delay level.  Raises RequestRefused with Java's words.
        """
        properties = decode_properties(message.properties)
        if not asks_for_timer(message, properties):
            return False
        config = self._config
        if not config.timer_wheel_enable:  # it may be changed while the broker runs
            raise timers_are_off()
        max_delay_ms = config.timer_max_delay_sec * 1000
        try:
            slot_ms = out_ms(
                properties,
                now_ms=self._now_ms(),
                max_delay_ms=max_delay_ms,
                precision_ms=self._precision_ms,
            )
        except IllegalTimer:
            raise _illegal(max_delay_ms) from None
        if slot_ms is None:
            return False
        if self._is_congested(slot_ms):
            raise _congested(config.timer_congest_num_each_slot)
        ahead_seconds = (slot_ms - message.born_timestamp) // 1000
        self._events.observe(DELAY_LATENCY, ahead_seconds, topic=message.topic.decode())
        to_timer_topic(message, properties, slot_ms)
        return True

    def _is_congested(self, slot_ms: int) -> bool:
        """TimerMessageStore.isReject: at random above the limit, always at twice as many."""
        limit = self._config.timer_congest_num_each_slot
        num = self._files.wheel.slot(slot_ms).num
        if num <= limit:
            return False
        excess = 1000 * (num - limit) / (limit + 0.1)
        return num >= limit * 2 or random.randrange(1000) > excess  # noqa: S311 - spreads load

    # -- the job --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take in and deliver until cancelled."""
        tick_seconds = self._precision_ms / TICKS_A_SLOT / 1000
        while True:
            if self._engine.is_idle():
                await trio.sleep(tick_seconds)
                continue
            try:
                await self._step()
            except (OSError, StorageError):
                logger.exception("timers held up")
                await trio.sleep(FAILURE_SECONDS)

    async def _step(self) -> None:
        work = await self._in_thread(self._engine.step)
        pending = work.messages
        if not pending:
            self._engine.settle(work)
        while pending:
            pending = await self._put_some(work, pending)
            self._report(failing=bool(pending))
            if pending:
                await trio.sleep(RETRY_SECONDS)
        self._is_dirty |= work.did_something  # after `settle`: what is saved now has it

    async def _put_some(self, work: Work, pending: list[MessageToStore]) -> list[MessageToStore]:
        """Have messages stored; returns those that have to be tried again."""
        done = trio.Event()
        again: list[MessageToStore] = []
        token = trio.lowlevel.current_trio_token()

        def settle(results: list[PutResult]) -> None:  # on the send lane
            for message, result in zip(pending, results, strict=True):
                if result.status in _HOPELESS:
                    logger.error("timer dropped topic=%s reason=%s", message.topic, result.status)
                elif result.status not in STORED:
                    again.append(message)
            if not again:
                self._engine.settle(work)
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(done.set)

        if not self._put(pending, settle):
            await trio.sleep_forever()  # the server is stopping, and will cancel this
        await done.wait()
        return again

    def _report(self, *, failing: bool) -> None:
        """Log when deliveries begin to fail and when they go on."""
        if failing != self._is_failing:
            self._is_failing = failing
            logger.warning("timers %s", "held up" if failing else "delivered again")

    def is_behind(self) -> bool:
        """Whether something that was due a while ago may still be on its way; any thread."""
        now_ms, engine = self._now_ms(), self._engine
        if now_ms - engine.read_time_ms > 2 * self._precision_ms + BEHIND_MS:
            return True
        waits_since_ms = self._store.store_time_at(names.TIMER_TOPIC, 0, engine.queue_offset)
        return 0 < waits_since_ms < now_ms - BEHIND_MS

    # -- what is saved --------------------------------------------------------------------------

    def persist(self) -> None:
        """Save how far timers are, if anything happened since the last time."""
        if self._is_dirty:
            self._save()

    def close(self) -> None:
        """The last save."""
        self._save()

    def expire(self) -> None:
        """Delete old files of the timer log."""
        self._files.log.expire(self._store.min_phy_offset)

    def _save(self) -> None:
        with self._save_lock:
            self._is_dirty = False
            try:
                self._files.save(self._checkpoint)
                self.metrics.persist()
            except BaseException:
                self._is_dirty = True
                raise

    def _checkpoint(self, flushed_where: int) -> TimerCheckpoint:
        engine, before = self._engine, self._files.checkpoint
        # In this order: a step that is settled in between is counted by neither, or by the offset.
        log_pos = min(flushed_where, engine.log_pos)
        read_time_ms, queue_offset = engine.read_time_ms, engine.queue_offset
        self._store.flush()
        return TimerCheckpoint(
            last_read_time_ms=read_time_ms,
            last_timer_log_flush_pos=log_pos,
            last_timer_queue_offset=queue_offset,
            master_timer_queue_offset=queue_offset,
            state_version=before.state_version,
            timestamp=self._now_ms(),
            counter=before.counter + 1,
        )

    # -- what tools ask -------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """The body of a GET_TIMER_CHECK_POINT reply: what was saved last."""
        return self._files.checkpoint.pack()

    def behind(self) -> TimersBehind:
        """How far the job is behind what was sent, and behind the clock."""
        engine, store = self._engine, self._store
        lag = store.max_offset(names.TIMER_TOPIC, 0) - engine.queue_offset
        oldest_ms = store.store_time_at(names.TIMER_TOPIC, 0, engine.queue_offset) if lag > 0 else 0
        now_ms = self._now_ms()
        due = sum(slot.num for slot in self._files.wheel.slots(engine.read_time_ms, now_ms))
        return TimersBehind(
            in_messages=max(0, lag),
            in_ms=max(0, now_ms - oldest_ms) if oldest_ms > 0 else 0,
            out_messages=due,
            out_ms=max(0, now_ms - engine.read_time_ms),
        )

    def ahead(self, bounds_s: Sequence[int]) -> list[int]:
        """How many timers are due within each of these times from now, and not within the last."""
        now_ms, wheel = self._now_ms(), self._files.wheel
        edges = [now_ms, *(now_ms + bound * 1000 for bound in bounds_s)]
        return [sum(slot.num for slot in wheel.slots(start, end)) for start, end in pairwise(edges)]

    def runtime(self) -> dict[str, str]:
        """Java's names in the broker's runtime information."""
        engine = self._engine
        pending = sum(slot.num for slot in self._files.wheel.slots_from(engine.read_time_ms))
        behind = self._store.max_offset(names.TIMER_TOPIC, 0) - engine.queue_offset
        return {
            "timerReadBehind": str(max(0, self._now_ms() - engine.read_time_ms) // 1000),
            "timerOffsetBehind": str(behind),
            "timerCongestNum": str(pending),
        }


class TimersOff:
    """Stands in for the service where timerWheelEnable is false: no files, no job."""

    def hold(self, message: MessageToStore) -> bool:
        """Refuse a message that has a timer."""
        if asks_for_timer(message, decode_properties(message.properties)):
            raise timers_are_off()
        return False

    async def run(self) -> None:
        return

    def persist(self) -> None:
        return

    def close(self) -> None:
        return

    def expire(self) -> None:
        return

    def is_behind(self) -> bool:
        return False

    def runtime(self) -> dict[str, str]:
        return {}


def timers_are_off() -> RequestRefused:
    return RequestRefused(
        ResponseCode.SYSTEM_ERROR,
        "accurate timer message is not enabled, timerWheelEnable is false",
    )


def _illegal(max_delay_ms: int) -> RequestRefused:
    return RequestRefused(
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay "
        f"{max_delay_ms}ms; or if set del msg, the delay time should be bigger than the current "
        "time",
    )


def _congested(limit: int) -> RequestRefused:
    return RequestRefused(
        ResponseCode.SYSTEM_ERROR,
        f"timer message is under flow control, max num limit is {limit * 2} or the current value "
        f"is greater than {limit} and less than {limit * 2}, trigger random flow control",
    )
