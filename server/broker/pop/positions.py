"""Where the next pop of a queue goes on, while check points are still on their way to the store.

A group's committed offset may pass a message only when its check point is stored, or a crash would
lose the message.  But a pop does not wait for the check points of the one before it.  So:

    1. pull lane: `claim` gives the next offset, and the queue to one pop at a time.
    2. pull lane: `advance` notes what was taken, with the place from which the next pop goes on.
    3. send lane: the check point is stored; `settle` commits what is stored without a gap.

If a check point cannot be stored, `fail` forgets all that is under way for the queue, also what was
taken after it: the next pop starts again at the committed offset, and what is handed out twice is
what at-least-once allows.
A queue is in the table only while something is under way.  One lock; the offset table's is taken
inside it.  Java: QueueLockManager, and the commit queues of PopBufferMergeService.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.server.broker.state.offsets import ConsumerOffsetTable

QueueKey = tuple[str, str, int]
"""Topic, group, queue id."""


class Taken:
    """One part of a queue that was handed out; `end` is the offset behind it."""

    __slots__ = ("end", "queue", "settled")

    def __init__(self, queue: _Queue, end: int) -> None:
        self.queue = queue
        self.end = end
        self.settled = False

    @property
    def queue_length(self) -> int:
        """How many parts of its queue are under way."""
        return len(self.queue.under_way)


class _Queue:
    __slots__ = ("is_claimed", "key", "next_offset", "under_way")

    def __init__(self, key: QueueKey) -> None:
        self.key = key
        self.is_claimed = False
        self.next_offset: int | None = None
        self.under_way: deque[Taken] = deque()


class Claim(NamedTuple):
    """A queue that one pop has to itself, and the offset to pop from."""

    queue: _Queue
    offset: int


class PopPositions:
    """The queues that are being popped."""

    def __init__(self, offsets: ConsumerOffsetTable) -> None:
        self._offsets = offsets
        self._lock = threading.Lock()
        self._queues: dict[QueueKey, _Queue] = {}

    def claim(self, key: QueueKey, first_offset: Callable[[], int]) -> Claim | None:
        """The queue, until `release`; None if another pop has it right now.

        `first_offset` is asked, without the lock, if the group has never committed here.
        """
        topic, group, queue_id = key
        with self._lock:
            queue = self._queues.get(key)
            if queue is None:
                queue = self._queues[key] = _Queue(key)
            elif queue.is_claimed:
                return None
            queue.is_claimed = True
            next_offset = queue.next_offset
        committed = self._offsets.query(group, topic, queue_id)
        if committed < 0:
            committed = first_offset()
            self._offsets.commit(group, topic, queue_id, committed)
        return Claim(queue, committed if next_offset is None else max(committed, next_offset))

    def release(self, claim: Claim) -> None:
        with self._lock:
            claim.queue.is_claimed = False
            self._drop_if_done(claim.queue)

    def next_offset(self, key: QueueKey) -> int:
        """Where a pop would go on, without claiming; -1 if the group has never been here."""
        topic, group, queue_id = key
        with self._lock:
            queue = self._queues.get(key)
            under_way = -1 if queue is None or queue.next_offset is None else queue.next_offset
        return max(under_way, self._offsets.query(group, topic, queue_id))

    def advance(self, claim: Claim, end: int) -> Taken:
        """The next pop goes on at `end`."""
        queue = claim.queue
        with self._lock:
            taken = Taken(queue, end)
            queue.next_offset = end
            queue.under_way.append(taken)
            return taken

    def settle(self, taken: Taken) -> None:
        """Its messages can no longer be lost: commit, once all before it are as far."""
        queue = taken.queue
        with self._lock:
            taken.settled = True
            if self._queues.get(queue.key) is not queue:
                return  # abandoned, or an operator has moved the group
            end = None
            while queue.under_way and queue.under_way[0].settled:
                end = queue.under_way.popleft().end
            if end is not None:
                self._commit(queue.key, end)
            self._drop_if_done(queue)

    def fail(self, taken: Taken) -> None:
        """Its check point is not stored: go back, unless that was done already."""
        with self._lock:
            if self._queues.get(taken.queue.key) is taken.queue:
                del self._queues[taken.queue.key]

    def abandon(self, key: QueueKey) -> None:
        """Go on at the committed offset, whatever is under way."""
        with self._lock:
            self._queues.pop(key, None)

    def _commit(self, key: QueueKey, end: int) -> None:
        topic, group, queue_id = key
        if self._offsets.has_reset(group, topic, queue_id):
            return
        if end > self._offsets.query(group, topic, queue_id):
            self._offsets.commit(group, topic, queue_id, end)

    def _drop_if_done(self, queue: _Queue) -> None:
        if not queue.under_way and not queue.is_claimed:
            if self._queues.get(queue.key) is queue:
                del self._queues[queue.key]
        elif not queue.under_way:
            queue.next_offset = None  # all of it is committed

    @property
    def queue_count(self) -> int:
        return len(self._queues)
