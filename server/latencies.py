"""How long requests take, by request and response code, for the metrics (rocketmq_rpc_latency).

A dispatcher has one only if somebody looks at metrics.  Single requests are timed one by one.  Of a
batch of sends the mean of its first and last request stands for all, so that nothing is done for
each message.  Pulls are not timed: most of their time is spent waiting for messages, by design.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.server.histogram import Histogram
from pyritemq.server.lanes import Lane

if TYPE_CHECKING:
    from pyritemq.server.lanes import Outbox
    from pyritemq.server.registry import Request

BOUNDS_MS = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)
"""RemotingMetricsManager.getMetricsView."""

Key = tuple[int, int, bool]


class RequestLatencies:
    """`_lock` guards the table; any lane counts, the metrics copy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._table: dict[Key, Histogram] = {}

    def observe(
        self, request_code: int, response_code: int, ms: float, *, oneway: bool = False, times: int
    ) -> None:
        key = request_code, response_code, oneway
        with self._lock:
            histogram = self._table.get(key)
            if histogram is None:
                histogram = self._table[key] = Histogram(BOUNDS_MS)
            histogram.observe(ms, times)

    def observe_batch(self, requests: list[Request[Any]], replies: Outbox, now_ns: int) -> None:
        """All requests of a batch that were answered in it."""
        if requests[0].handler.lane is Lane.PULL:
            return
        received_ns = (requests[0].received_ns + requests[-1].received_ns) // 2
        ms = (now_ns - received_ns) // 1_000_000
        for (request_code, response_code), times in replies.codes.items():
            self.observe(request_code, response_code, ms, times=times)
        if replies.successes:
            code = requests[0].command.code
            self.observe(code, ResponseCode.SUCCESS, ms, times=replies.successes)

    def snapshot(self) -> list[tuple[Key, Histogram]]:
        with self._lock:
            return [(key, histogram.copy()) for key, histogram in self._table.items()]


def request_name(code: int) -> str:
    """As RocketMQ labels it."""
    try:
        return RequestCode(code).name.lower()
    except ValueError:
        return str(code)


def response_name(code: int) -> str:
    try:
        return ResponseCode(code).name.lower()
    except ValueError:
        return str(code)
