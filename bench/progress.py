"""How far a consumer group is, asked of the broker over the wire ten times a second.

The official Consumer prints its rate over a ten-second window, which says little about a backlog
that is gone in eight. But every pull carries the offset up to which the group has consumed, so the
broker knows it at any moment. Both servers are asked in the same way; it costs them some 40 small
requests a second.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from pyritemq.protocol.codes import RequestCode, ResponseCode
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder

if TYPE_CHECKING:
    from types import TracebackType

QUEUES = 4
"""What a client asks for when its send creates a topic."""
POLL_SECONDS = 0.1
STALL_SECONDS = 60.0


class BrokerProbe:
    """One blocking connection to a broker."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._decoder = FrameDecoder()
        self._opaque = 0

    def stored(self, topic: str) -> int:
        """Messages in the topic, by the highest offsets of its queues."""
        return sum(self.max_offset(topic, queue_id) for queue_id in range(QUEUES))

    def max_offset(self, topic: str, queue_id: int) -> int:
        return self._offset(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": str(queue_id)})

    def consumed(self, topic: str, group: str) -> int:
        """Messages that the group has consumed; 0 for a queue of which it has said nothing."""
        code = RequestCode.QUERY_CONSUMER_OFFSET
        base = {"consumerGroup": group, "topic": topic, "setZeroIfNotFound": "true"}
        return sum(self._offset(code, {**base, "queueId": str(q)}) for q in range(QUEUES))

    def _offset(self, code: RequestCode, fields: dict[str, str]) -> int:
        reply = self.ask(code, fields)
        return int(reply.ext_fields["offset"]) if reply.code == ResponseCode.SUCCESS else 0

    def ask(self, code: RequestCode, fields: dict[str, str]) -> Command:
        """The reply to one request."""
        self._opaque += 1
        request = Command(code, opaque=self._opaque, ext_fields=fields, serialize_type=1)
        self._socket.sendall(request.encode())
        while True:
            for reply in self._decoder.feed(self._socket.recv(65536)):
                if reply.opaque == self._opaque:
                    return reply

    def __enter__(self) -> BrokerProbe:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()


def watch_consumption(probe: BrokerProbe, topic: str, group: str, total: int) -> list[list[float]]:
    """Wait until the group has consumed total; the curve as [second, messages] pairs.

    Raises TimeoutError when nothing moves for STALL_SECONDS.
    """
    curve: list[list[float]] = []
    begin = moved = time.monotonic()
    last = 0
    while last < total:
        time.sleep(POLL_SECONDS)
        now, count = time.monotonic(), probe.consumed(topic, group)
        if count != last:
            moved, last = now, count
            curve.append([round(now - begin, 3), count])
        elif now - moved > STALL_SECONDS:
            raise TimeoutError(f"group {group} stopped at {last} of {total} messages")
    return curve


def steady_rate(curve: list[list[float]], total: int) -> float:
    """Messages per second between a tenth and nine tenths of the way.

    The start belongs to the client's first rebalance, the end to its last commit.
    """
    middle = [point for point in curve if total * 0.1 <= point[1] <= total * 0.9]
    if len(middle) < 2:
        middle = curve
    (first_at, first), (last_at, last) = middle[0], middle[-1]
    return (last - first) / (last_at - first_at) if last_at > first_at else float("nan")
