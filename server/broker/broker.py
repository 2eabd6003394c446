"""The broker: what a handler may reach, as named parts.  It has no logic of its own.

Each part says in its own module which lane owns it and what its lock is.  Background work (flush,
persisted tables, scans, registration, long-polls) runs under `run`, on the trio loop, with blocking
calls moved to threads.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import trio

from pyritemq.server.broker.delays.service import DelayService
from pyritemq.server.broker.fast_failure import refuse_while_busy
from pyritemq.server.broker.filters.bit_maps import bit_maps
from pyritemq.server.broker.filters.table import SAVE_SECONDS, ConsumerFilterTable
from pyritemq.server.broker.internal_sends import InternalSends
from pyritemq.server.broker.live_config import LiveConfig
from pyritemq.server.broker.long_polling import LongPolling
from pyritemq.server.broker.pop.service import PopService
from pyritemq.server.broker.registration import Registration
from pyritemq.server.broker.slow_readers import PROTECT_SECONDS, SlowReaders
from pyritemq.server.broker.state.channels import (
    ConsumerTable,
    ProducerTable,
    notify_consumer_ids_changed,
)
from pyritemq.server.broker.state.events import Events
from pyritemq.server.broker.state.groups import SubscriptionGroupTable
from pyritemq.server.broker.state.offsets import ConsumerOffsetTable
from pyritemq.server.broker.state.queue_locks import QueueLocks
from pyritemq.server.broker.state.queue_mappings import QueueMappingTable
from pyritemq.server.broker.state.stats import BrokerStats
from pyritemq.server.broker.state.topics import TopicTable
from pyritemq.server.broker.store_config import store_config
from pyritemq.server.broker.timers.service import EXPIRE_SECONDS, TimerService, TimersOff
from pyritemq.server.broker.transactions.service import TransactionService
from pyritemq.server.broker.unique_ids import UniqueIds
from pyritemq.server.connection import packed_host
from pyritemq.server.lanes import Lane
from pyritemq.storage.errors import StorageError
from pyritemq.storage.message_store import MessageStore
from pyritemq.storage.tables import JsonTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.server.clock import Clock
    from pyritemq.server.connection import Channel
    from pyritemq.server.dispatch import Dispatcher
    from pyritemq.server.lanes import LanePool

logger = logging.getLogger(__name__)


def send_properties(config: BrokerConfig) -> bytes:
    """What the broker adds to the properties of each message that is sent to it."""
    trace_on = "true" if config.trace_on else "false"
    return (
        f"MSG_REGION\x01{config.region_id}\x02TRACE_ON\x01{trace_on}\x02"
        f"CLUSTER\x01{config.broker_cluster_name}\x02"
    ).encode()


CLIENT_SCAN_SECONDS = 10
"""Java's ClientHousekeepingService."""

STATS_TICK_SECONDS = 1
"""Java's StoreStatsService."""


PAUSE_MIN_SECONDS = 0.001
"""Ours: an interval of 0, which Java takes, must not become a loop that does nothing else."""


class Broker:
    """The parts of one broker."""

    READ: ClassVar[int] = 4
    WRITE: ClassVar[int] = 2

    def __init__(self, config: BrokerConfig, *, advertised: tuple[str, int], clock: Clock) -> None:
        host, port = advertised
        self.config = config
        self.clock = clock
        self.events = Events()
        self.advertised_address = f"{host}:{port}"
        self.store_host = packed_host(host, port)
        self.send_properties = send_properties(config)
        self.unique_ids = UniqueIds(self.store_host[:-4], clock)
        tables = Path(config.store_path_root_dir) / "config"
        now_ms = clock.now_ms
        self.filters = ConsumerFilterTable(
            config, JsonTable(tables / "consumerFilter.json"), now_ms=now_ms
        )
        self.filters.load()  # first: recovery makes bit maps of messages by it
        self.store = MessageStore.open(
            store_config(config),
            now_ms=now_ms,
            bit_map_of=bit_maps(
                self.filters.on_topic,
                bit_num=self.filters.bit_num,
                is_on=lambda: self.config.enable_calc_filter_bit_map,
            ),
        )
        self.topics = TopicTable(config, JsonTable(tables / "topics.json"), now_ms=now_ms)
        self.groups = SubscriptionGroupTable(
            config, JsonTable(tables / "subscriptionGroup.json"), now_ms=now_ms
        )
        self.offsets = ConsumerOffsetTable(
            JsonTable(tables / "consumerOffset.json"),
            now_ms=now_ms,
            use_reset=config.use_server_side_reset_offset,
        )
        self.queue_mappings = QueueMappingTable(
            JsonTable(tables / "topicQueueMapping.json"), config.broker_name, now_ms=now_ms
        )
        for table in (self.topics, self.groups, self.offsets, self.queue_mappings):
            table.load()
        self.delays = DelayService(
            config,
            self.store,
            JsonTable(tables / "delayOffset.json"),
            put=lambda messages, done: self.internal_sends.put(messages, done, is_delayed=True),
            now_ms=now_ms,
        )
        self.timers: TimerService | TimersOff = TimersOff()
        if config.timer_wheel_enable:
            self.timers = TimerService(
                config,
                self.store,
                put=lambda messages, done: self.internal_sends.put(messages, done),
                now_ms=now_ms,
                events=self.events,
            )
        self.producers = ProducerTable(clock, expired_ms=config.channel_expired_timeout)
        self.consumers = ConsumerTable(
            clock,
            on_change=self._consumers_changed,
            expired_ms=config.channel_expired_timeout,
        )
        self.consumers.on_empty = self.filters.unregister
        self.transactions = TransactionService(
            self,
            lambda messages, done: self.internal_sends.put(messages, done),
            host=lambda: self.store_host,
            now_ms=now_ms,
        )
        self.pop = PopService(self, tables, now_ms=now_ms)
        self.queue_locks = QueueLocks(clock)
        self.slow_readers = SlowReaders(
            config, self.groups, log_end=lambda: self.store.max_phy_offset
        )
        self.registration = Registration(
            config,
            self.topics,
            self.queue_mappings,
            advertised_address=self.advertised_address,
        )
        self.topics.on_change = self.registration.topics_changed
        self.live_config = LiveConfig(config, now_ms=now_ms)
        self.stats = BrokerStats(
            cluster=config.broker_cluster_name,
            is_system_topic=self.topics.is_system_topic,
            now_ms=now_ms,
        )
        self.lanes: Mapping[Lane, LanePool] = {}
        self.put_began_ns = 0  # of the append under way; 0 between two; set on the send lane
        self.cold_data_limits: dict[str, int] = {}
        self.long_polling: LongPolling
        self.internal_sends: InternalSends

    def connect(self, dispatcher: Dispatcher[Broker]) -> None:
        """Give held pulls and our own sends a way to their lanes; called once, before serving."""
        self.long_polling = LongPolling(
            queue_end=self.store.max_offset,
            resume=lambda requests: dispatcher.offer(Lane.PULL, requests),
        )
        self.internal_sends = InternalSends(dispatcher)
        self.pop.connect(dispatcher)
        self.lanes = dispatcher.lanes

    def configured(self) -> None:
        """The configuration has changed: tell what keeps a copy of its part.  Lane ADMIN."""
        self.send_properties = send_properties(self.config)
        self.store.configure(store_config(self.config))

    def advertise(self, host: str, port: int) -> None:
        """Be known under another address from now on; the sockets stay.  Any lane."""
        self.advertised_address = f"{host}:{port}"
        self.store_host = packed_host(host, port)
        self.registration.renew(advertised_address=self.advertised_address)

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone; on lane CLIENT."""
        self.producers.channel_closed(channel)
        self.consumers.channel_closed(channel)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """All background work, until cancelled; started once the name servers have been told."""
        config = self.config
        async with trio.open_nursery() as nursery:
            await nursery.start(self.long_polling.run)
            every = nursery.start_soon
            every(_repeat, self.store.housekeep, lambda: config.flush_interval_commit_log / 1000)
            every(
                _repeat,
                self.offsets.persist,
                lambda: config.flush_consumer_offset_interval / 1000,
            )
            every(_repeat, self.delays.persist, lambda: config.flush_delay_offset_interval / 1000)
            every(self.delays.run)
            every(_repeat, self.timers.persist, lambda: config.timer_flush_interval_ms / 1000)
            every(_repeat, self.timers.expire, EXPIRE_SECONDS)
            every(self.timers.run)
            every(refuse_while_busy, self)
            every(self.transactions.run)
            every(self.pop.run)
            every(_repeat, self.pop.persist, SAVE_SECONDS)
            every(_repeat, self.filters.persist, SAVE_SECONDS)
            every(_repeat, self.topics.save_late, SAVE_SECONDS)
            every(_repeat, self.groups.save_late, SAVE_SECONDS)
            every(_repeat, self._scan_clients, CLIENT_SCAN_SECONDS)
            every(_repeat, self.slow_readers.protect, PROTECT_SECONDS)
            every(_repeat, self.stats.tick, STATS_TICK_SECONDS)
            await nursery.start(self.registration.run)
            task_status.started()

    def close(self) -> None:
        """Write everything down; the last call, when no lane runs any more.

        What cannot be written, on a full disk say, is logged and keeps nothing else from it.
        """
        parts = (self.topics, self.groups, self.offsets, self.filters, self.delays, self.pop)
        tables = (part.persist for part in parts)
        writes = (self.transactions.close, self.pop.buffer.close)
        saves = (*writes, *tables, self.timers.close, self.store.close)
        for save in saves:
            try:
                save()
            except (OSError, StorageError) as error:
                logger.error("not saved at stop work=%s reason=%s", save.__qualname__, error)

    def _scan_clients(self) -> None:
        self.producers.scan()
        self.consumers.scan()
        self.queue_locks.purge()

    def _consumers_changed(self, group: str, channels: list[Channel]) -> None:
        if self.config.notify_consumer_ids_changed_enable:
            notify_consumer_ids_changed(group, channels)


async def _repeat(work: Callable[[], None], pause: float | Callable[[], float]) -> None:
    """Call `work` in a thread again and again; a failure is logged and tried again next time.

    The pause is in seconds; one that the configuration gives is asked for each time.
    """
    while True:
        await trio.sleep(max(pause() if callable(pause) else pause, PAUSE_MIN_SECONDS))
        try:
            await trio.to_thread.run_sync(work)
        except (OSError, StorageError):
            logger.exception("background work failed work=%s", work.__qualname__)
