"""The broker's part for POP: its tables, its long-polls, and the job that revives.

`revive_topic` holds check points and acks; `point_message` and `ack_message` make them.  A record
whose time lies ahead goes through the timers, like a message that a client sends with a timer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import trio

from pyritemq.server.broker.pop.buffer import PopBuffer
from pyritemq.server.broker.pop.long_polling import PopLongPolling
from pyritemq.server.broker.pop.order_info import OrderInfoTable
from pyritemq.server.broker.pop.positions import PopPositions
from pyritemq.server.broker.pop.request_modes import RequestModeTable
from pyritemq.server.broker.pop.revive import Reviver
from pyritemq.server.broker.pop.revive_records import (
    ACK_TIME_INTERVAL_MS,
    Ack,
    CheckPoint,
    revive_message,
)
from pyritemq.server.broker.pop.subscribe_routes import SubscribeRoutes
from pyritemq.server.broker.state import names
from pyritemq.server.lanes import Lane
from pyritemq.storage.tables import JsonTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyritemq.server.broker.broker import Broker
    from pyritemq.server.broker.pop.positions import QueueKey
    from pyritemq.server.dispatch import Dispatcher
    from pyritemq.server.registry import Request
    from pyritemq.storage.messages import MessageToStore

WATCH_SECONDS = 0.1
"""Java's TIMER_TICK_MS: how late the end of a block in an ordered queue may be noticed."""


class PopService:
    """POP of one broker."""

    def __init__(self, broker: Broker, tables: Path, *, now_ms: Callable[[], int]) -> None:
        config = broker.config
        self._broker = broker
        self._now_ms = now_ms
        self.revive_topic = names.REVIVE_TOPIC_PREFIX + config.broker_cluster_name
        self.positions = PopPositions(broker.offsets)
        self.buffer = PopBuffer(broker, now_ms=now_ms)
        self.orders = OrderInfoTable(
            JsonTable(tables / "consumerOrderInfo.json"), now_ms=now_ms, is_known=self._is_known
        )
        self.orders.load()
        self.modes = RequestModeTable(JsonTable(tables / "messageRequestMode.json"))
        self.modes.load()
        self.routes = SubscribeRoutes(config, now_ms=now_ms)
        self._watch_lock = threading.Lock()
        self._watched = set(self.orders.blocked())
        self.long_polling: PopLongPolling
        self.notifications: PopLongPolling
        self.waiting: tuple[PopLongPolling, ...] = ()
        self.persist = self.orders.persist

    def connect(self, dispatcher: Dispatcher[Broker]) -> None:
        """Give requests that wait a way back to the pull lane."""

        def resume(requests: list[Request[Any]]) -> None:
            requests[0].channel.in_loop(dispatcher.offer, Lane.PULL, requests)

        config = self._broker.config
        self.waiting = self.long_polling, self.notifications = tuple(
            PopLongPolling(
                resume=resume,
                now_ms=self._now_ms,
                count_max=config.max_pop_polling_size,
                queue_count_max=config.pop_polling_size,
            )
            for _ in range(2)
        )

    async def run(self) -> None:
        """All background work, until cancelled."""
        async with trio.open_nursery() as nursery:
            for waiting in self.waiting:
                nursery.start_soon(waiting.run)
            nursery.start_soon(self._watch_orders)
            nursery.start_soon(self.buffer.run)
            nursery.start_soon(self.routes.run)
            if self._broker.config.timer_wheel_enable:
                nursery.start_soon(Reviver(self._broker).run)

    # -- records of the revive log --------------------------------------------------------------

    def is_revive_queue(self, queue_id: int) -> bool:
        return 0 <= queue_id < self._broker.config.revive_queue_num

    def point_message(self, point: CheckPoint, revive_queue_id: int) -> MessageToStore:
        """Raises RequestRefused if it is further away than timers may be."""
        return self._message(point, revive_queue_id, point.revive_time - ACK_TIME_INTERVAL_MS)

    def ack_message(self, ack: Ack, revive_queue_id: int, revive_ms: int) -> MessageToStore:
        """Raises RequestRefused if it is further away than timers may be."""
        return self._message(ack, revive_queue_id, revive_ms)

    def _message(
        self, record: CheckPoint | Ack, revive_queue_id: int, deliver_ms: int
    ) -> MessageToStore:
        message = revive_message(
            record,
            revive_topic=self.revive_topic,
            revive_queue_id=revive_queue_id,
            deliver_ms=deliver_ms,
            now_ms=self._now_ms(),
            host=self._broker.store_host,
        )
        self._broker.timers.hold(message)
        return message

    # -- queues that are popped in order --------------------------------------------------------

    def notify(self, topic: str, group: str, queue_id: int) -> None:
        """A queue that was blocked can be popped again."""
        for waiting in self.waiting:
            waiting.notify(topic, group, queue_id)

    def watch(self, key: QueueKey) -> None:
        """Let others look when the block of a queue ends of itself."""
        if self._broker.config.enable_notify_after_pop_order_lock_release:
            with self._watch_lock:
                self._watched.add(key)

    async def _watch_orders(self) -> None:
        while True:
            await trio.sleep(WATCH_SECONDS)
            if self._watched:
                self.end_blocks()

    def end_blocks(self) -> None:
        """Tell those who wait about blocks that have ended."""
        with self._watch_lock:
            ended = [key for key in self._watched if self.orders.free_at(key) is None]
            self._watched.difference_update(ended)
        for topic, group, queue_id in ended:
            self.notify(topic, group, queue_id)

    def _is_known(self, key: QueueKey) -> bool:
        topic, group, queue_id = key
        config = self._broker.topics.get(topic)
        return (
            config is not None
            and queue_id < config.read_queue_nums
            and group in self._broker.groups
        )
