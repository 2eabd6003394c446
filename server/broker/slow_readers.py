"""Groups that have fallen so far behind that reading for them would harm the others.

With disableConsumeIfConsumerReadSlowly the pull lanes note, for each queue of each group, how many
bytes of CommitLog have been written since the last message that it was given; every three minutes
a group that is further behind than consumerFallbehindThreshold on any queue may no longer consume
(Java: BrokerController.protectBroker).  An operator lets it again with `mqadmin updateSubGroup`.

Called by the pull lanes and a background thread; `_lock` guards the table, for one look at a time.
"""

from __future__ import annotations

import logging
import struct
import threading
from typing import TYPE_CHECKING

from pyritemq.storage.messages import GetStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyritemq.compat.broker_conf import BrokerConfig
    from pyritemq.server.broker.state.groups import SubscriptionGroupTable
    from pyritemq.storage.messages import GetResult

logger = logging.getLogger(__name__)

PROTECT_SECONDS = 180
"""How often Java looks."""

_SIZE = struct.Struct(">i")
_PHY_OFFSET = struct.Struct(">q")
_PHY_OFFSET_AT = 28
"""Of a record: behind size, magic, CRC, queue id, flag and queue offset."""


class SlowReaders:
    """How far behind each group was at its last pull of each queue."""

    def __init__(
        self, config: BrokerConfig, groups: SubscriptionGroupTable, *, log_end: Callable[[], int]
    ) -> None:
        self._config = config
        self._groups = groups
        self._log_end = log_end
        self._lock = threading.Lock()
        self._behind_bytes: dict[tuple[str, str, int], int] = {}

    def note(self, group: str, topic: str, queue_id: int, result: GetResult) -> None:
        """What a pull has found; a queue that has nothing more is not behind at all."""
        if not self._config.disk_fall_recorded:
            return
        if result.status is GetStatus.FOUND:
            behind_bytes = self._log_end() - last_phy_offset(result.slices[-1])
        elif result.status is GetStatus.OFFSET_OVERFLOW_ONE:
            behind_bytes = 0
        else:
            return
        with self._lock:
            self._behind_bytes[group, topic, queue_id] = behind_bytes

    def protect(self) -> None:
        """Close the broker to the groups that are too far behind."""
        if not self._config.disable_consume_if_consumer_read_slowly:
            return
        limit = self._config.consumer_fallbehind_threshold
        with self._lock:
            too_slow = {key: value for key, value in self._behind_bytes.items() if value > limit}
        for (group, topic, queue_id), behind_bytes in too_slow.items():
            if self._groups.disable_consume(group):
                logger.warning(
                    "consume disabled group=%s topic=%s queue=%d behind_bytes=%d",
                    group,
                    topic,
                    queue_id,
                    behind_bytes,
                )


def last_phy_offset(records: memoryview) -> int:
    """Where the last of some records begins."""
    position = 0
    while (end := position + _SIZE.unpack_from(records, position)[0]) < len(records):
        position = end
    (phy_offset,) = _PHY_OFFSET.unpack_from(records, position + _PHY_OFFSET_AT)
    return int(phy_offset)
