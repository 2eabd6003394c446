"""The trio loop as sockets and other threads meet it: callbacks when a socket is ready, calls soon.

A task that waits for its socket with trio costs a round through trio's scheduler and two system
calls for every read, some 30 % of the samples of a server busy with pulls (2026-11-18).  So all
connections of a loop are watched by one epoll of our own, and only that one is waited for with
trio.  Once something has happened the loop stays with its sockets for a while (`TURN_SECONDS`) and
waits for the next event there, with the interpreter released, before trio's other tasks have their
turn:

    1. trio: our epoll is readable.
    2. turn: runs what is ready and what other threads have asked for, and waits for more; it ends
       after `PATIENCE_SECONDS` without news, or when trio's tasks have waited for long enough.
    3. trio: its timers and tasks run; back to 1.

`call_soon` may come from any thread, and must not be missed by a loop that is about to wait:

    1. other thread: appends the call, then rings the bell unless the loop is awake.
    2. loop: says that it is no longer awake, then looks at the calls once more, then waits.

Whichever comes first, either the bell rings or the loop sees the call.

Callbacks run on the loop and must neither block nor raise.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
BROKEN = select.EPOLLERR | select.EPOLLHUP
"""Told of every watched socket, asked for or not."""

PATIENCE_SECONDS = 0.001
"""How long a turn waits for one more event: the least that epoll knows.  A client that is busy
sends its next request within a fraction of that."""

TURN_SECONDS = 0.004
"""How long trio's tasks may have to wait for a turn to end.  Their timers are coarser than that."""

_loops: trio.lowlevel.RunVar[Loop] = trio.lowlevel.RunVar("pyritemq_loop")


def current_loop() -> Loop:
    """The loop of this trio run, made at the first call; on the loop only."""
    try:
        return _loops.get()
    except LookupError:
        loop = Loop()
        _loops.set(loop)
        trio.lowlevel.spawn_system_task(loop.run)
        return loop


class Loop:
    """Watches sockets and takes calls of other threads; all but `call_soon` on the loop only."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, READABLE)
        self._watched: dict[int, Callable[[int], object]] = {self._bell: self._answer_bell}
        self._calls: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._awake = False
        self._has_rung = False
        self._closed = False
        self._bell_lock = threading.Lock()  # so that nobody rings when it is closed

    def watch(self, sock: socket.socket, callback: Callable[[int], object]) -> None:
        """Call back with a mask of events whenever the socket can be read."""
        self._epoll.register(sock, READABLE)
        self._watched[sock.fileno()] = callback

    def change(self, sock: socket.socket, events: int) -> None:
        """Watch for other events from now on, READABLE | WRITABLE or one or none of them."""
        self._epoll.modify(sock, events)

    def forget(self, sock: socket.socket) -> None:
        """No longer call back; before the socket is closed."""
        if self._watched.pop(sock.fileno(), None) is not None:
            self._epoll.unregister(sock)

    def call_soon(self, function: Callable[..., object], *args: object) -> bool:
        """Call a function on the loop soon, from any thread; False if the loop is over."""
        if self._closed:
            return False
        self._calls.append((function, args))
        if not self._awake and not self._has_rung:
            self._ring()
        return True

    async def run(self) -> None:
        """Until trio's run is over."""
        try:
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                self._turn()
        finally:
            self._epoll.close()
            with self._bell_lock:
                self._closed = True
                os.close(self._bell)

    def _turn(self) -> None:
        end = time.monotonic() + TURN_SECONDS
        patience = 0.0
        while self._serve(patience) or patience == 0:
            patience = PATIENCE_SECONDS
            if time.monotonic() >= end:
                break
        if self._calls:
            self._ring()

    def _serve(self, patience: float) -> bool:
        """Whatever is ready or comes within the time; whether there was anything."""
        self._awake = False
        events = self._epoll.poll(0 if self._calls else patience)
        self._awake = True
        watched = self._watched
        for descriptor, mask in events:
            # Closed by an earlier event of this list, or by now another socket's number: either
            # way nothing worse happens than a read that finds nothing.
            callback = watched.get(descriptor)
            if callback is not None:
                callback(mask)
        had_calls = self._run_calls()
        self._awake = False
        return bool(events) or had_calls

    def _run_calls(self) -> bool:
        """Those that have come so far: one that always asks for another must not keep us."""
        calls = self._calls
        count = len(calls)
        for _ in range(count):
            function, args = calls.popleft()
            function(*args)
        return count > 0

    def _ring(self) -> None:
        with self._bell_lock:
            if not self._closed:
                self._has_rung = True
                os.eventfd_write(self._bell, 1)

    def _answer_bell(self, _mask: int) -> None:
        os.eventfd_read(self._bell)
        self._has_rung = False
