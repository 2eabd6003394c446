"""The store as the server sees it: opens the folder, wires the parts, and passes every call on.

Threads: put_batch belongs to the send lane alone; get and the look-ups may run on any lane; flush, persist and
prepare_next are for one flusher thread at a time. close() comes last, when no lane runs any more.
"""

import os
import threading
from collections.abc import Callable, Sequence

from pyritemq.storage.appender import Appender
from pyritemq.storage.commit_log import CommitLog
from pyritemq.storage.config import StoreConfig
from pyritemq.storage.disk import Disk, RealDisk
from pyritemq.storage.messages import GetResult, GetStatus, MessageToStore, PutResult
from pyritemq.storage.queue_table import QueueTable
from pyritemq.storage.reader import PULL_BYTES_MAX, Accepts, Reader, empty_result


class MessageStore:
    """An open store folder, exclusively ours until close()."""

    def __init__(self, config: StoreConfig, disk: Disk, now_ms: Callable[[], int]) -> None:
        self.config = config
        self._disk = disk
        disk.make_dirs(config.root)
        self._lock = disk.lock(config.root)
        self._flush_lock = threading.Lock()
        self.commit_log = CommitLog(disk, config)
        self.queues = QueueTable(
            disk, config.consume_queue_dir, file_units=config.consume_queue_file_units
        )
        self._appender = Appender(config, self.commit_log, self.queues, now_ms)
        self._reader = Reader(config, self.commit_log)

    @classmethod
    def open(
        cls, config: StoreConfig, *, now_ms: Callable[[], int], disk: Disk | None = None
    ) -> "MessageStore":
        """Take the folder's lock, load and recover. Raises StorageError with one clear sentence."""
        store = cls(config, disk or RealDisk(), now_ms)
        store.commit_log.files.load()
        return store

    # -- send lane ----------------------------------------------------------------------------

    def put_batch(self, messages: Sequence[MessageToStore]) -> list[PutResult]:
        """Append the messages as one write, in order; one result for each. Visible when it returns."""
        return self._appender.append(messages)

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
    ) -> GetResult:
        """Messages of a queue from offset on; accepts filters by tags code."""
        queue = self.queues.find(topic.encode(), queue_id)
        if queue is None:
            return empty_result(GetStatus.NO_MESSAGE_IN_QUEUE, 0)
        return self._reader.get(queue, offset, count_max, bytes_max, accepts)

    def min_offset(self, topic: str, queue_id: int) -> int:
        queue = self.queues.find(topic.encode(), queue_id)
        return 0 if queue is None else queue.min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        queue = self.queues.find(topic.encode(), queue_id)
        return 0 if queue is None else queue.max_offset

    @property
    def max_phy_offset(self) -> int:
        return self.commit_log.max_offset

    @property
    def min_phy_offset(self) -> int:
        return self.commit_log.min_offset

    # -- flusher ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make every published record durable."""
        with self._flush_lock:
            self.commit_log.flush()

    def prepare_next(self) -> None:
        """Make the CommitLog's next file ahead of need."""
        self.commit_log.files.prepare_next(self.commit_log.max_offset)

    def persist(self) -> None:
        """Bring the queues' tails to their files."""
        with self._flush_lock:
            for queue in self.queues.take_dirty():
                queue.write_out()

    def close(self) -> None:
        """Stop cleanly: everything durable, checkpoint written, `abort` gone, lock released."""
        self.flush()
        self.persist()
        self.commit_log.files.discard_prepared()
        self._lock.release()
