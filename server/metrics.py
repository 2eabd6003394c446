"""The server's own numbers in Prometheus' text form.

The lanes count for themselves; this module only reads and prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.server.lanes import Lane, LanePool, LaneStatistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NANOSECONDS = 1_000_000_000

# name, kind, help, value
LANE_METRICS: tuple[tuple[str, str, str, Callable[[LaneStatistics], float]], ...] = (
    ("queue_depth", "gauge", "Requests that wait or run", lambda s: s.queued),
    ("queue_capacity", "gauge", "Requests that may wait or run", lambda s: s.capacity),
    ("threads", "gauge", "Threads started so far", lambda s: s.threads),
    ("requests_total", "counter", "Requests served", lambda s: s.requests),
    ("drains_total", "counter", "Batches that the requests were served in", lambda s: s.drains),
    ("refused_total", "counter", "Requests refused with SYSTEM_BUSY", lambda s: s.refused),
    (
        "wait_seconds_total",
        "counter",
        "Time that requests waited, summed over requests",
        lambda s: s.waited_ns / NANOSECONDS,
    ),
    (
        "serve_seconds_total",
        "counter",
        "Time that threads of the lane were at work",
        lambda s: s.served_ns / NANOSECONDS,
    ),
)


def render_lanes(services: Mapping[str, Mapping[Lane, LanePool]]) -> str:
    """All lanes of all services, ready to be scraped."""
    statistics = [
        (service, lane, pool.statistics())
        for service, lanes in services.items()
        for lane, pool in lanes.items()
    ]
    lines: list[str] = []
    for name, kind, text, value in LANE_METRICS:
        metric = f"pyritemq_lane_{name}"
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
        lines += [
            f'{metric}{{service="{service}",lane="{lane}"}} {value(numbers)}'
            for service, lane, numbers in statistics
        ]
    return "\n".join(lines) + "\n"
