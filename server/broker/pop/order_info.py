"""What is popped in order and not acked yet, and `consumerOrderInfo.json`.

While a message of a queue's last pop is neither acked nor visible again, the queue is blocked for
its group: nobody gets the messages behind it.  Java: QueueLevelConsumerManager of 5.5.0.  Pull lane
and ack lane change the table under one lock, held for look-ups; a save encodes outside it.  Whoever
changes it for a pop holds the queue's claim (`positions`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from pyritemq.compat import fastjson
from pyritemq.server.broker.pop.handles import order_count_infos
from pyritemq.server.broker.state.config_json import dumps_pretty
from pyritemq.server.broker.state.table_file import read_newest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyritemq.server.broker.pop.positions import QueueKey
    from pyritemq.storage.tables import JsonTable

FORGET_MS = 24 * 3600 * 1000
"""Java's CLEAN_SPAN_FROM_LAST: a queue that was not popped for a day is left out of the file."""

ILLEGAL = -1
STALE = -2
"""`ack` has no offset to commit: the message is none of the last pop, or that was another one."""


@dataclass(slots=True)
class OrderInfo:
    """The last pop of one queue; `bits` marks what is acked."""

    attempt_id: str | None
    pop_time: int
    invisible_time: int
    offsets: list[int]
    last_consume_ms: int
    bits: int = 0
    consumed_counts: dict[int, int] = field(default_factory=dict)
    next_visible_ms: dict[int, int] = field(default_factory=dict)

    def blocked_until(self, now_ms: int) -> int | None:
        """When the first message that is still with a consumer becomes visible; None if none is."""
        for i, offset in enumerate(self.offsets):
            if not self.bits >> i & 1:
                visible_ms = self.next_visible_ms.get(offset, self.pop_time + self.invisible_time)
                if now_ms < visible_ms:
                    return visible_ms
        return None

    def next_offset(self) -> int:
        for i, offset in enumerate(self.offsets):
            if not self.bits >> i & 1:
                return offset
        return self.offsets[-1] + 1

    def follow(self, before: OrderInfo) -> None:
        """Count how often messages of the pop before were popped already."""
        if before.attempt_id is not None and before.attempt_id == self.attempt_id:
            self.consumed_counts = dict(before.consumed_counts)
            return
        known = set(before.offsets)
        self.consumed_counts = {
            offset: before.consumed_counts.get(offset, 0) + 1
            for offset in self.offsets
            if offset in known
        }

    def to_json(self) -> dict[str, Any]:
        """Java's members; offsets after the first are differences to it.

        fastjson2 writes an array of numbers on one line.
        """
        first, *rest = self.offsets
        packed = orjson.dumps([first, *(offset - first for offset in rest)])
        return {
            "a": self.attempt_id,
            "cm": self.bits,
            "i": self.invisible_time,
            "l": self.last_consume_ms,
            "o": orjson.Fragment(packed),
            "oc": self.consumed_counts,
            "ot": self.next_visible_ms or None,
            "popTime": self.pop_time,
        }

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> OrderInfo | None:
        """None for a queue without offsets.  Raises KeyError, TypeError, ValueError."""
        packed = [int(offset) for offset in members.get("o") or ()]
        if not packed:
            return None
        attempt_id = members.get("a")
        return cls(
            None if attempt_id is None else str(attempt_id),
            int(members["popTime"]),
            int(members.get("i") or 0),
            [packed[0], *(packed[0] + diff for diff in packed[1:])],
            int(members.get("l") or 0),
            int(members.get("cm") or 0),
            {int(offset): int(count) for offset, count in (members.get("oc") or {}).items()},
            {int(offset): int(ms) for offset, ms in (members.get("ot") or {}).items()},
        )


class OrderInfoTable:
    """Order infos by topic, group and queue."""

    def __init__(
        self, file: JsonTable, *, now_ms: Callable[[], int], is_known: Callable[[QueueKey], bool]
    ) -> None:
        self._file = file
        self._now_ms = now_ms
        self._is_known = is_known
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._infos: dict[QueueKey, OrderInfo] = {}
        self._dirty = False

    def load(self) -> None:
        loaded = read_newest(self._file, _decode)
        if loaded is not None:
            self._infos = loaded

    def persist(self) -> None:
        """Save what changed since the last save, without queues that are gone or long unused."""
        with self._file_lock:
            with self._lock:
                if not self._dirty:
                    return
                self._dirty = False
                self._clean()
                infos = {key: info.to_json() for key, info in self._infos.items()}
            try:
                self._file.save(_encode(infos))
            except BaseException:
                with self._lock:
                    self._dirty = True
                raise

    def is_blocked(self, key: QueueKey, attempt_id: str | None, invisible_time: int) -> bool:
        """A pop that repeats the last attempt is never blocked: its reply was lost."""
        with self._lock:
            info = self._infos.get(key)
            if info is None or (info.attempt_id is not None and info.attempt_id == attempt_id):
                return False
            if info.invisible_time <= 0:
                info.invisible_time = invisible_time
            return info.blocked_until(self._now_ms()) is not None

    def update(
        self,
        key: QueueKey,
        offsets: Sequence[int],
        *,
        attempt_id: str | None,
        pop_time: int,
        invisible_time: int,
    ) -> list[str]:
        """Note a pop; returns what its reply says of earlier pops (orderCountInfo)."""
        info = OrderInfo(attempt_id, pop_time, invisible_time, list(offsets), self._now_ms())
        with self._lock:
            before = self._infos.get(key)
            if before is not None:
                info.follow(before)
            self._infos[key] = info
            self._dirty = True
            counts = info.consumed_counts
        count_min = min(counts.values()) if len(counts) == len(offsets) else 0
        return order_count_infos(key[0], key[2], counts.items(), count_min)

    def ack(
        self, key: QueueKey, offset: int, *, pop_time: int, commit: Callable[[int], None]
    ) -> int:
        """Mark one message and commit; returns what was committed, ILLEGAL or STALE.

        Both under the lock, so that a pop which finds the queue free finds the new offset.
        """
        with self._lock:
            next_offset = self._mark(key, offset, pop_time)
            if next_offset >= 0:
                commit(next_offset)
            return next_offset

    def _mark(self, key: QueueKey, offset: int, pop_time: int) -> int:
        info = self._infos.get(key)
        if info is None:
            return offset + 1
        if pop_time != info.pop_time:
            return STALE
        if offset not in info.offsets:
            return ILLEGAL
        info.bits |= 1 << info.offsets.index(offset)
        self._dirty = True
        return info.next_offset()

    def set_visible(self, key: QueueKey, offset: int, *, pop_time: int, visible_ms: int) -> None:
        """One message of the last pop becomes visible at another time."""
        with self._lock:
            info = self._infos.get(key)
            if info is not None and info.pop_time == pop_time and offset in info.offsets:
                info.next_visible_ms[offset] = visible_ms
                self._dirty = True

    def free_at(self, key: QueueKey) -> int | None:
        """When the queue's block ends if nothing is acked; None if it is not blocked."""
        with self._lock:
            info = self._infos.get(key)
            return None if info is None else info.blocked_until(self._now_ms())

    def blocked(self) -> list[QueueKey]:
        """All queues that are blocked now; after a start."""
        now_ms = self._now_ms()
        with self._lock:
            return [key for key, info in self._infos.items() if info.blocked_until(now_ms)]

    def clear(self, key: QueueKey) -> None:
        with self._lock:
            if self._infos.pop(key, None) is not None:
                self._dirty = True

    def _clean(self) -> None:
        oldest_ms = self._now_ms() - FORGET_MS
        self._infos = {
            key: info
            for key, info in self._infos.items()
            if info.last_consume_ms >= oldest_ms and self._is_known(key)
        }


def _encode(infos: dict[QueueKey, dict[str, Any]]) -> bytes:
    table: dict[str, dict[int, Any]] = {}
    for (topic, group, queue_id), info in infos.items():
        table.setdefault(f"{topic}@{group}", {})[queue_id] = info
    return dumps_pretty(
        {"orderInfoCount": len(table), "orderedConsumptionLevel": "QUEUE", "table": table}
    )


def _decode(data: bytes) -> dict[QueueKey, OrderInfo]:
    """Raises ValueError, TypeError."""
    members = fastjson.loads(data)
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    infos: dict[QueueKey, OrderInfo] = {}
    for name, queues in (members.get("table") or {}).items():
        topic, _, group = str(name).partition("@")
        for queue_id, fields in queues.items():
            try:
                info = OrderInfo.from_json(fields)
            except KeyError as error:
                raise ValueError(f"an order info lacks {error}") from None
            if info is not None:
                infos[topic, group, int(queue_id)] = info
    return infos
