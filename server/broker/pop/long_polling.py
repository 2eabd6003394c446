"""Pops and notifications that wait for a message (Java: PopLongPollingService).

A request that finds nothing is held here, by topic, group and queue (-1: any).  When a message
arrives, as many are let go as messages came; each goes to the pull lane once more, and comes back
here if others were quicker, until its own time is up.

No arrival may be missed between "nothing found" and "held":

    1. pull lane: notes how far the topic's queues reach, *then* pops, and finds nothing.
    2. pull lane: enters the request, *then* looks how far the queues reach now.
    3. send lane: publishes the new end of a queue, *then* looks whether its topic is awaited.

Whichever comes first, one of the two sees the other.  One lock, held for look-ups in memory.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyritemq.server.registry import Request

SWEEP_SECONDS = 0.05
"""How often expired requests are looked for (Java: 20 ms)."""

EARLY_MS = 50
"""Java answers a request so much before its time is up."""

PollKey = tuple[str, str, int]
"""Topic, group, queue id or ANY_QUEUE."""

ANY_QUEUE = -1


class Polling(Enum):
    """What became of a request that wanted to wait."""

    HELD = 0
    FULL = 1
    TIMEOUT = 2
    ARRIVED = 3  # something came meanwhile: look again


class Waiting:
    """A request that waits until `expires_ms` for a message with one of the tags (None: any)."""

    __slots__ = ("expires_ms", "key", "request", "tag_hashes", "topics")

    def __init__(
        self,
        request: Request[Any],
        key: PollKey,
        *,
        topics: Sequence[str],
        expires_ms: int,
        tag_hashes: frozenset[int] | None = None,
    ) -> None:
        self.request = request
        self.key = key
        self.topics = topics
        self.expires_ms = expires_ms
        self.tag_hashes = tag_hashes

    def wants(self, tag_hashes: frozenset[int] | None) -> bool:
        if tag_hashes is None or self.tag_hashes is None:
            return True
        return not self.tag_hashes.isdisjoint(tag_hashes)


class PopLongPolling:
    """Holds requests and gives them back through `resume`."""

    def __init__(
        self,
        *,
        resume: Callable[[list[Request[Any]]], None],
        now_ms: Callable[[], int],
        count_max: int,
        queue_count_max: int,
    ) -> None:
        self._resume = resume
        self._now_ms = now_ms
        self._count_max = count_max
        self._queue_count_max = queue_count_max
        self._lock = threading.Lock()
        self._waiting: dict[PollKey, list[Waiting]] = {}
        # By the name of each topic that a waiting request looks into: the keys that wait.
        self._awaited: dict[str, set[PollKey]] = {}
        self._count = 0
        self._notices = 0

    async def run(self) -> None:
        """Let go of requests whose time is up, until cancelled."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            if self._waiting:
                self.expire()

    @property
    def anybody_waits(self) -> bool:
        return bool(self._awaited)

    @property
    def count(self) -> int:
        return self._count

    @property
    def notices(self) -> int:
        """Counts `notify`; taken before a pop, so that `hold` can tell what came meanwhile."""
        return self._notices

    def count_of(self, key: PollKey) -> int:
        with self._lock:
            return len(self._waiting.get(key, ()))

    def hold(self, waiting: Waiting, *, has_news: Callable[[], bool]) -> Polling:
        """Keep a request; `has_news` is asked when it has been entered."""
        if self._now_ms() > waiting.expires_ms - EARLY_MS:
            return Polling.TIMEOUT
        with self._lock:
            others = self._waiting.get(waiting.key, [])
            if self._count >= self._count_max or len(others) > self._queue_count_max:
                return Polling.FULL
            self._enter(waiting)
        if has_news():
            with self._lock:
                if self._remove(waiting):
                    return Polling.ARRIVED
        return Polling.HELD

    def arrived(self, counts: Mapping[tuple[str, int], tuple[int, frozenset[int]]]) -> None:
        """News of one batch, by topic and queue: how many messages, and their tags' hashes."""
        woken: list[Waiting] = []
        with self._lock:
            for (topic, queue_id), (count, tags) in counts.items():
                for key in tuple(self._awaited.get(topic, ())):
                    is_own = topic == key[0]
                    if key[2] in (ANY_QUEUE, queue_id) or not is_own:
                        # A message that is tried again has passed the filter before.
                        woken += self._take(key, count, tags if is_own else None)
        self._let_go(woken)

    def is_awaited(self, topic: str) -> bool:
        """From the send lane, after it has published."""
        return topic in self._awaited

    def notify(self, topic: str, group: str, queue_id: int, *, count: int = 1) -> None:
        """Something can be popped again: let some requests look."""
        with self._lock:
            self._notices += 1
            woken = self._take((topic, group, ANY_QUEUE), count, None)
            if queue_id != ANY_QUEUE:
                woken += self._take((topic, group, queue_id), count, None)
        self._let_go(woken)

    def expire(self) -> None:
        now_ms = self._now_ms()
        with self._lock:
            late = [
                waiting
                for queue in self._waiting.values()
                for waiting in queue
                if now_ms > waiting.expires_ms - EARLY_MS or waiting.request.channel.closed
            ]
            for waiting in late:
                self._remove(waiting)
        self._let_go(late)

    def _enter(self, waiting: Waiting) -> None:
        self._waiting.setdefault(waiting.key, []).append(waiting)
        for topic in waiting.topics:
            self._awaited.setdefault(topic, set()).add(waiting.key)
        self._count += 1

    def _remove(self, waiting: Waiting) -> bool:
        queue = self._waiting.get(waiting.key)
        if queue is None or waiting not in queue:
            return False
        queue.remove(waiting)
        self._count -= 1
        if not queue:
            del self._waiting[waiting.key]
            for topic in waiting.topics:
                keys = self._awaited[topic]
                keys.discard(waiting.key)
                if not keys:
                    del self._awaited[topic]
        return True

    def _take(self, key: PollKey, count: int, tags: frozenset[int] | None) -> list[Waiting]:
        """Up to `count` of those who wait and want one of the tags, the first ones first."""
        taken: list[Waiting] = []
        for waiting in tuple(self._waiting.get(key, ())):
            if len(taken) == count:
                break
            if waiting.request.channel.closed:
                self._remove(waiting)
            elif waiting.wants(tags):
                self._remove(waiting)
                taken.append(waiting)
        return taken

    def _let_go(self, woken: Iterable[Waiting]) -> None:
        requests = [waiting.request for waiting in woken if not waiting.request.channel.closed]
        for request in requests:
            request.suspended = True
        if requests:
            self._resume(requests)
