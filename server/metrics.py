"""The server's own numbers in Prometheus' text form, over HTTP when asked for.

The lanes count for themselves; this module only reads and prints.  Runs on the loop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Mapping

    from pyritemq.server.lanes import Lane, LanePool, LaneStatistics

logger = logging.getLogger(__name__)

REQUEST_MAX_BYTES = 8192
REQUEST_SECONDS = 5
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


async def serve_metrics(listener: socket.socket, render: Callable[[], str]) -> None:
    """Answer GET /metrics until cancelled; anything else gets 404."""
    wrapped = trio.SocketListener(trio.socket.from_stdlib_socket(listener))

    async def answer(stream: trio.SocketStream) -> None:
        with trio.move_on_after(REQUEST_SECONDS):
            try:
                request = await _read_request(stream)
                await stream.send_all(b"".join(_response(request, render)))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        await trio.aclose_forcefully(stream)

    await trio.serve_listeners(answer, [wrapped])


async def _read_request(stream: trio.SocketStream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and len(data) < REQUEST_MAX_BYTES:
        more = await stream.receive_some(REQUEST_MAX_BYTES)
        if not more:
            break
        data += more
    return data


def _response(request: bytes, render: Callable[[], str]) -> Iterable[bytes]:
    found = request.startswith((b"GET /metrics ", b"GET /metrics?"))
    body = render().encode() if found else b"not found\n"
    status = b"200 OK" if found else b"404 Not Found"
    yield b"HTTP/1.1 " + status + b"\r\n"
    yield b"Content-Type: text/plain; version=0.0.4\r\n"
    yield b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    yield body
