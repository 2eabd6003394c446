"""Pulls that wait for a message, owned by the trio loop.

A pull that finds nothing is held here until a message arrives on its queue or its time is up; then
it goes back to the pull lane once more, this time to be answered whatever it finds.

No arrival may be missed between "nothing found" and "held", and the send lane must not pay for
queues that nobody waits on.  So:

    1. pull lane: finds nothing, posts the pull to the loop.
    2. loop: enters the queue's key into `_held`, *then* looks at the queue's end again.
    3. send lane: publishes the new end of the queue, *then* looks whether the key is in `_held`.

Whichever comes first, one of the two sees the other.

A pull with an SQL filter cannot tell from an arrival whether it is for it, and the loop must not
spend time on clients' expressions.  It goes to the pull lane with `probing` set; if nothing that
arrived matches, the lane gives it back with `hold`, and it waits on with the deadline it had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from pyritemq.server.loop import current_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyritemq.server.broker.filters.sql92 import Expression
    from pyritemq.server.loop import Loop
    from pyritemq.server.registry import Request

QueueKey = tuple[str, int]

SWEEP_SECONDS = 0.5
"""How late a pull may be told that its time is up (Java: 5 s).  A sweep of all held pulls is
cheaper than a heap of deadlines: most pulls are answered long before theirs."""

OVERTAKEN_SECONDS = 5
"""How long a pull waits on after a message that is not for it: then it is answered, so that a
consumer's offset follows a queue that holds little for it.  Java's PullRequestHoldService looks
every 5 s for pulls whose queue has grown."""


class HeldPull:
    """A pull that waits: from which offset, for which tags (None: any) or expression, how long.

    Its request carries it as `header` when it comes back to the pull lane.  `looked_at` is the end
    of what the lane has found not to match; only the thread that has the pull in hand moves it.
    """

    __slots__ = (
        "deadline",
        "expression",
        "key",
        "looked_at",
        "offset",
        "probing",
        "request",
        "tag_hashes",
        "wait_ms",
    )

    def __init__(
        self,
        request: Request[Any],
        key: QueueKey,
        *,
        offset: int,
        tag_hashes: frozenset[int] | None,
        wait_ms: int,
        expression: Expression | None = None,
    ) -> None:
        self.request = request
        self.key = key
        self.offset = offset
        self.looked_at = offset
        self.tag_hashes = tag_hashes
        self.expression = expression
        self.wait_ms = wait_ms
        self.deadline = float("inf")
        self.probing = False

    def overtaken(self, now: float) -> None:
        """A message came that is not for this pull."""
        self.deadline = min(self.deadline, now + OVERTAKEN_SECONDS)


class Arrival(NamedTuple):
    """News of one batch for one queue."""

    key: QueueKey
    queue_end: int
    tag_hashes: frozenset[int]


class LongPolling:
    """Holds pulls and gives them back through `resume`, which runs on the loop."""

    def __init__(
        self,
        *,
        queue_end: Callable[[str, int], int],
        resume: Callable[[list[Request[Any]]], None],
    ) -> None:
        self._queue_end = queue_end
        self._resume = resume
        self._held: dict[QueueKey, list[HeldPull]] = {}
        self._somebody_waits = trio.Event()
        self._loop: Loop | None = None

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Give back pulls whose time is up, until cancelled."""
        self._loop = current_loop()
        task_status.started()
        while True:
            await self._somebody_waits.wait()
            await trio.sleep(SWEEP_SECONDS)
            self._resume_expired(trio.current_time())
            if not self._held:
                self._somebody_waits = trio.Event()

    def hold(self, pull: HeldPull) -> None:
        """Keep a pull until something happens; from a lane thread."""
        if self._loop is not None:
            self._loop.call_soon(self._enter, pull)

    @property
    def anybody_waits(self) -> bool:
        """Whether any pull is held at all: spares the send lane the look at each queue."""
        return bool(self._held)

    def is_awaited(self, key: QueueKey) -> bool:
        """Whether anyone waits for this queue; from the send lane, after it has published."""
        return key in self._held

    def announce(self, arrivals: list[Arrival]) -> None:
        """News of one batch, for queues that are awaited; from the send lane."""
        if self._loop is not None and arrivals:
            self._loop.call_soon(self._arrived, arrivals)

    def give_up(self) -> list[Request[Any]]:
        """All pulls that are held, to be answered by somebody else; on the loop."""
        pulls = [pull for waiting in self._held.values() for pull in waiting]
        self._held.clear()
        for pull in pulls:
            pull.request.suspended = True
            pull.request.header = pull
            pull.probing = False
        return [pull.request for pull in pulls if not pull.request.channel.closed]

    @property
    def held_count(self) -> int:
        return sum(map(len, self._held.values()))

    def _enter(self, pull: HeldPull) -> None:
        self._held.setdefault(pull.key, []).append(pull)
        now = trio.current_time()
        if pull.looked_at > pull.offset:
            pull.overtaken(now)
        else:
            pull.deadline = now + pull.wait_ms / 1000
        if self._queue_end(*pull.key) > pull.looked_at:
            self._leave([pull], arrived=True)
            return
        self._somebody_waits.set()

    def _arrived(self, arrivals: list[Arrival]) -> None:
        woken: list[HeldPull] = []
        now = trio.current_time()
        for key, queue_end, tag_hashes in arrivals:
            for pull in self._held.get(key, ()):
                if queue_end <= pull.looked_at:
                    continue
                if pull.tag_hashes is None or not pull.tag_hashes.isdisjoint(tag_hashes):
                    woken.append(pull)
                else:
                    pull.overtaken(now)
        self._leave(woken, arrived=True)

    def _resume_expired(self, now: float) -> None:
        self._leave(
            [pull for pulls in self._held.values() for pull in pulls if pull.deadline <= now]
        )

    def _leave(self, pulls: Iterable[HeldPull], *, arrived: bool = False) -> None:
        requests: list[Request[Any]] = []
        for pull in pulls:
            waiting = self._held[pull.key]
            waiting.remove(pull)
            if not waiting:
                del self._held[pull.key]
            if not pull.request.channel.closed:
                pull.request.suspended = True
                pull.request.header = pull
                pull.probing = arrived and pull.expression is not None
                requests.append(pull.request)
        if requests:
            self._resume(requests)
