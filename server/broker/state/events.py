"""What happens too seldom to be counted in batches: dead letters, decisions, new topics.

Counted one by one under the names and labels of RocketMQ's metrics, on any thread; the metrics read
copies.  `_lock` is held for an addition or a copy.  Nothing on the way of ordinary sends and pulls
comes here.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pyritemq.server.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Labels = tuple[tuple[str, str], ...]


class EventCounter(NamedTuple):
    name: str
    text: str


class EventHistogram(NamedTuple):
    name: str
    text: str
    bounds: Sequence[float]


SENT_TO_DLQ = EventCounter(
    "rocketmq_send_to_dlq_messages_total", "Messages that were tried too often and buried"
)
COMMITTED = EventCounter("rocketmq_commit_messages_total", "Transactions that were committed")
ROLLED_BACK = EventCounter("rocketmq_rollback_messages_total", "Transactions that were rolled back")
TIMER_IN = EventCounter("rocketmq_timer_enqueue_total", "Timers that were taken in")
TIMER_OUT = EventCounter("rocketmq_timer_dequeue_total", "Timers that are over")

# Named for milliseconds in RocketMQ 5.5.0, but it counts seconds; so do we, for its dashboards.
FINISH_LATENCY = EventHistogram(
    "rocketmq_finish_message_latency_milliseconds",
    "Seconds from a half's birth to its commit",
    (5, 60, 600, 3600, 43200, 86400),
)
DELAY_LATENCY = EventHistogram(
    "rocketmq_delay_message_latency_seconds",
    "How far ahead timers are set",
    (60, 600, 3600, 43200, 86400, 259200),
)
_CREATE_MS = (10, 100, 1000, 3000, 5000)
TOPIC_CREATE_TIME = EventHistogram(
    "rocketmq_topic_create_execution_time_milliseconds", "Time to make a topic", _CREATE_MS
)
GROUP_CREATE_TIME = EventHistogram(
    "rocketmq_consumer_group_create_execution_time_milliseconds", "Time to make a group", _CREATE_MS
)


class Events:
    """One broker's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[EventCounter, Labels], int] = {}
        self._histograms: dict[tuple[EventHistogram, Labels], Histogram] = {}

    def count(self, event: EventCounter, times: int = 1, **labels: str) -> None:
        key = event, tuple(labels.items())
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + times

    def observe(self, event: EventHistogram, value: float, **labels: str) -> None:
        key = event, tuple(labels.items())
        with self._lock:
            found = self._histograms.get(key)
            if found is None:
                found = self._histograms[key] = Histogram(event.bounds)
            found.observe(value)

    @contextmanager
    def timed(self, event: EventHistogram, **labels: str) -> Iterator[None]:
        """Observe in milliseconds how long something takes, and whether it is done or raises."""
        started_ns, status = time.monotonic_ns(), "failure"
        try:
            yield
            status = "success"
        finally:
            elapsed_ms = (time.monotonic_ns() - started_ns) // 1_000_000
            self.observe(event, elapsed_ms, invocation_status=status, **labels)

    def counts(self) -> list[tuple[EventCounter, Labels, int]]:
        with self._lock:
            return [(event, labels, value) for (event, labels), value in self._counts.items()]

    def histograms(self) -> list[tuple[EventHistogram, Labels, Histogram]]:
        with self._lock:
            return [(event, labels, h.copy()) for (event, labels), h in self._histograms.items()]
