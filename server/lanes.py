"""Lanes: named, bounded thread pools, one for each kind of work.

A slow read in the pull lane must not delay a heartbeat, so each request code belongs to one lane
and a lane that is full refuses at once instead of making anyone wait.

Handing one request at a time to a thread costs more than all the rest of a send.  So the loop hands
over everything of one socket read as one job, a lane thread takes all the jobs that wait, and what
it answers goes out once, joined by connection:

    1. loop: `offer(requests)` counts them in and puts the list on the queue.
    2. lane thread: takes the list, and whatever else has been queued, as one drain.
    3. lane thread: runs the handlers; replies gather in an `Outbox`.
    4. lane thread: posts the outbox, which is written once to each connection.

Lane threads are daemons and are started when there is work for them, so an idle lane costs nothing.
`close` lets every queued request finish first.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.protocol.command import Command
    from pyritemq.server.connection import Channel
    from pyritemq.server.registry import Request


class Lane(StrEnum):
    """The kinds of work; a name server uses CLIENT for route look-ups and ADMIN for the rest."""

    SEND = "send"
    PULL = "pull"
    ACK = "ack"
    QUERY = "query"
    CLIENT = "client"
    CONSUMER = "consumer"
    TRANSACTION = "transaction"
    ADMIN = "admin"
    REPLY = "reply"
    REPLICATION = "replication"


Buffer = bytes | memoryview


class Outbox:
    """What one drain has to say, by connection; filled and sent on a lane."""

    __slots__ = ("chunks", "codes", "successes")

    def __init__(self) -> None:
        self.chunks: dict[Channel, list[Buffer]] = {}
        # For the metrics: replies by request and response code, and those that a batch counted.
        self.codes: dict[tuple[int, int], int] = {}
        self.successes = 0

    def add(self, channel: Channel, *buffers: Buffer) -> None:
        """Queue one frame (or its parts in order) for a connection."""
        chunks = self.chunks.get(channel)
        if chunks is None:
            self.chunks[channel] = list(buffers)
        else:
            chunks.extend(buffers)

    def add_reply(self, request: Request[Any], reply: Command) -> None:
        """Queue a reply unless the request was one-way."""
        key = request.command.code, reply.code
        self.codes[key] = self.codes.get(key, 0) + 1
        if not request.command.is_oneway:
            self.add(request.channel, reply.encode())


class LaneStatistics(NamedTuple):
    """A lane since start; times are sums over requests (waited) and drains (served)."""

    queued: int
    capacity: int
    threads: int
    requests: int
    drains: int
    refused: int
    waited_ns: int
    served_ns: int


class LanePool:
    """One lane's queue and threads.

    `offer` is called on the loop; `run` is called on lane threads with the requests of a drain and
    an outbox; `post` sends a filled outbox.
    """

    def __init__(
        self,
        lane: Lane,
        *,
        threads: int,
        capacity: int,
        run: Callable[[list[Request[Any]], Outbox], None],
        post: Callable[[Outbox], None],
    ) -> None:
        self.lane = lane
        self.capacity = capacity
        self._threads_max = threads
        self._run = run
        self._post = post
        self._queue: SimpleQueue[list[Request[Any]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        # One for each thread, which holds it during a drain; `pause` takes them all.
        self._gates: list[threading.Lock] = []
        self._paused = False
        # Guards the numbers below: the loop counts in, lane threads count out.
        self._lock = threading.Lock()
        self._queued = 0
        self._idle = 0
        self._closed = False
        self._requests = 0
        self._drains = 0
        self._refused = 0
        self._waited_ns = 0
        self._served_ns = 0

    def offer(self, requests: list[Request[Any]]) -> list[Request[Any]]:
        """Take what fits and return what does not; never blocks."""
        with self._lock:
            room = 0 if self._closed else self.capacity - self._queued
            taken = requests if room >= len(requests) else requests[: max(room, 0)]
            refused = requests[len(taken) :]
            self._queued += len(taken)
            self._refused += len(refused)
            if taken:
                self._queue.put(taken)
                # More jobs than threads that wait for one: without this a job could stand behind
                # a slow one that the only idle thread has just been given.
                if len(self._threads) < self._threads_max and self._queue.qsize() > self._idle:
                    self._start_thread()
        return refused

    def insist(self, request: Request[Any]) -> bool:
        """Take a request of our own, however full the lane is; False once it is closed."""
        with self._lock:
            if self._closed:
                return False
            self._queued += 1
            self._queue.put([request])
            if not self._threads:
                self._start_thread()
            return True

    def take_back(self, wanted: Callable[[Request[Any]], bool]) -> list[Request[Any]]:
        """Take out what waits and is wanted, while the threads are held up; the rest stays."""
        taken: list[Request[Any]] = []
        with self._lock:
            for _ in range(self._queue.qsize()):
                try:
                    requests = self._queue.get_nowait()
                except Empty:
                    break
                if requests is None:
                    self._queue.put(None)
                    continue
                taken += [request for request in requests if wanted(request)]
                rest = [request for request in requests if not wanted(request)]
                if rest:
                    self._queue.put(rest)
            self._queued -= len(taken)
            self._refused += len(taken)
        return taken

    def statistics(self) -> LaneStatistics:
        """A consistent copy of the lane's numbers."""
        with self._lock:
            return LaneStatistics(
                queued=self._queued,
                capacity=self.capacity,
                threads=len(self._threads),
                requests=self._requests,
                drains=self._drains,
                refused=self._refused,
                waited_ns=self._waited_ns,
                served_ns=self._served_ns,
            )

    def pause(self, *, timeout_s: float) -> bool:
        """Let the drains under way end and start none until `resume`; what comes meanwhile waits.

        False, and nothing is paused, if they take longer.  Blocks: not for the loop.
        """
        with self._lock:
            assert not self._paused, "a lane is paused by one at a time"
            self._paused = True  # from here on a new thread starts with its gate shut
            gates = list(self._gates)
        deadline = time.monotonic() + timeout_s
        for index, gate in enumerate(gates):
            if not gate.acquire(timeout=max(deadline - time.monotonic(), 0)):
                self._open(gates[:index] + self._gates[len(gates) :])
                return False
        return True

    def resume(self) -> None:
        """Go on after `pause`."""
        self._open(self._gates)

    def _open(self, gates: list[threading.Lock]) -> None:
        with self._lock:
            self._paused = False
            for gate in gates:
                gate.release()

    def close(self) -> None:
        """Refuse new work, finish what is queued, end the threads.  Blocks: not for the loop."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
            for _ in threads:
                self._queue.put(None)
        for thread in threads:
            thread.join()

    def _start_thread(self) -> None:
        name = f"{self.lane}-{len(self._threads)}"
        gate = threading.Lock()
        if self._paused:
            gate.acquire()
        thread = threading.Thread(target=self._work, args=(gate,), name=name, daemon=True)
        self._threads.append(thread)
        self._gates.append(gate)
        thread.start()

    def _work(self, gate: threading.Lock) -> None:
        while (requests := self._take()) is not None:
            with gate:
                started_ns = time.monotonic_ns()
                outbox = Outbox()
                self._run(requests, outbox)
                if outbox.chunks:
                    self._post(outbox)
                self._count(requests, started_ns, time.monotonic_ns())

    def _take(self) -> list[Request[Any]] | None:
        """The next drain: all that waits, or a fair share of it where several threads serve."""
        first = self._queue.get() if self._threads_max == 1 else self._get_counted()
        return None if first is None else self._take_more(first)

    def _get_counted(self) -> list[Request[Any]] | None:
        """Wait for a job, counted as idle meanwhile."""
        with suppress(Empty):
            return self._queue.get_nowait()
        with self._lock:
            self._idle += 1
        first = self._queue.get()
        with self._lock:
            self._idle -= 1
        return first

    def _take_more(self, first: list[Request[Any]]) -> list[Request[Any]]:
        queue = self._queue
        waiting = queue.qsize()
        share = waiting if self._threads_max == 1 else waiting // self._threads_max
        if share == 0:
            return first
        requests = list(first)
        for _ in range(share):
            try:
                more = queue.get_nowait()
            except Empty:
                break
            if more is None:
                # `close` has spoken: finish this drain, then read the same word again.
                queue.put(None)
                break
            requests.extend(more)
        return requests

    def _count(self, requests: list[Request[Any]], started_ns: int, ended_ns: int) -> None:
        # Requests of one job came in at once; the first and last stand for the rest of the drain.
        waited_ns = started_ns - (requests[0].received_ns + requests[-1].received_ns) // 2
        with self._lock:
            self._queued -= len(requests)
            self._requests += len(requests)
            self._drains += 1
            self._waited_ns += max(waited_ns, 0) * len(requests)
            self._served_ns += ended_ns - started_ns
