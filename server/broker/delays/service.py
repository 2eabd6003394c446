"""The broker's part for delay levels: the levels, how far each is, and the job that delivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyritemq.server.broker.delays.delivery import DelayedDelivery
from pyritemq.server.broker.delays.offsets import DelayOffsetTable
from pyritemq.storage.derive import parse_delay_levels

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.server.broker.delays.delivery import Put
    from pyritemq.storage.message_store import MessageStore
    from pyritemq.storage.tables import JsonTable


class DelayService:
    """`run` delivers; `persist` is called from time to time and at stop."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MessageStore,
        file: JsonTable,
        *,
        put: Put,
        now_ms: Callable[[], int],
    ) -> None:
        levels_ms = parse_delay_levels(config.message_delay_level)
        self.level_max = len(levels_ms)
        self.offsets = DelayOffsetTable(
            file,
            now_ms=now_ms,
            flush_store=store.flush,
            version_step=config.delay_offset_update_version_step,
        )
        self.offsets.load()
        delivery = DelayedDelivery(store, self.offsets, put, levels_ms=levels_ms, now_ms=now_ms)
        self.run = delivery.run
        self.persist = self.offsets.persist
