"""Lanes as they count themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.server.metrics.text import COUNTER, GAUGE, Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyritemq.server.lanes import Lane, LanePool, LaneStatistics

NANOSECONDS = 1_000_000_000

# name, kind, help, value
LANE_METRICS: tuple[tuple[str, str, str, Callable[[LaneStatistics], float]], ...] = (
    ("queue_depth", GAUGE, "Requests that wait or run", lambda s: s.queued),
    ("queue_capacity", GAUGE, "Requests that may wait or run", lambda s: s.capacity),
    ("threads", GAUGE, "Threads started so far", lambda s: s.threads),
    ("requests_total", COUNTER, "Requests served", lambda s: s.requests),
    ("drains_total", COUNTER, "Batches that the requests were served in", lambda s: s.drains),
    ("refused_total", COUNTER, "Requests refused with SYSTEM_BUSY", lambda s: s.refused),
    (
        "wait_seconds_total",
        COUNTER,
        "Time that requests waited, summed over requests",
        lambda s: s.waited_ns / NANOSECONDS,
    ),
    (
        "serve_seconds_total",
        COUNTER,
        "Time that threads of the lane were at work",
        lambda s: s.served_ns / NANOSECONDS,
    ),
)


def lane_families(services: Mapping[str, Mapping[Lane, LanePool]]) -> Iterator[Family]:
    """All lanes of all services."""
    statistics = [
        ({"service": service, "lane": lane.value}, pool.statistics())
        for service, lanes in services.items()
        for lane, pool in lanes.items()
    ]
    for name, kind, text, value in LANE_METRICS:
        family = Family(f"pyritemq_lane_{name}", kind, text)
        for labels, numbers in statistics:
            family.add(value(numbers), labels)
        yield family
