"""Appends a batch of messages: the hottest loop of the server, run by the send lane alone.

For each message: offsets, time and checksum go into a record head packed by one struct, the parts
are collected, and a unit is staged on its ConsumeQueue. For the batch: one join and one write. Only
then are published, in this order, the CommitLog's end, the queues' ends and the last record's name;
so a reader that sees a unit finds its record, and a checkpoint that names a record implies its
unit. A failure before that leaves nothing behind: ends go back, and what was written is cut off.
"""

from collections.abc import Callable, Sequence
from zlib import crc32

from pyritemq.protocol.record import (
    BORNHOST_V6,
    PROPERTIES_MAX,
    STOREHOSTADDRESS_V6,
    TRANSACTION_MASK,
)
from pyritemq.storage.commit_log import CommitLog, LastRecord
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.consume_queue import ConsumeQueue
from pyritemq.storage.derive import derive_tags_code, is_in_queue, property_of
from pyritemq.storage.errors import FlushFailedError
from pyritemq.storage.messages import MessageToStore, PutResult, PutStatus
from pyritemq.storage.queue_table import QueueTable
from pyritemq.storage.record_codec import (
    BLANK_MIN,
    HEAD_V4,
    HEADS,
    HOST_V4_SIZE,
    HOSTS_V6,
    LENGTH_I16,
)

_UNUSUAL_FLAGS = HOSTS_V6 | TRANSACTION_MASK
_HOSTS_V4_SIZE = 2 * HOST_V4_SIZE
_WAIT = b"WAIT\x01"


class Appender:
    """Joins the CommitLog and the queues for one batch after another; keeps nothing in between."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        table: QueueTable,
        delay_levels: tuple[int, ...],
        now_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._table = table
        self._delay_levels = delay_levels
        self._now_ms = now_ms
        self._record_max = config.commit_log_file_size - BLANK_MIN
        self.configure(config)

    def configure(self, config: StoreConfig) -> None:
        """Heed these settings from the next batch on.  Any thread."""
        self._body_max = config.message_size_max
        self._is_sync = config.flush_disk_type == "SYNC_FLUSH"
        self._sync_timeout_ms = config.sync_flush_timeout_ms

    def append(self, messages: Sequence[MessageToStore]) -> list[PutResult]:
        """Store the batch and publish it, or raise DiskFullError or FlushFailedError."""
        touched: dict[ConsumeQueue, None] = {}
        timestamp = self._now_ms()
        try:
            results, last_offset = self._write(messages, touched, timestamp)
            in_time = not self._is_sync or not _any_waits(messages) or self._sync(timestamp)
        except BaseException:
            self._log.roll_back()
            for queue in touched:
                queue.roll_back()
            raise
        self._publish(touched, LastRecord(last_offset, timestamp))
        return results if in_time else _late(messages, results)

    def _write(
        self, messages: Sequence[MessageToStore], touched: dict[ConsumeQueue, None], timestamp: int
    ) -> tuple[list[PutResult], int]:
        """Encode and write, unpublished; returns the results and the last record's offset, or -1.

        Flat, with locals and no objects but the results, because each of its lines is paid for once
        a message: 1.8 µs for 128-byte bodies in batches of 32 over 8 queues, of which 0.1 µs are
        the write (Python 3.11, 2026-11-18; bench in docs/store.md).
        """
        log = self._log
        file, phy_offset = log.tail()
        file_end = file.end_offset - BLANK_MIN
        queues = self._table.queues
        body_max = self._body_max
        record_max = self._record_max
        pack_v4 = HEAD_V4.pack
        pack_length = LENGTH_I16.pack
        new = tuple.__new__
        ok = PutStatus.PUT_OK
        parts: list[bytes | memoryview] = []
        results: list[PutResult] = []
        last_offset = -1
        for message in messages:
            queue_id = message.queue_id
            queue = queues.get((message.topic, queue_id)) or self._open_queue(message)
            body = message.body
            properties = message.properties
            born_host = message.born_host
            store_host = message.store_host
            sys_flag = message.sys_flag
            body_size = len(body)
            properties_size = len(properties)
            size = queue.fixed_size + body_size + properties_size
            pack = pack_v4
            in_queue = True
            if sys_flag & _UNUSUAL_FLAGS or len(born_host) + len(store_host) != _HOSTS_V4_SIZE:
                pack, extra, sys_flag, in_queue = _unusual_shape(message)
                size += extra
            if body_size > body_max or properties_size > PROPERTIES_MAX:
                results.append(_refuse(message, timestamp))
                continue
            if phy_offset + size > file_end:
                if size > record_max:
                    results.append(_refuse(message, timestamp))
                    continue
                log.append(file, b"".join(parts))
                parts.clear()
                file = log.roll(file)
                phy_offset = file.from_offset
                file_end = file.end_offset - BLANK_MIN
            tags_code = message.tags_code
            if tags_code is None:
                tags_code = self._derive_tags_code(queue, message, timestamp)
            queue_offset = queue.stage(phy_offset, size, tags_code) if in_queue else 0
            touched[queue] = None
            parts += (
                pack(
                    size,
                    queue.magic,
                    crc32(body) & 0x7FFFFFFF,
                    queue_id,
                    message.flag,
                    queue_offset,
                    phy_offset,
                    sys_flag,
                    message.born_timestamp,
                    born_host,
                    timestamp,
                    store_host,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    body_size,
                ),
                body,
                queue.topic_field,
                pack_length(properties_size),
                properties,
            )
            results.append(new(PutResult, (ok, phy_offset, queue_offset, timestamp, size)))
            last_offset = phy_offset
            phy_offset += size
        log.append(file, b"".join(parts))
        return results, last_offset

    def _sync(self, started_ms: int) -> bool:
        """One sync for the whole batch; False if it took longer than syncFlushTimeout."""
        try:
            self._log.sync_appended()
        except OSError as error:
            raise FlushFailedError(
                f"the CommitLog could not be synced: {error.strerror}"
            ) from error
        return self._now_ms() - started_ms <= self._sync_timeout_ms

    def _publish(self, touched: dict[ConsumeQueue, None], last: LastRecord) -> None:
        self._log.publish()
        for queue in touched:
            queue.max_offset = queue.next_offset
            if not queue.dirty:
                self._table.mark_dirty(queue)
        if last.phy_offset >= 0:
            self._log.last = last

    def _open_queue(self, message: MessageToStore) -> ConsumeQueue:
        return self._table.find_or_create(message.topic, message.queue_id)

    def _derive_tags_code(
        self, queue: ConsumeQueue, message: MessageToStore, timestamp: int
    ) -> int:
        return derive_tags_code(message.topic, message.properties, timestamp, self._delay_levels)


def _unusual_shape(message: MessageToStore) -> tuple[Callable[..., bytes], int, int, bool]:
    """IPv6 hosts and transaction halves: (packer, size beyond IPv4's, sysFlag, has a unit)."""
    hosts = 0
    if len(message.born_host) != HOST_V4_SIZE:
        hosts |= BORNHOST_V6
    if len(message.store_host) != HOST_V4_SIZE:
        hosts |= STOREHOSTADDRESS_V6
    head = HEADS[hosts]
    sys_flag = message.sys_flag & ~HOSTS_V6 | hosts
    return head.pack, head.size - HEAD_V4.size, sys_flag, is_in_queue(sys_flag)


def _refuse(message: MessageToStore, timestamp: int) -> PutResult:
    """MessageExtEncoder.encode looks at the properties before it looks at the body."""
    too_long = len(message.properties) > PROPERTIES_MAX
    status = PutStatus.PROPERTIES_SIZE_EXCEEDED if too_long else PutStatus.MESSAGE_ILLEGAL
    return PutResult(status, 0, 0, timestamp, 0)


def _waits(message: MessageToStore) -> bool:
    """Message.isWaitStoreMsgOK: whether the producer wants to know that it is on disk."""
    properties = message.properties
    if _WAIT not in properties:
        return True
    value = property_of(properties, _WAIT)
    return not value or value.lower() == b"true"


def _any_waits(messages: Sequence[MessageToStore]) -> bool:
    """Whether a batch must be synced; one that none waits for is left to the flusher.

    The first message of nearly every batch waits, so this looks at one.
    """
    return any(_waits(message) for message in messages)


def _late(messages: Sequence[MessageToStore], results: list[PutResult]) -> list[PutResult]:
    """Stored and durable, but later than the producers who wait were promised."""
    timeout = PutStatus.FLUSH_DISK_TIMEOUT
    return [
        result._replace(status=timeout)
        if result.status is PutStatus.PUT_OK and _waits(message)
        else result
        for message, result in zip(messages, results, strict=True)
    ]
