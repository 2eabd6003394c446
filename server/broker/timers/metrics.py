"""How many timers wait for each topic: config/timermetrics in Java's form (TimerMetrics).

Counted by the thread that works on timers and by the send lane, read by the admin lane; `_lock` is
held for an addition or a copy.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyritemq.compat import fastjson
from pyritemq.compat.register_body import DataVersion
from pyritemq.server.broker.state.events import TIMER_IN, TIMER_OUT, Events
from pyritemq.server.broker.state.table_file import read_newest
from pyritemq.server.broker.state.topics import next_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyritemq.storage.tables import JsonTable


class TimerMetrics:
    """Counts by real topic."""

    def __init__(
        self, file: JsonTable, *, now_ms: Callable[[], int], events: Events | None = None
    ) -> None:
        self._file = file
        self._now_ms = now_ms
        self._events = events or Events()
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[int, int]] = {}
        self._data_version = DataVersion(timestamp=now_ms())
        self._dirty = False
        loaded = read_newest(file, _decode)
        if loaded is not None:
            self._counts, self._data_version = loaded

    def add(self, topics: Iterable[str], value: int) -> None:
        """Count one timer, or one less, for each topic."""
        now_ms = self._now_ms()
        topics = list(topics)
        for topic in topics:
            self._events.count(TIMER_IN if value > 0 else TIMER_OUT, topic=topic)
        with self._lock:
            for topic in topics:
                count = self._counts.get(topic, (0, 0))[0]
                self._counts[topic] = (count + value, now_ms)
                self._dirty = True
                self._data_version = next_version(self._data_version, now_ms)

    def counts(self) -> dict[str, int]:
        """Timers that wait, by topic."""
        with self._lock:
            return {topic: count for topic, (count, _) in self._counts.items()}

    def encode(self) -> bytes:
        """The file's text, and the body of a GET_TIMER_METRICS reply."""
        with self._lock:
            counts = {
                topic: {"count": count, "timeStamp": time_ms}
                for topic, (count, time_ms) in self._counts.items()
            }
            version = self._data_version.to_json()
        return fastjson.dumps({"dataVersion": version, "timingCount": counts})

    def persist(self) -> None:
        """Save what changed since the last save."""
        with self._lock:
            if not self._dirty:
                return
            self._dirty = False
        self._file.save(self.encode())


def _decode(data: bytes) -> tuple[dict[str, tuple[int, int]], DataVersion]:
    members: Any = fastjson.loads(data)
    if not isinstance(members, dict):
        raise ValueError("not a JSON object")
    counts = {
        topic: (int(metric.get("count", 0)), int(metric.get("timeStamp", 0)))
        for topic, metric in (members.get("timingCount") or {}).items()
    }
    return counts, DataVersion.from_json(members.get("dataVersion") or {})
