"""Appends a batch of messages: the hottest loop of the server, run by the send lane alone.

For each message: offsets, time and checksum into a record head packed by one struct, the parts collected, and a
unit staged on its ConsumeQueue. For the batch: one join and one write. Only then are the CommitLog's end and the queues'
ends published, in that order, so that a reader that sees a unit finds its record. A failure before that leaves no trace.
"""

from collections.abc import Callable, Sequence
from zlib import crc32

from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.consume_queue import ConsumeQueue
from pyritemq.storage.messages import MessageToStore, PutResult, PutStatus
from pyritemq.storage.queue_table import QueueTable
from pyritemq.storage.record_codec import (
    BLANK_MIN,
    BORNHOST_V6,
    HEAD_V4,
    HEADS,
    HOST_V4_SIZE,
    HOSTS_V6,
    PROPERTIES_LENGTH,
    PROPERTIES_MAX,
    STOREHOST_V6,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    TRANSACTION_TYPE,
)

RECORD_OVERHEAD_MAX = (
    64 << 10
)  # MessageExtEncoder: a record may be this much larger than maxMessageSize


class Appender:
    """Owns nothing; joins the CommitLog and the queues for one put_batch after the other."""

    def __init__(
        self, config: StoreConfig, log: CommitLog, table: QueueTable, now_ms: Callable[[], int]
    ) -> None:
        self._log = log
        self._table = table
        self._now_ms = now_ms
        self._body_max = config.message_size_max
        self._record_max = min(config.message_size_max + RECORD_OVERHEAD_MAX, 0x7FFFFFFF)
        self._sync = config.flush_disk_type == "SYNC_FLUSH"

    def append(self, messages: Sequence[MessageToStore]) -> list[PutResult]:
        touched: dict[ConsumeQueue, None] = {}
        try:
            timestamp = self._now_ms()
            results = self._append(messages, touched, timestamp)
            if self._sync:
                self._log.sync_appended()
        except BaseException:
            self._log.roll_back()
            for queue in touched:
                queue.roll_back()
            raise
        self._publish(touched, timestamp)
        return results

    def _append(
        self, messages: Sequence[MessageToStore], touched: dict[ConsumeQueue, None], timestamp: int
    ) -> list[PutResult]:
        """Encode and write the batch, unpublished.

        Written flat, with locals and without per-message objects, for its cost: see bench figures in docs/store.md.
        """
        log = self._log
        file, position = log.tail()
        phy_offset = file.from_offset + position
        file_end = file.end_offset - BLANK_MIN
        queues = self._table.queues
        body_max = self._body_max
        parts: list[bytes | memoryview] = []
        results: list[PutResult] = []
        pack_properties_length = PROPERTIES_LENGTH.pack
        pack_v4 = HEAD_V4.pack
        ok = PutStatus.PUT_OK
        new = tuple.__new__
        for message in messages:
            queue = queues.get((message.topic, message.queue_id)) or self._open_queue(message)
            body = message.body
            properties = message.properties
            body_size = len(body)
            properties_size = len(properties)
            size = queue.fixed_size + body_size + properties_size
            pack = pack_v4
            sys_flag = message.sys_flag
            in_queue = True
            if sys_flag & _UNUSUAL_FLAGS or len(message.born_host) + len(message.store_host) != 16:
                pack, extra, sys_flag, in_queue = _unusual_shape(message)
                size += extra
            if body_size > body_max or properties_size > PROPERTIES_MAX:
                results.append(self._refuse(message, size, timestamp))
                continue
            if phy_offset + size > file_end:
                log.append(file, b"".join(parts))
                parts.clear()
                file = log.roll(file)
                phy_offset = file.from_offset
                file_end = file.end_offset - BLANK_MIN
            if in_queue:
                queue_offset = queue.stage(phy_offset, size, message.tags_code)
                touched[queue] = None
            else:
                queue_offset = 0
            parts += (
                pack(
                    size,
                    queue.magic,
                    crc32(body) & 0x7FFFFFFF,
                    message.queue_id,
                    message.flag,
                    queue_offset,
                    phy_offset,
                    sys_flag,
                    message.born_timestamp,
                    message.born_host,
                    timestamp,
                    message.store_host,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    body_size,
                ),
                body,
                queue.topic_field,
                pack_properties_length(properties_size),
                properties,
            )
            results.append(new(PutResult, (ok, phy_offset, queue_offset, timestamp, size)))
            phy_offset += size
        log.append(file, b"".join(parts))
        return results

    def _publish(self, touched: dict[ConsumeQueue, None], timestamp: int) -> None:
        self._log.publish(timestamp)
        dirty = self._table.dirty
        for queue in touched:
            queue.max_offset = queue.next_offset
            if not queue.dirty:
                queue.dirty = True
                dirty.append(queue)

    def _open_queue(self, message: MessageToStore) -> ConsumeQueue:
        return self._table.find_or_create(message.topic, message.queue_id)

    def _refuse(self, message: MessageToStore, size: int, timestamp: int) -> PutResult:
        status = PutStatus.MESSAGE_ILLEGAL
        if len(message.properties) > PROPERTIES_MAX:
            status = PutStatus.PROPERTIES_SIZE_EXCEEDED
        return PutResult(status, 0, 0, timestamp, size)


_UNUSUAL_FLAGS = HOSTS_V6 | TRANSACTION_TYPE


def _unusual_shape(message: MessageToStore):  # type: ignore[no-untyped-def]
    """IPv6 hosts and transaction halves: (head packer, bytes more than with IPv4, sysFlag, has a unit)."""
    hosts = 0
    if len(message.born_host) != HOST_V4_SIZE:
        hosts |= BORNHOST_V6
    if len(message.store_host) != HOST_V4_SIZE:
        hosts |= STOREHOST_V6
    head = HEADS[hosts]
    transaction = message.sys_flag & TRANSACTION_TYPE
    in_queue = transaction not in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)
    return head.pack, head.size - HEAD_V4.size, message.sys_flag & ~HOSTS_V6 | hosts, in_queue
