"""The store as the server sees it: opens the folder, wires the parts, and passes every call on.

Threads: put_batch belongs to the send lane alone; get and the look-ups may run on any lane;
housekeep, flush and persist may come from any one thread at a time, next to the others (the lock
sees to it). close() comes last, when no lane runs any more.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

from pyritemq.storage.appender import Appender
from pyritemq.storage.by_time import Boundary, offset_by_time
from pyritemq.storage.checkpoint import load_checkpoint, save_checkpoint
from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.consume_queue_ext import AcceptsExt, BitMapOf, ConsumeQueueExts
from pyritemq.storage.deletions import TopicDeletions
from pyritemq.storage.derive import Deriver, parse_delay_levels
from pyritemq.storage.disk import Disk, RealDisk
from pyritemq.storage.errors import (
    DiskFullError,
    FlushFailedError,
    StorageError,
    StoreClosedError,
    StoreCorruptError,
)
from pyritemq.storage.expiry import Expiry
from pyritemq.storage.ext_appender import ExtAppender
from pyritemq.storage.flush import FlushSchedule
from pyritemq.storage.message_index import MessageIndex
from pyritemq.storage.messages import (
    GetResult,
    GetStatus,
    MessageToStore,
    PutResult,
    PutStatus,
    QueryResult,
)
from pyritemq.storage.queue_ends import load_queue_ends, save_queue_ends
from pyritemq.storage.queue_table import QueueTable
from pyritemq.storage.reader import PULL_BYTES_MAX, Accepts, Matches, Reader, empty_result
from pyritemq.storage.recovery import Recovery, RecoveryReport

_log = logging.getLogger(__name__)


class MessageStore:
    """An open store folder, exclusively ours until close()."""

    def __init__(self, config: StoreConfig, disk: Disk, now_ms: Callable[[], int]) -> None:
        """Use open(): it also loads and recovers."""
        self.config = config
        self._disk = disk
        self._now_ms = now_ms
        delay_levels = parse_delay_levels(config.message_delay_level)
        disk.make_dirs(config.root)
        self._lock = disk.lock(config.root)
        self._flush_lock = threading.Lock()
        self._failure: StorageError | None = None
        self.commit_log = CommitLog(disk, config)
        self.commit_log.now_ms = now_ms
        self.queues = QueueTable(
            disk, config.consume_queue_dir, file_units=config.consume_queue_file_units
        )
        self._appender = Appender(config, self.commit_log, self.queues, delay_levels, now_ms)
        self.exts: ConsumeQueueExts | None = None
        self._append_lock = threading.Lock()  # the send lane's, but for a deletion of topics
        self._deletions = TopicDeletions(disk, config.root)
        self._deriver = Deriver(self.queues, delay_levels, self._deletions)
        self._reader = Reader(config, self.commit_log)
        self._schedule = FlushSchedule(config, now_ms())
        self.expiry = Expiry(config, disk, self.commit_log, self.queues, now_ms)
        self._is_refusing = False  # no space was found by the last append or the last flush
        if config.enable_consume_queue_ext or disk.names(config.consume_queue_ext_dir):
            self._add_exts(delay_levels)

    def _add_exts(self, delay_levels: tuple[int, ...]) -> None:
        """Read the ext units that there are, whatever the setting says; write them if it does."""
        config = self.config
        self.exts = self.queues.exts = ConsumeQueueExts(
            self._disk,
            config.consume_queue_ext_dir,
            file_size=config.consume_queue_ext_file_size,
            files=self.queues.files,
        )
        if config.enable_consume_queue_ext:
            appender = ExtAppender(config, self.commit_log, self.queues, delay_levels, self._now_ms)
            appender.exts = self._deriver.exts = self.exts
            self._appender = appender

    @classmethod
    def open(
        cls,
        config: StoreConfig,
        *,
        now_ms: Callable[[], int],
        disk: Disk | None = None,
        on_progress: Callable[[int], None] | None = None,
        bit_map_of: BitMapOf | None = None,
    ) -> "MessageStore":
        """Take the folder's lock, load and recover. Raises StorageError with one clear sentence.

        on_progress is told the CommitLog offset that a long recovery has come to.
        """
        store = cls(config, disk or RealDisk(), now_ms)
        if store.exts is not None and bit_map_of is not None:
            store.exts.bit_map_of = bit_map_of
        try:
            report = store._recover(on_progress)
        except BaseException:
            store._lock.release()
            raise
        _log.info("store recovered %s", report)
        return store

    def _recover(self, on_progress: Callable[[int], None] | None) -> RecoveryReport:
        abort = self.config.root / "abort"
        self.checkpoint = load_checkpoint(self._disk, self.config.root / "checkpoint")
        self.commit_log.files.load()
        self.queues.scan()
        self.queues.known_ends = load_queue_ends(self._disk, self.config.root, self.checkpoint)
        self._deletions.load(min_phy_offset=self.commit_log.min_offset)
        for topic in self._deletions.underway:
            self.queues.delete_topic(topic)
        recovery = Recovery(
            self.commit_log,
            self.queues,
            self._deriver,
            self.checkpoint,
            disk=self._disk,
            root=self.config.root,
            check_crc=self.config.check_crc_on_recover,
            on_progress=on_progress,
        )
        was_stopped = not self._disk.exists(abort)
        report = recovery.run(clean_stop=was_stopped)
        self.index = MessageIndex(
            self._disk, self.config, self.commit_log, self.checkpoint, self._now_ms
        )
        self.index.load(clean_stop=was_stopped)
        if self._deletions.underway:
            self.persist()
            self._deletions.end()
        file = self._disk.open(abort, create=True)
        file.resize(0)
        file.write_at(0, str(os.getpid()).encode())
        self._disk.sync_dir(self.config.root)
        return report

    # -- send lane ----------------------------------------------------------------------------

    def put_batch(self, messages: Sequence[MessageToStore]) -> list[PutResult]:
        """Append the messages as one write, in order; one result for each.

        What was stored is visible when this returns and, under SYNC_FLUSH, durable. A disk that is
        full or failing refuses the whole batch with SERVICE_NOT_AVAILABLE; reads go on.
        """
        if self._failure is None and not self.expiry.is_disk_full:
            try:
                with self._append_lock:
                    results = self._appender.append(messages)
                if self._is_refusing:
                    self._is_refusing = False
                    _log.warning("append works again")
                return results
            except FlushFailedError as error:
                self._fail(error)
            except (StorageError, OSError) as error:
                self._refuse(error)
        refused = PutResult(PutStatus.SERVICE_NOT_AVAILABLE, 0, 0, self._now_ms(), 0)
        return [refused] * len(messages)

    @property
    def is_writable(self) -> bool:
        """False while the disk is too full, once a sync has failed, and when closed."""
        return self._failure is None and not self.expiry.is_disk_full

    def _fail(self, error: StorageError) -> None:
        self._failure = error
        _log.error("store takes no more messages reason=%s", error)

    def _refuse(self, error: Exception) -> None:
        if not self._is_refusing:
            _log.error("append refused until there is space reason=%s", error)
        self._is_refusing = True

    # -- any lane -----------------------------------------------------------------------------

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        count_max: int,
        bytes_max: int = PULL_BYTES_MAX,
        accepts: Accepts = None,
        matches: Matches = None,
        accepts_ext: AcceptsExt | None = None,
    ) -> GetResult:
        """Messages of a queue from offset on; accepts filters by tags code, matches by record.

        accepts_ext may tell by a message's ext unit, if there is one, that matches need not look.
        """
        queue = self.queues.find(topic.encode(), queue_id)
        if queue is None:  # Java makes the queue here, so that NO_MATCHED_LOGIC_QUEUE never occurs
            return empty_result(GetStatus.NO_MESSAGE_IN_QUEUE, 0)
        if self.exts is not None and (accepts is not None or accepts_ext is not None):
            by_code = accepts.__contains__ if isinstance(accepts, frozenset) else accepts
            accepts = self.exts.accepting(queue, by_code, accepts_ext)
        try:
            return self._reader.get(queue, offset, count_max, bytes_max, accepts, matches)
        except StoreCorruptError:
            if offset >= queue.min_offset:
                raise
            # the queue's file expired while it was read: answer as if we had come a moment later
            return self._reader.get(queue, offset, count_max, bytes_max, accepts, matches)

    def min_offset(self, topic: str, queue_id: int) -> int:
        queue = self.queues.find(topic.encode(), queue_id)
        return 0 if queue is None else queue.min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        queue = self.queues.find(topic.encode(), queue_id)
        return 0 if queue is None else queue.max_offset

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp: int, boundary: str = Boundary.LOWER
    ) -> int:
        """The offset of the first message at or after (LOWER), the last at or before (UPPER)."""
        queue = self.queues.find(topic.encode(), queue_id)
        if queue is None:
            return 0
        is_upper = boundary.upper() == Boundary.UPPER  # BoundaryType.getType: all else is LOWER
        return offset_by_time(
            self.commit_log, queue, timestamp, Boundary.UPPER if is_upper else Boundary.LOWER
        )

    def store_time_at(self, topic: str, queue_id: int, offset: int) -> int:
        """Store timestamp of the message at a queue offset, or -1."""
        queue = self.queues.find(topic.encode(), queue_id)
        unit = None if queue is None else queue.unit(offset)
        return -1 if unit is None else self.commit_log.store_timestamp(unit[0], unit[1])

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        """Store timestamp of the queue's first message, or -1."""
        return self.store_time_at(topic, queue_id, self.min_offset(topic, queue_id))

    def earliest_time(self) -> int:
        """When the CommitLog's first record was stored; -1 if there is none."""
        start = self.min_phy_offset
        record = self.record_at(start)
        return -1 if record is None else self.commit_log.store_timestamp(start, len(record))

    def record_at(self, phy_offset: int) -> memoryview | None:
        """The record at a CommitLog offset, if there is one."""
        return self.commit_log.record(phy_offset)

    def query(
        self,
        topic: str,
        key: str,
        count_max: int,
        *,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> QueryResult:
        """Records by key and store time, oldest first; of more than count_max the newest."""
        return self.index.query(topic, key, count_max, begin=begin, end=end, index_type=index_type)

    def delete_topics(self, topics: Iterable[str]) -> int:
        """Delete the queues of topics; how many had any. A topic made anew starts at offset 0.

        Their records stay in the CommitLog, and in the index, until they expire. Sends wait while
        this runs: some milliseconds, and a sync. Raises StorageError.
        """
        names = [topic.encode() for topic in topics]
        with self._append_lock:
            with self._flush_lock:
                there = {topic for topic, _ in self.queues.all_keys()}
                found = [name for name in names if name in there]
                if not found:
                    return 0
                self._deletions.begin(found, self.commit_log.max_offset)
                for topic in found:
                    self.queues.delete_topic(topic)
            self._persist_queues()
            self._deletions.end()
        return len(found)

    def delete_expired_queues(self, *, keep: Callable[[str], bool]) -> int:
        """Delete the queues whose messages have all expired; how many there were.

        As in Java such a queue starts at offset 0 again. Those of topics to keep stay.
        """
        self.queues.expire(self.commit_log.min_offset)
        expired = {key for key in self.queues.wholly_expired(None) if not keep(key[0].decode())}
        if not expired:
            return 0
        with self._append_lock:
            with self._flush_lock:
                expired &= self.queues.wholly_expired(expired)  # sends went on meanwhile
                self.queues.delete(expired)
            self._persist_queues()
        return len(expired)

    def topics(self) -> set[str]:
        """Topics that have a queue."""
        return {topic.decode() for topic, _ in self.queues.all_keys()}

    @property
    def max_phy_offset(self) -> int:
        return self.commit_log.max_offset

    @property
    def min_phy_offset(self) -> int:
        return self.commit_log.min_offset

    def configure(self, config: StoreConfig) -> None:
        """Heed these settings from now on; paths and file sizes stay as they were opened.

        Any thread, one at a time: each part takes a setting over whole.
        """
        for setting in fields(config):
            setattr(self.config, setting.name, getattr(config, setting.name))
        self._appender.configure(config)
        self._reader = Reader(config, self.commit_log)
        self._schedule = FlushSchedule(config, self._now_ms())
        self.index.configure(config)

    # -- flusher ------------------------------------------------------------------------------

    def housekeep(self) -> None:
        """Do what is due; a background thread calls it every flush_interval_commit_log_ms."""
        if self.expiry.is_due():
            self.clean_files()
        try:
            self._flush_what_is_due(self._now_ms())
        except DiskFullError as error:  # what could not be written stays in memory
            self._refuse(error)

    def clean_files(self) -> None:
        """Delete what has expired and look how full the disk is; the flusher's thread."""
        if self.expiry.run():
            self.index.delete_expired(self.commit_log.min_offset)

    def _flush_what_is_due(self, now: int) -> None:
        self.prepare_next()
        dirty_bytes = self.commit_log.max_offset - self.commit_log.flushed_where
        if self._schedule.is_commit_log_due(now, dirty_bytes):
            self.flush()
        if self._schedule.is_checkpoint_due(now):
            self.persist()
        elif self._schedule.is_write_out_due(now):
            with self._flush_lock:
                self.queues.write_out_some()
        self.index.work()

    def prepare_next(self) -> None:
        """Make the CommitLog's next file ahead of need, and warm it if that is wanted."""
        files = self.commit_log.files
        if files.prepare_next(self.commit_log.max_offset) and self.config.warm_file_enable:
            files.warm_next()

    def flush(self) -> None:
        """Make every published record durable. After a FlushFailedError the store is read-only."""
        last = self.commit_log.last
        with self._flush_lock:
            try:
                self.commit_log.flush()
            except OSError as error:
                failure = FlushFailedError(f"the CommitLog could not be synced: {error.strerror}")
                self._fail(failure)
                raise failure from error
            self.checkpoint.physic_msg_timestamp = last.store_timestamp

    def persist(self) -> None:
        """Make CommitLog, index and ConsumeQueues durable, in this order; then the checkpoint."""
        self.flush()
        self.index.sync()
        self._persist_queues()

    def _persist_queues(self) -> None:
        """CommitLog first: a unit on disk whose record is not would be worse than none."""
        last = self.commit_log.last
        self.flush()
        with self._flush_lock:
            self.queues.write_out()
            self.queues.sync()
            self.checkpoint.logics_msg_timestamp = last.store_timestamp
            self.checkpoint.logics_physical_offset = last.phy_offset
            self.checkpoint.confirm_phy_offset = last.phy_offset
            ends = self.queues.ends()
            save_queue_ends(self._disk, self.config.root, ends, self.checkpoint)
            save_checkpoint(self._disk, self.config.root / "checkpoint", self.checkpoint)

    def abandon(self) -> None:
        """Let go of the folder without saving anything, before `drop_store` or another owner.

        As after kill -9, but in order: no thread may be at work. Views that were handed out stay.
        """
        self._failure = StoreClosedError("the store is closed")
        self._let_go()

    def close(self) -> None:
        """Stop cleanly: everything durable, checkpoint written, `abort` gone, lock released."""
        if isinstance(self._failure, StoreClosedError):
            return
        failed, self._failure = self._failure, StoreClosedError("the store is closed")
        try:
            if failed is None:
                self.index.finish()
                self.persist()
                self.commit_log.files.discard_prepared()
                self._disk.remove(self.config.root / "abort")
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self.commit_log.files.close()
        self.queues.files.clear()
        self.index.table.close()
        self._lock.release()
