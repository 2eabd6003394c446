"""Which client may consume which queue of a group in order: leases of 60 seconds.

Owner: the client lane (LOCK_BATCH_MQ, UNLOCK_BATCH_MQ).  That lane may have several threads, so one
lock guards the table; it is held for dict look-ups only.  A lease that its client does not renew
may be taken by the next client that asks; `purge` drops such leases, so the table holds no more
than was locked within one lease time.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.server.clock import Clock

LEASE_MS = 60_000
"""Java's rocketmq.broker.rebalance.lockMaxLiveTime; clients renew every 20 seconds."""


class MessageQueue(NamedTuple):
    """One queue of a topic on one broker, as clients name it."""

    topic: str
    broker_name: str
    queue_id: int


class _Lease:
    __slots__ = ("client_id", "renewed_ms")

    def __init__(self, client_id: str, renewed_ms: int) -> None:
        self.client_id = client_id
        self.renewed_ms = renewed_ms

    def is_expired(self, now_ms: int) -> bool:
        return now_ms - self.renewed_ms > LEASE_MS


class QueueLocks:
    """Leases by group and queue, on the monotonic clock: setting the wall clock frees none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._groups: dict[str, dict[MessageQueue, _Lease]] = {}

    def lock_batch(
        self, group: str, queues: Iterable[MessageQueue], client_id: str
    ) -> list[MessageQueue]:
        """Take or renew leases; returns the queues that `client_id` now holds."""
        now_ms = self._now_ms()
        with self._lock:
            leases = self._groups.setdefault(group, {})
            return [queue for queue in queues if _take(leases, queue, client_id, now_ms)]

    def unlock_batch(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Give back what `client_id` holds; a queue that another client holds stays locked."""
        with self._lock:
            leases = self._groups.get(group, {})
            for queue in queues:
                lease = leases.get(queue)
                if lease is not None and lease.client_id == client_id:
                    del leases[queue]

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """The client whose lease on the queue is valid."""
        now_ms = self._now_ms()
        with self._lock:
            lease = self._groups.get(group, {}).get(queue)
            return None if lease is None or lease.is_expired(now_ms) else lease.client_id

    def is_all_expired(self, group: str) -> bool:
        """Whether nobody in the group holds a valid lease."""
        now_ms = self._now_ms()
        with self._lock:
            leases = self._groups.get(group, {})
            return all(lease.is_expired(now_ms) for lease in leases.values())

    def adopt(self, other: QueueLocks) -> None:
        """Go on with another table's leases, before anyone uses this one."""
        with other._lock:
            self._groups = {group: dict(leases) for group, leases in other._groups.items()}

    def purge(self) -> None:
        """Forget leases that ended; absent and expired mean the same to `lock_batch`."""
        now_ms = self._now_ms()
        with self._lock:
            for group, leases in list(self._groups.items()):
                for queue in [q for q, lease in leases.items() if lease.is_expired(now_ms)]:
                    del leases[queue]
                if not leases:
                    del self._groups[group]

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000


def _take(
    leases: dict[MessageQueue, _Lease], queue: MessageQueue, client_id: str, now_ms: int
) -> bool:
    lease = leases.get(queue)
    if lease is None or lease.client_id == client_id or lease.is_expired(now_ms):
        leases[queue] = _Lease(client_id, now_ms)
        return True
    return False
