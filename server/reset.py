"""Starting over in a running server: an empty broker takes the old one's place, for tests.

    1. pause every lane but the send lane: no request is under way, and what comes now waits.
       See that the send lane moves: up to here a reset can be refused and nothing has changed.
    2. leave the name servers and end the background jobs; some wait for the send lane, so it runs.
    3. wait until the send lane has written what those jobs gave it, then pause it too.
    4. give up the store unsaved, empty its folder, make a broker on it, let it know the clients.
    5. give the dispatcher the new broker, start its jobs, register, resume the lanes.

Sockets, lanes and connections stay, and so does who is connected: a client that sends its
heartbeat every 30 seconds must not be a stranger until the next one.  Requests that were paused are
served by the new broker, as if they had come after the reset.  Pulls that were held are answered
by it too.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from pyritemq.server.broker.broker import Broker
from pyritemq.server.broker.state.names import retry_topic
from pyritemq.server.lanes import Lane
from pyritemq.storage.drop import delete_dropped, drop_store
from pyritemq.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyritemq.server.lanes import LanePool
    from pyritemq.server.lifecycle import RunningBroker

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 15.0
"""How long requests under way may take; the longest are those of tools that ask a client (10 s)."""

PUT_SECONDS = 15.0


class ResetRefused(Exception):  # noqa: N818 - an answer to whoever asked
    """Nothing was dropped; the text says why."""


async def start_over(running: RunningBroker, *, look_ups: LanePool | None = None) -> None:
    """Put an empty broker in place of the one that runs; on the loop, one at a time.

    `look_ups` is the lane of routes of a name server in this process: it is paused as well, so that
    no client asks while the broker is not registered.  Raises ResetRefused, and then nothing has
    changed; StorageError or OSError if the folder could not be emptied or used, or the send lane
    got stuck half-way.
    """
    old, dispatcher = running.broker, running.server.dispatcher
    others = [pool for lane, pool in dispatcher.lanes.items() if lane is not Lane.SEND]
    if look_ups is not None:
        others.append(look_ups)
    paused = PausedLanes()
    dropped: list[Path] = []
    try:
        with trio.CancelScope(shield=True):  # bounded; half a reset would be no broker at all
            await trio.to_thread.run_sync(paused.pause, others)
            await trio.to_thread.run_sync(finish_own_sends, old)
            await running.end_jobs()
            await trio.to_thread.run_sync(paused.pause_send_lane, old)
            new, dropped = await trio.to_thread.run_sync(empty_broker, old)
            new.connect(dispatcher)
            held = old.long_polling.give_up()
            for waiting in old.pop.waiting:
                held += waiting.give_up()
            dispatcher.service = running.broker = new
            await running.start_jobs()
    finally:
        paused.resume()
    dispatcher.offer(Lane.PULL, held)
    logger.info("reset done held_pulls=%d", len(held))
    await trio.to_thread.run_sync(delete_dropped, dropped)


class PausedLanes:
    """Lanes that are paused one after the other, and resumed whatever happens."""

    def __init__(self) -> None:
        self._paused: list[LanePool] = []

    def pause(self, pools: Iterable[LanePool]) -> None:
        """Wait for what is under way.  Raises ResetRefused.  Blocks: not for the loop."""
        for pool in pools:
            if not pool.pause(timeout_s=PAUSE_SECONDS):
                raise ResetRefused(
                    f"a request in lane {pool.lane} has been under way for {PAUSE_SECONDS:.0f} s"
                )
            self._paused.append(pool)

    def pause_send_lane(self, broker: Broker) -> None:
        """When what the broker's jobs gave it is written.  Raises StorageError.  Blocks."""
        try:
            finish_own_sends(broker)
            self.pause([broker.lanes[Lane.SEND]])
        except ResetRefused as refusal:
            raise StorageError(str(refusal)) from refusal

    def resume(self) -> None:
        while self._paused:
            self._paused.pop().resume()


def finish_own_sends(broker: Broker) -> None:
    """Wait until the send lane has written all that the broker itself has given it; blocks.

    Raises ResetRefused if it does not get there.
    """
    written = threading.Event()
    broker.internal_sends.put([], lambda results: written.set())
    if not written.wait(PUT_SECONDS):
        raise ResetRefused(f"the send lane has written nothing for {PUT_SECONDS:.0f} s")


def empty_broker(old: Broker) -> tuple[Broker, list[Path]]:
    """A broker on the emptied folder of another, whose lanes and jobs are at rest; blocks.

    Returns what is left to delete as well.  Raises StorageError or OSError, and then the old broker
    has no store any more: it refuses sends and finds nothing.
    """
    config = old.config
    old.store.abandon()
    keep = [Path(config.broker_config_path)] if config.broker_config_path else []
    dropped = drop_store(old.store.config, keep=keep)
    host, _, port = old.advertised_address.rpartition(":")
    new = Broker(config, advertised=(host, int(port)), clock=old.clock)
    _adopt_clients(new, old)
    return new, dropped


def _adopt_clients(new: Broker, old: Broker) -> None:
    """Who is connected stays connected, and finds what its heartbeats would have made."""
    new.producers.adopt(old.producers)
    new.consumers.adopt(old.consumers)
    new.queue_locks.adopt(old.queue_locks)
    for consumers in old.consumers.groups().values():
        group = new.groups.find(consumers.name)
        if group is None:
            continue
        new.topics.create_on_send_back(
            retry_topic(consumers.name), queue_nums=group.retry_queue_nums
        )
        new.filters.register(consumers.name, consumers.subscriptions.values())
