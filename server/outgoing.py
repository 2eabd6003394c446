"""The write side of a connection: any thread writes, and what the socket does not take waits.

A lane thread that has answered writes to the socket itself; a detour over the trio loop would cost
two more wake-ups for each reply (consuming a backlog: 8.6 µs of CPU a message with it, 5.4 without;
one run each on a busy machine, 2026-11-18).  The lock keeps
frames whole and keeps the socket from being closed, and its number from being used again, while
somebody sends on it; it is never held across a wait, for the socket does not block.

    1. any thread: sends; the socket takes less; the rest is kept and `wake` tells the loop.
    2. loop: waits until the socket can be written and calls `send_more` until nothing is left.
    3. any thread meanwhile: finds a backlog and only adds to it, so the order stays.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pyritemq.server.lanes import Buffer

BACKLOG_MAX_BYTES = 256 * 1024 * 1024
"""Above this the peer is given up; only one that asks for much and reads nothing gets here."""

IOV_MAX = 1024
"""Buffers in one sendmsg; Linux's own limit."""

JOIN_MAX_BYTES = 64 * 1024
"""Up to this size one joined send is cheaper than sendmsg with many small buffers."""


class Outgoing:
    """Frames on their way to a peer.  `wake` is called, from any thread, when the loop must act."""

    __slots__ = ("_backlog", "_closed", "_lock", "_sock", "_wake", "backlog_bytes", "is_broken")

    def __init__(self, sock: socket.socket, wake: Callable[[], None]) -> None:
        self._sock = sock
        self._wake = wake
        self._lock = threading.Lock()
        self._backlog: deque[memoryview] = deque()
        self._closed = False
        self.backlog_bytes = 0
        self.is_broken = False

    def write(self, buffers: list[Buffer]) -> None:
        """Send now what the socket takes and keep the rest in order; dropped once closed."""
        with self._lock:
            if self._closed:
                return
            if self._backlog:
                self._keep(buffers)
                if self.backlog_bytes <= BACKLOG_MAX_BYTES:
                    return
            elif self._send(buffers):
                return
        self._wake()

    def send_more(self) -> bool:
        """Send from the backlog; whether anything is left.  Raises OSError.  On the loop."""
        with self._lock:
            backlog = self._backlog
            if backlog:
                parts = [backlog[index] for index in range(min(len(backlog), IOV_MAX))]
                with suppress(BlockingIOError):
                    self._sent(self._sock.sendmsg(parts))
            return bool(backlog)

    def close(self) -> None:
        """Close the socket, when nobody is sending on it; what waits is dropped."""
        with self._lock:
            self._closed = True
            self._sock.close()
            self._backlog.clear()
            self.backlog_bytes = 0

    @property
    def is_overfull(self) -> bool:
        return self.backlog_bytes > BACKLOG_MAX_BYTES

    def _send(self, buffers: list[Buffer]) -> bool:
        """Under the lock: whether all of it went out."""
        try:
            left = _send_some(self._sock, buffers)
        except OSError:
            self.is_broken = True
            return False
        self._keep(left)
        return not left

    def _keep(self, buffers: list[Buffer]) -> None:
        for buffer in buffers:
            view = memoryview(buffer)
            self._backlog.append(view)
            self.backlog_bytes += len(view)

    def _sent(self, count: int) -> None:
        backlog = self._backlog
        self.backlog_bytes -= count
        while count:
            head = backlog[0]
            if count < len(head):
                backlog[0] = head[count:]
                break
            count -= len(head)
            backlog.popleft()


def _send_some(sock: socket.socket, buffers: list[Buffer]) -> list[Buffer]:
    """Send what the socket takes at once; returns what is left."""
    total = sum(map(len, buffers))
    if len(buffers) > 1 and total <= JOIN_MAX_BYTES:
        buffers = [b"".join(buffers)]
    try:
        sent = sock.send(buffers[0]) if len(buffers) == 1 else sock.sendmsg(buffers[:IOV_MAX])
    except BlockingIOError:
        return buffers
    if sent == total:
        return []
    return _after(buffers, sent)


def _after(buffers: list[Buffer], sent: int) -> list[Buffer]:
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
