"""The name server as its handlers see it: named parts, and the job that runs beside them.

NameServer owns no socket; a RemotingServer feeds it requests on lanes CLIENT and ADMIN. Several
name servers in a process, or in a cluster, know nothing of each other: brokers tell all of them.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from pyritemq.compat.namesrv_conf import NAMESRV_CONFIG_SECTIONS
from pyritemq.compat.properties_file import format_properties
from pyritemq.server.namesrv.kv_config import KvConfig
from pyritemq.server.namesrv.min_broker_id import MinBrokerIdNotifier
from pyritemq.server.namesrv.route_replies import RouteReplies
from pyritemq.server.namesrv.routes import RouteTable
from pyritemq.storage.tables import JsonTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyritemq.compat.conf.settings import Change
    from pyritemq.compat.namesrv_conf import NamesrvConfig
    from pyritemq.server.clock import Clock
    from pyritemq.server.connection import Channel
    from pyritemq.server.namesrv.route_data import MinBrokerIdChange

logger = logging.getLogger(__name__)

FIRST_SCAN_S = 5.0  # NamesrvController.startScheduleService


class NameServer:
    """Parts: config, clock, routes, route_replies, kv_config."""

    def __init__(self, config: NamesrvConfig, *, clock: Clock) -> None:
        """Reads the KV configuration; raises ConfigError or StorageError if it cannot be read."""
        self.config = config
        self.clock = clock
        self.routes = RouteTable(self._monotonic_ms)
        self.kv_config = KvConfig(JsonTable(Path(config.kv_config_path)))
        self.route_replies = RouteReplies(self.routes, self.kv_config, config)
        self._notifier = MinBrokerIdNotifier()
        self._started_ms = self._monotonic_ms()
        self._updating = threading.Lock()

    def is_ready(self) -> bool:
        """With needWaitForService, routes are given out only when brokers had time to register."""
        if not self.config.need_wait_for_service:
            return True
        waited_ms = self._monotonic_ms() - self._started_ms
        return waited_ms >= self.config.wait_seconds_for_service * 1000

    def channel_closed(self, channel: Channel) -> None:
        """Forget at once what registered on a connection; called on lane CLIENT."""
        dropped, changes = self.routes.drop_channel(channel)
        for key in dropped:
            logger.warning("broker connection closed cluster=%s address=%s", *key)
        self.tell_of_min_broker_id(changes)

    def tell_of_min_broker_id(self, changes: Iterable[MinBrokerIdChange]) -> None:
        if self.config.notify_min_broker_id_changed:
            self._notifier.tell(changes)

    def update_config(self, properties: Mapping[str, str]) -> list[Change]:
        """Change known keys and save the whole configuration; raises ConfigError on a bad value."""
        with self._updating:
            changes = self.config.update(properties)
            saved = format_properties(self.config.to_properties(NAMESRV_CONFIG_SECTIONS))
            JsonTable(Path(self.config.config_store_path)).save(saved.encode())
            return changes

    async def run(self) -> None:
        """Scan for silent brokers until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._notifier.run)
            await trio.sleep(FIRST_SCAN_S)
            while True:
                await trio.to_thread.run_sync(self.expire_silent_brokers)
                await trio.sleep(self.config.scan_not_active_broker_interval / 1000)

    def expire_silent_brokers(self) -> None:
        """One scan; closes the connections of the brokers that it removes."""
        silent, changes = self.routes.expire_silent()
        for key, live in silent:
            logger.warning(
                "broker expired cluster=%s address=%s timeout_ms=%d", *key, live.timeout_ms
            )
            live.channel.close()
        self.tell_of_min_broker_id(changes)

    def _monotonic_ms(self) -> int:
        return self.clock.monotonic_ns() // 1_000_000
