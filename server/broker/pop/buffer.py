"""Check points kept in memory for some seconds, in the hope of all acks: `enablePopBufferMerge`.

Most consumers ack within seconds.  With the switch on, a pop's check point is not written at once:

    1. pull lane: `hold` keeps it, and the pop is answered without waiting for the store.
    2. ack lane: `ack` marks bits.  When all are set, nothing was ever written, and the group's
       offset may move behind these messages (`positions.settle`).
    3. `flush_due`, ten times a second: what has stayed too long, or is soon visible again, is
       written after all, check point and acks, and settled when it is stored.

A clean stop writes what is left (`close`).  A kill loses the check points, but not the messages:
the committed offset has not passed them, so they are popped once more.
An ack that finds no check point here is written, as it is without the switch; an entry leaves the
table before its records are put, so an ack that misses it comes behind them in the send lane.
One lock, for look-ups only; nothing else is taken inside it.  Java: PopBufferMergeService (5.5.0).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import trio

from pyritemq.server.broker.pop.revive_records import Ack
from pyritemq.server.registry import RequestRefused
from pyritemq.storage.messages import STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.positions import Taken
    from pyritemq.server.broker.pop.revive_records import CheckPoint, PopKey
    from pyritemq.storage.messages import MessageToStore, PutResult

SCAN_SECONDS = 0.1
"""Java scans every 5 ms; an entry that is written a tenth of a second later does no harm, since it
leaves seconds before it is needed."""

SPARE_MS = 1500
"""Java's 1500: with less time left than this and the time-out, it is not worth keeping."""

BATCH_MAX = 256
"""Entries that are put together, as deliveries of delayed messages are."""


class _Entry(NamedTuple):
    point: CheckPoint
    taken: Taken
    revive_queue_id: int


class PopBuffer:
    """The check points of one broker that are not written yet."""

    def __init__(self, broker: Broker, *, now_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._entries: dict[PopKey, _Entry] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def hold(self, point: CheckPoint, revive_queue_id: int, taken: Taken) -> bool:
        """Keep a check point; False if it has to be written now."""
        config = self._broker.config
        if not config.enable_pop_buffer_merge:
            return False
        left_ms = point.revive_time - self._now_ms()
        if left_ms < config.pop_ck_stay_buffer_time_out + SPARE_MS:
            return False
        if left_ms > config.timer_max_delay_sec * 1000:
            return False  # the timers refuse it, and the consumer must hear of that
        if taken.queue_length > config.pop_ck_offset_max_queue_size:
            return False
        with self._lock:
            is_full = len(self._entries) > config.pop_ck_max_buffer_size
            if is_full or self._is_closed or point.key in self._entries:
                return False
            self._entries[point.key] = _Entry(point, taken, revive_queue_id)
            return True

    def ack(self, key: PopKey, offsets: Iterable[int]) -> bool:
        """Mark messages; False if their check point is not here, and the ack must be written."""
        if not self._entries:
            return False
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return False
            for offset in offsets:
                entry.point.ack(offset)
            if not entry.point.all_acked:
                return True
            del self._entries[key]
        self._broker.pop.positions.settle(entry.taken)
        return True

    def release(self, key: PopKey) -> None:
        """Write a check point now: more will be written about its messages."""
        if not self._entries:
            return
        with self._lock:
            entry = self._entries.pop(key, None)
        if entry is not None:
            self._put([entry])

    async def run(self) -> None:
        while True:
            await trio.sleep(SCAN_SECONDS)
            if self._entries:
                await trio.to_thread.run_sync(self.flush_due)

    def flush_due(self) -> None:
        """Write what can stay no longer."""
        config = self._broker.config
        now_ms = self._now_ms()
        oldest_ms = now_ms - config.pop_ck_stay_buffer_time
        soonest_ms = now_ms + config.pop_ck_stay_buffer_time_out
        keeps = config.enable_pop_buffer_merge
        with self._lock:
            due = [
                entry
                for entry in self._entries.values()
                if not keeps
                or entry.point.pop_time < oldest_ms
                or entry.point.revive_time < soonest_ms
            ]
            for entry in due:
                del self._entries[entry.point.key]
        for first in range(0, len(due), BATCH_MAX):
            self._put(due[first : first + BATCH_MAX])

    def close(self) -> None:
        """Write the rest; when no lane runs any more.  Raises StorageError."""
        with self._lock:
            self._is_closed = True
            rest = list(self._entries.values())
            self._entries.clear()
        messages, ends = self._records(rest)
        if messages:
            self._settle(rest, ends, self._broker.store.put_batch(messages))

    def _put(self, entries: list[_Entry]) -> None:
        messages, ends = self._records(entries)

        def done(results: list[PutResult]) -> None:  # on the send lane
            self._settle(entries, ends, results)

        if not self._broker.internal_sends.put(messages, done):  # the server is stopping
            self._settle(entries, ends, [])

    def _records(self, entries: list[_Entry]) -> tuple[list[MessageToStore], list[int]]:
        """The messages of all entries, and where each entry's end."""
        messages: list[MessageToStore] = []
        ends: list[int] = []
        for entry in entries:
            try:
                messages += self._records_of(entry)
            except RequestRefused:  # by the timers, which have too much to do
                self._broker.pop.positions.fail(entry.taken)
            ends.append(len(messages))
        return messages, ends

    def _records_of(self, entry: _Entry) -> list[MessageToStore]:
        point, pop = entry.point, self._broker.pop
        records = [pop.point_message(point, entry.revive_queue_id)]
        acked = tuple(offset for i, offset in enumerate(point.offsets) if point.bit_map >> i & 1)
        if acked:
            ack = Ack(*point.key, acked, is_batch=True)
            records.append(pop.ack_message(ack, entry.revive_queue_id, point.revive_time))
        return records

    def _settle(self, entries: list[_Entry], ends: list[int], results: list[PutResult]) -> None:
        positions = self._broker.pop.positions
        start = 0
        for entry, end in zip(entries, ends, strict=True):
            own = results[start:end]
            if own and all(result.status in STORED for result in own):
                positions.settle(entry.taken)
            elif end > start:
                positions.fail(entry.taken)
            start = end
