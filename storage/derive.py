"""CommitLog -> ConsumeQueue: what a record says about its queue (Java: reput and dispatch).

The send lane stages units while it appends, so a running store derives nothing a second time. This
module is for recovery, which reads records back and places their units, and for the one value that
needs the store's clock: the tags code of a delayed message.
"""

from typing import TYPE_CHECKING, Final

from pyritemq.compat.java_hash import tags_code
from pyritemq.protocol.record import TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from pyritemq.storage.consume_queue import BLANK_SIZE, ConsumeQueue
from pyritemq.storage.deletions import TopicDeletions
from pyritemq.storage.errors import StoreUnusableError
from pyritemq.storage.queue_table import QueueTable
from pyritemq.storage.record_codec import CheckedRecord

if TYPE_CHECKING:
    from pyritemq.storage.consume_queue_ext import ConsumeQueueExts

SCHEDULE_TOPIC: Final = b"SCHEDULE_TOPIC_XXXX"
GAP_MAX: Final = 300_000  # ours: a file of units; a wider hole in a queue is a damaged offset

_SEPARATOR: Final = 0x02
_TAGS: Final = b"TAGS\x01"
_DELAY: Final = b"DELAY\x01"
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNKNOWN_LEVEL_MS: Final = 1_000  # DefaultMessageStore.computeDeliverTimestamp


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Milliseconds of level 1, 2, … out of messageDelayLevel ("1s 5s 10s …")."""
    try:
        return tuple(int(level[:-1]) * _UNIT_MS[level[-1]] for level in text.split())
    except (ValueError, KeyError) as error:
        raise StoreUnusableError(f"messageDelayLevel is not understood: {text}") from error


def is_in_queue(sys_flag: int) -> bool:
    """Whether a record has a unit: prepared and rolled back halves are not for consumers."""
    transaction = sys_flag & TRANSACTION_MASK
    return transaction not in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


def derive_tags_code(
    topic: bytes, properties: bytes, store_timestamp: int, delay_levels: tuple[int, ...]
) -> int:
    """The unit's third field: hash of the tags or, in the schedule topic, the time of delivery."""
    if topic == SCHEDULE_TOPIC:
        delay = property_of(properties, _DELAY)
        level = min(int(delay), len(delay_levels)) if delay.isdigit() else 0
        if level > 0:
            return store_timestamp + delay_levels[level - 1]
    return tags_code(property_of(properties, _TAGS).decode("utf-8", "replace"))


def property_of(properties: bytes, prefix: bytes) -> bytes:
    """Value of the last property with this name and separator, or nothing."""
    at = properties.rfind(prefix)
    while at > 0 and properties[at - 1] != _SEPARATOR:  # within another name or value
        at = properties.rfind(prefix, 0, at + len(prefix) - 1)
    if at < 0:
        return b""
    end = properties.find(_SEPARATOR, at)
    return properties[at + len(prefix) : end if end >= 0 else len(properties)]


def _can_name_a_folder(topic: bytes) -> bool:
    """Whether a topic read back may become a path: the record's CRC does not cover it."""
    try:
        name = topic.decode()
    except UnicodeDecodeError:
        return False
    return bool(name) and name not in (".", "..") and not {"/", "\0"} & set(name)


class UnitsMissingError(Exception):
    """A queue lacks units of records that lie before the start of recovery's scan."""


class Deriver:
    """Places the units of records that were read back from the CommitLog, in their order."""

    def __init__(
        self, table: QueueTable, delay_levels: tuple[int, ...], deletions: TopicDeletions
    ) -> None:
        self._table = table
        self._delay_levels = delay_levels
        self.deletions = deletions
        self.exts: ConsumeQueueExts | None = None  # set where messages get ext units
        self.from_start = True  # the scan began with the CommitLog: no earlier record can help

    def derive(self, record: CheckedRecord) -> str | None:
        """Place the record's unit unless it is there; returns what is wrong with the record."""
        if not is_in_queue(record.sys_flag):
            return None
        if self.deletions.covers(record.topic, record.phy_offset):
            return None
        queue = self._table.queues.get((record.topic, record.queue_id))
        if queue is None:
            if not _can_name_a_folder(record.topic) or record.queue_id < 0:
                return f"topic {record.topic!r}, queue {record.queue_id}"
            queue = self._table.find_or_create(record.topic, record.queue_id)
        gap = record.queue_offset - queue.next_offset
        if gap < 0:
            return None
        if gap and not self._bridge(queue, record.queue_offset, gap):
            return f"queue offset {record.queue_offset} where {queue.next_offset} comes next"
        code = derive_tags_code(
            record.topic, record.properties, record.store_timestamp, self._delay_levels
        )
        if self.exts is not None:
            timestamp = record.store_timestamp
            code = self.exts.put(queue, code, timestamp, record.topic, record.properties)
            self.exts.write()
            self.exts.publish()
        queue.stage(record.phy_offset, record.size, code)
        queue.max_offset = queue.next_offset
        if not queue.dirty:
            self._table.mark_dirty(queue)
        return None

    def _bridge(self, queue: ConsumeQueue, offset: int, gap: int) -> bool:
        """Bring the queue's end to the offset, past lost units; False if those are too many."""
        if not self.from_start and gap <= GAP_MAX:
            name = f"{queue.topic.decode()}/{queue.queue_id}"
            raise UnitsMissingError(f"{name} has {queue.next_offset} units where {offset} belong")
        if queue.min_offset == queue.next_offset:
            self._table.loader.restart(queue, offset)
            return True
        for _ in range(gap if gap <= GAP_MAX else 0):
            queue.stage(0, BLANK_SIZE, 0)
        return gap <= GAP_MAX
